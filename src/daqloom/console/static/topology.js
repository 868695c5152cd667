// The topology: a fabric with loads, waits and faults, over the time of a simulation or of a run.

import { $, amount, el, say, task } from "./tools.js";
import { listen, onFrame } from "./run.js";

const SVG = "http://www.w3.org/2000/svg";
let drawing = null;
let parts = null;

const make = (name, attributes, ...children) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

export function enter() {
  if (!drawing) draw("topology");
}

export function show(found) {
  drawing = found;
  $("topology-about").textContent = found.title;
  $("odd").replaceChildren(...found.about.map((each) => el("li", {}, each)));
  const left = 30, top = 24;
  const svg = make("svg", { role: "img", "aria-label": found.title,
    viewBox: `${-left} ${-top} ${found.width + 2 * left} ${found.height + 2 * top + 30}` });
  const cables = found.cables.map((cable) => {
    const [a, b] = [found.boxes[cable.a], found.boxes[cable.b]];
    const place = a.y === b.y
      ? make("path", { d: `M${a.x} ${a.y} Q${(a.x + b.x) / 2} ${a.y - 44} ${b.x} ${b.y}` })
      : make("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
    place.setAttribute("stroke-width", Math.min(0.8 + 0.3 * cable.count, 4));
    const title = make("title", {});
    place.append(title);
    svg.append(place);
    return { place, title, cable, names: `${a.name} – ${b.name}` };
  });
  const boxes = found.boxes.map((box) => {
    const { x, y, width, height } = box;
    const rect = make("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 2 });
    const title = make("title", {});
    const turn = box.turned ? `rotate(-90 ${x} ${y})` : "";
    svg.append(make("g", {}, rect, make("text", { x, y, transform: turn }, box.label), title));
    if (box.notes.length && !box.turned)
      svg.append(make("text", { x, y: y + height / 2 + 8 }, box.notes.join(", ")));
    return { rect, title, box };
  });
  $("fabric").replaceChildren(svg);
  parts = { cables, boxes };
  const { moments } = found;
  $("moment-label").hidden = !moments;
  if (moments) $("moment").max = moments.times_s.length - 1;
  $("moment").value = 0;
  $("legend").textContent = found.cables.some((each) => each.busy !== undefined)
    ? "Cables: blue to red by load, dashed where packets waited for credits. Slider: the writes "
      + "under way at a moment, hosts green while sending, orange while waiting."
    : "Dashed red cables are irregular.";
  paint();
}

// Loads of the whole run at 0, then the moments of the simulation.
function paint() {
  const at = Number($("moment").value) - 1;
  const { moments } = drawing;
  $("moment-time").textContent = at < 0 ? "whole run" : amount(moments.times_s[at], "s");
  parts.cables.forEach(({ place, title, cable, names }, i) => {
    const writes = at < 0 ? null : moments.cables[at][i];
    const load = writes === null ? cable.busy : writes / cable.count;
    const level = load === undefined ? 0 : Math.min(5, Math.ceil(5 * load));
    const waits = writes === null && cable.waiting > 0.05 ? "waits" : "";
    place.setAttribute("class", `load-${level} ${cable.kind ? "anomaly" : waits}`);
    title.textContent = `${names}: ${cable.count} cables`
      + (cable.kind ? `, ${cable.kind}` : "")
      + (writes !== null ? `, ${writes} writes under way`
        : cable.busy === undefined ? ""
          : `, load ${amount(100 * cable.busy)} %, waiting ${amount(100 * cable.waiting)} %`);
  });
  parts.boxes.forEach(({ rect, title, box }, i) => {
    const state = at < 0 ? "" : moments.hosts[at][i] ?? "";
    rect.setAttribute("class", `${state} ${box.odd ? "odd" : ""}`);
    title.textContent = [box.name, state, ...box.notes].filter(Boolean).join(", ");
  });
}

function paintUnits(frame) {
  if (!$("live").checked || !parts || !drawing.units || !frame.units) return;
  for (const each of frame.units) {
    const part = parts.boxes[drawing.units[each.unit]];
    if (!part) continue;
    part.rect.setAttribute("class", each.member ? each.state : "lost");
    part.title.textContent = [part.box.name, `unit ${each.unit}`, each.state,
      amount(each.throughput_bps, "b/s"), each.reason].filter(Boolean).join(", ");
  }
}
onFrame(paintUnits);

async function draw(name) {
  const progress = $("topology-progress");
  progress.hidden = name !== "simulate";
  progress.value = 0;
  say("");
  try {
    const source = $("source").value;
    const given = name === "simulate" ? { scenario: source } : { source };
    const found = await task(name, { ...given, overrides: [] }, (share) => (progress.value = share));
    show(found.drawing ?? found);
  } catch (error) {
    say(error.message);
  }
  progress.hidden = true;
}

$("topology-form").addEventListener("submit", (event) => {
  event.preventDefault();
  draw("topology");
});
$("topology-simulate").addEventListener("click", () => draw("simulate"));
$("moment").addEventListener("input", paint);
$("live").addEventListener("change", () => ($("live").checked ? listen() : parts && paint()));
