// A scenario: its text with help and mistakes, closed forms while a slider moves, a simulation.

import { $, amount, el, metrics, say, table, task } from "./tools.js";
import { show } from "./topology.js";

const VALUE = /^(\s*([\w.-]+)\s*=\s*)("?)(-?[\d.]+(?:e-?\d+)?)( ?[^"#]*)("?)(.*)$/;
let wanted = null;
let isBusy = false;
let helped = "";
let chosen = null;
let aborted = null;

export function enter() {
  if (!$("text").value) open();
}

async function open() {
  try {
    $("text").value = (await task("show", { scenario: $("start").value })).toml;
    say("");
    analyse();
  } catch (error) {
    say(error.message);
  }
}

// One request at a time: of those that come meanwhile, the last one follows.
async function analyse(overrides = []) {
  wanted = { scenario: `${$("text").value}\n`, overrides };
  if (isBusy) return;
  isBusy = true;
  while (wanted) {
    const given = wanted;
    wanted = null;
    const began = performance.now();
    try {
      const found = await task("analyse", given);
      $("mistakes").replaceChildren();
      $("analysed").replaceChildren(table(["metric", "value"], metrics(found.metrics)));
      $("cost").textContent = `in ${Math.round(performance.now() - began)} ms`;
    } catch (error) {
      $("mistakes").replaceChildren(
        ...error.message.split("\n").map((each) => el("li", {}, each)));
    }
  }
  isBusy = false;
}

// The dotted key on the line of the cursor.
function keyAt() {
  const lines = $("text").value.slice(0, $("text").selectionStart).split("\n");
  const index = lines.length - 1;
  const line = $("text").value.split("\n")[index];
  const key = line.match(/^\s*([\w.-]+)\s*=/)?.[1];
  const heading = lines.findLast((each) => /^\s*\[[^[]/.test(each))?.match(/\[([\w.-]+)\]/)?.[1];
  return key && { path: heading ? `${heading}.${key}` : key, line, index };
}

async function help() {
  const found = keyAt();
  if (!found || found.path === helped) return;
  helped = found.path;
  slide(found);
  try {
    const { explanations } = await task("explain", { term: found.path });
    const keys = explanations.filter(({ kind }) => kind.endsWith("of a scenario"));
    $("help").replaceChildren(...keys.map((each) => el("p", {},
      el("b", {}, each.names[0]), ` ${each.meaning} `,
      el("small", {}, [each.unit && `unit: ${each.unit}`, each.values, each.default && `default: ${each.default}`]
        .filter(Boolean).join("; ")))));
  } catch (error) {
    $("help").textContent = error.message;
  }
}

function slide({ path, line, index }) {
  const match = line.match(VALUE);
  $("slider-label").hidden = !match;
  if (!match) return;
  const [, before, , quote, number, unit, end, rest] = match;
  chosen = { path, index, before, quote, number: Number(number), unit, end, rest };
  $("slider").value = 0;
  $("slider-key").textContent = path;
  $("slider-value").textContent = number + unit;
}

// The slider spans a tenth to ten times the value, whole numbers stay whole.
function moved() {
  const value = chosen.number * 10 ** (Number($("slider").value) / 100);
  const isWhole = !chosen.quote && Number.isInteger(chosen.number);
  const number = isWhole ? Math.max(1, Math.round(value)) : Number(value.toPrecision(3));
  return number + (chosen.quote ? chosen.unit : "");
}

async function simulate() {
  const progress = $("progress");
  aborted = new AbortController();
  progress.hidden = $("cancel").hidden = false;
  progress.value = 0;
  $("simulate").disabled = true;
  say("");
  try {
    const found = await task("simulate", { scenario: `${$("text").value}\n`, overrides: [] },
      (share) => (progress.value = share), aborted.signal);
    $("simulated").replaceChildren(
      el("p", {}, el("a", { href: "#topology" }, "loads and times on its topology")),
      table(["metric", "value"], metrics(found.result.metrics)),
      ...found.result.warnings.map((each) => el("p", { class: "trouble" }, each)));
    show(found.drawing);
  } catch (error) {
    say(error.name === "AbortError" ? "the simulation is cancelled" : error.message);
  }
  progress.hidden = $("cancel").hidden = true;
  $("simulate").disabled = false;
}

let timer = 0;
$("text").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(analyse, 150);
});
for (const event of ["keyup", "click"]) $("text").addEventListener(event, help);
$("slider").addEventListener("input", () => {
  $("slider-value").textContent = moved();
  const quote = chosen.quote;
  analyse([`${chosen.path}=${quote}${moved()}${quote}`]);
});
$("slider").addEventListener("change", () => {
  const lines = $("text").value.split("\n");
  lines[chosen.index] = chosen.before + chosen.quote + moved() + chosen.end + chosen.rest;
  $("text").value = lines.join("\n");
});
$("simulate").addEventListener("click", simulate);
$("cancel").addEventListener("click", () => aborted?.abort());
$("save").addEventListener("click", () => {
  const place = URL.createObjectURL(new Blob([$("text").value], { type: "application/toml" }));
  el("a", { href: place, download: "scenario.toml" }).click();
  URL.revokeObjectURL(place);
});
$("scenario-form").addEventListener("submit", (event) => {
  event.preventDefault();
  open();
});
