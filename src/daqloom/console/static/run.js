// The run: state, commands, charts, units, losses, events, connections, software switch.

import { $, amount, el, post, say, table } from "./tools.js";

const MOST_POINTS = 3600;
const WAITS = ["source", "peer", "barrier", "consumer"];
const CHARTS = {
  rate: [["MEPs/s", (t) => t.meps_hz]],
  throughput: [["Gb/s", (t) => t.bps === null ? null : t.bps / 1e9]],
  latency: [["ms", (t) => t.latency_s === null ? null : t.latency_s * 1e3]],
  waits: WAITS.map((name) => [name, (t) => t.waits[name] ?? null]),
};
const charts = {};
const rows = new Map();
let source = null;
let listeners = [];
export let frames = 0;

export const onFrame = (listener) => listeners.push(listener);

export function enter() {
  listen();
  for (const name of Object.keys(CHARTS)) charts[name] ??= chart(name);
  resize();
}

// One connection for all pages; the server polls the run only while somebody looks.
export function listen() {
  if (source) return;
  source = new EventSource("/api/run");
  source.onmessage = (event) => {
    const frame = JSON.parse(event.data);
    if (frame.past) return reset(frame.past);
    draw(frame);
    for (const each of listeners) each(frame);
    frames += 1;
    document.body.dataset.frames = frames;
  };
  source.onerror = () => {
    mark("no answer", "the connection to the console is interrupted; the page tries again");
    if (source.readyState === EventSource.CLOSED) {
      source = null;
      fetch("/api/session").then(
        (answer) => answer.ok ? setTimeout(listen, 3000)
          : window.dispatchEvent(new Event("logged-out")),
        () => setTimeout(listen, 3000));
    }
  };
}

export function leave() {}

function reset(past) {
  const recent = past.slice(-MOST_POINTS);
  for (const [name, series] of Object.entries(CHARTS)) {
    charts[name] ??= chart(name);
    charts[name].points = [recent.map((t) => t.at), ...series.map(([, of]) => recent.map(of))];
    charts[name].setData(charts[name].points);
  }
}

function chart(name) {
  const css = getComputedStyle(document.documentElement);
  const colour = (each) => css.getPropertyValue(each).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 0.5 } };
  const series = CHARTS[name].map(([label], i) =>
    ({ label, stroke: colour(`--c${i + 1}`), width: 1.6, value: (_, v) => amount(v) }));
  const points = [[], ...series.map(() => [])];
  const made = new window.uPlot(
    { width: 320, height: 190, axes: [axis, { ...axis, size: 62 }], series: [{}, ...series],
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05] } } },
    points, $(`chart-${name}`));
  made.points = points;
  return made;
}

function resize() {
  for (const [name, each] of Object.entries(charts)) {
    const width = $(`chart-${name}`).clientWidth;
    if (width) each.setSize({ width, height: 190 });
  }
}

function repaint() {
  const kept = Object.fromEntries(Object.entries(charts).map(([n, each]) => [n, each.points]));
  for (const name of Object.keys(charts)) {
    charts[name].destroy();
    charts[name] = chart(name);
    charts[name].points = kept[name];
    charts[name].setData(kept[name]);
  }
  resize();
}
window.addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

function mark(phase, about, failure = "") {
  const badge = $("phase");
  if (badge.textContent !== phase) badge.textContent = phase;
  badge.dataset.kind = phase;
  $("about").textContent = about;
  if ($("failure").textContent !== failure) $("failure").textContent = failure;
}

function draw(frame) {
  drawSwitch(frame.switch);
  if (frame.failure !== undefined && !frame.run) {
    mark("no answer", "", frame.failure);
    return drawCommands([]);
  }
  const { total } = frame;
  mark(frame.phase, `${frame.scenario}, run ${frame.run}, epoch ${frame.epoch}`, frame.failure);
  drawCommands(frame.can);
  const tiles = { "MEPs per second": amount(total.meps_hz), "throughput": amount(total.bps, "b/s"),
    "latency of a MEP": amount(total.latency_s, "s"),
    "members": `${total.members} of ${frame.units.length}`,
    "since the start": `${Math.floor(total.time_s)} s` };
  $("tiles").replaceChildren(...Object.entries(tiles).map(([name, value]) =>
    el("div", {}, el("b", {}, value), name)));
  for (const [name, series] of Object.entries(CHARTS)) {
    const { points } = charts[name] ??= chart(name);
    [total.at, ...series.map(([, of]) => of(total))].forEach((value, i) => {
      points[i].push(value);
      if (points[i].length > MOST_POINTS) points[i].shift();
    });
    charts[name].setData(points);
  }
  drawUnits(frame.units);
  drawMatrix(frame.connections ?? []);
  $("losses").replaceChildren(table(["cause", "number"], Object.entries(frame.losses)));
  const log = frame.events.slice().reverse().map(([s, text]) => `${s.toFixed(2)} s  ${text}`);
  if ($("events").firstChild?.textContent !== log[0] || $("events").children.length !== log.length)
    $("events").replaceChildren(...log.map((each) => el("li", {}, each)));
}

function drawCommands(can) {
  const names = can.filter((each) => each !== "reset");
  if ($("commands").dataset.names === names.join()) return;
  $("commands").dataset.names = names.join();
  const disabled = document.body.dataset.role !== "operate";
  $("commands").replaceChildren(...names.map((name) =>
    el("button", { type: "button", disabled, onclick: () => command({ command: name }) }, name)));
}

async function command(wanted) {
  if (wanted.command === "exit" && !confirm("End the run and all its units?")) return;
  try {
    await post("/api/run", wanted);
    say("");
  } catch (error) {
    say(error.message);
  }
}

const HEAD = ["unit", "state", "standing", "host", "pid", "MEPs/s", "throughput", "waits for",
  "last loss", ""];

function drawUnits(units) {
  if (!$("units").firstChild || rows.size !== units.length) {
    rows.clear();
    const made = table(HEAD, []);
    for (const { unit } of units) {
      const row = el("tr", {}, ...HEAD.slice(1).map(() => el("td")), el("td", {},
        el("button", { type: "button", hidden: "", onclick: () => command({ command: "reset", unit }) },
          `reset ${unit}`)));
      rows.set(unit, row);
      made.tBodies[0].append(row);
    }
    $("units").replaceChildren(made);
  }
  for (const each of units) {
    const row = rows.get(each.unit);
    const wait = each.wait ? `${each.wait} ${Math.round(100 * each.wait_share)} %` : "";
    const cells = [each.unit, each.state, each.member ? "member" : each.standing, each.host,
      each.pid || "", amount(each.meps_hz), amount(each.bps, "b/s"), wait, each.reason];
    cells.forEach((value, i) => {
      const text = String(value);
      if (row.cells[i].textContent !== text) row.cells[i].textContent = text;
    });
    const isOdd = !each.member;
    if (isOdd !== (row.className === "odd")) {
      row.className = isOdd ? "odd" : "";
      row.lastChild.firstChild.hidden = !isOdd || document.body.dataset.role !== "operate";
      if (isOdd) row.parentNode.prepend(row);
      else place(row, each.unit);
    }
  }
}

// Rows of members follow in the order of their numbers, after those of other units.
function place(row, unit) {
  const next = [...rows].find(([other, each]) => other > unit && each.className !== "odd");
  row.parentNode.insertBefore(row, next ? next[1] : null);
}

function drawMatrix(connections) {
  $("matrix-part").hidden = !connections.length;
  if (!connections.length) return;
  const units = [...new Set(connections.flatMap(([from, to]) => [from, to]))].sort((a, b) => a - b);
  const of = new Map(connections.map((each) => [`${each[0]} ${each[1]}`, each]));
  const trips = connections.map((each) => each[3]).sort((a, b) => a - b);
  const slow = Math.max(3 * trips[Math.floor(trips.length / 2)], 1e-3);
  const made = table(["from ↓ to →", ...units], []);
  for (const from of units) {
    made.tBodies[0].append(el("tr", {}, el("th", { scope: "row" }, from), ...units.map((to) => {
      const found = of.get(`${from} ${to}`);
      if (!found) return el("td");
      const [, , lost, trip] = found;
      return el("td", { class: trip > slow || lost ? "slow" : "" },
        amount(trip, "s") + (lost ? `, ${lost} resent` : ""));
    })));
  }
  $("matrix").replaceChildren(made);
}

function drawSwitch(state) {
  $("switch-part").hidden = !state;
  if (!state) return;
  $("switch-title").textContent = state.title;
  $("ports").replaceChildren(table(["port", "link", "frames in", "dropped", "missed"], state.ports));
  $("rings").replaceChildren(table(
    ["ring", "port", "pace", "packets", "bytes", "limit (B)", "dropped"],
    state.rings.map(([name, port, rate, ...rest]) =>
      [name, port, rate ? amount(rate, "b/s") : "–", ...rest])));
}
