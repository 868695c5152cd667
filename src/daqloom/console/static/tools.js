// Elements, numbers, requests: what all pages of the console use. Texts enter the page as text only.

export const $ = (id) => document.getElementById(id);

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.map((each) => (each instanceof Node ? each : String(each))));
  return node;
}

export function table(head, rows, classes = () => "") {
  const cell = (each) =>
    el("td", typeof each === "number" ? { class: "number" } : {}, each ?? "");
  return el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, ...rows.map((row, i) => el("tr", { class: classes(i) }, ...row.map(cell)))));
}

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"],
  [1e-6, "µ"], [1e-9, "n"]];
const UNITS = { hz: "Hz", bps: "b/s", s: "s", bytes: "B" };

export function amount(value, unit = "") {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (!unit && size >= 0.01 && size < 1e4) return String(Number(value.toPrecision(4)));
  const [factor, prefix] =
    PREFIXES.find(([each]) => size >= each * 0.99999) ?? (size ? PREFIXES.at(-1) : [1, ""]);
  return `${Number((value / factor).toPrecision(4))} ${prefix}${unit}`;
}

export function metrics(tree, path = "") {
  return Object.entries(tree).flatMap(([key, value]) => {
    const name = path + key;
    if (value !== null && typeof value === "object") return metrics(value, `${name}.`);
    const unit = UNITS[name.split(".").map((each) => each.split("_").at(-1)).findLast((e) => UNITS[e])];
    return [[name, typeof value === "number" ? amount(value, unit) : String(value)]];
  });
}

export function say(sentence) {
  $("note").textContent = sentence;
}

async function send(path, body, signal) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Daqloom": "1" },
    body: JSON.stringify(body),
    signal,
  });
  if (answer.status === 401 && path !== "/api/login") window.dispatchEvent(new Event("logged-out"));
  if (answer.ok) return answer;
  throw new Error((await answer.json().catch(() => ({}))).failure ?? `error ${answer.status}`);
}

export const post = async (path, body) => (await send(path, body)).json();

// The answer of a task; onProgress is called with the completed share.
export async function task(name, given, onProgress, signal) {
  const answer = await send("/api/task", { task: name, arguments: given }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "", done = false; !done; ) {
    const part = await reader.read();
    done = part.done;
    text += part.value ?? "";
    const lines = text.split("\n");
    text = lines.pop();
    for (const record of lines.map((line) => JSON.parse(line))) {
      if (record.answer) return record.answer;
      if (record.failure !== undefined) throw new Error(record.failure);
      onProgress?.(record.progress);
    }
  }
  throw new Error("the server ended the answer; try again");
}
