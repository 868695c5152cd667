// The run: state, commands, charts, units, losses, events, connections, software switch.

import { $, amount, el, post, say, table } from "./tools.js";

const MOST_POINTS = 3600;
const MANY = 10; // segments resent, from which a pair is framed
const WAITS = ["source", "peer", "barrier", "consumer"];
const CHARTS = {
  rate: [["events", (t) => t.event_rate_hz]],
  throughput: [["Gb/s", (t) => t.throughput_bps / 1e9]],
  latency: [["median", (t) => t.latency_p50_s * 1e3], ["99 %", (t) => t.latency_p99_s * 1e3]],
  waits: WAITS.map((name) => [name, (t) => t[`wait_${name}`]]),
};
const charts = {};
const rows = new Map();
let source = null;
const listeners = [];
let frames = 0;
let refused; // number of the last request that was refused

export const onFrame = (listener) => listeners.push(listener);

export function enter() {
  listen();
  resize();
}

// One connection for all pages; the server polls the run only while somebody looks.
export function listen() {
  if (source) return;
  source = new EventSource("/api/run");
  source.onmessage = (event) => {
    const frame = JSON.parse(event.data);
    if (frame.past) {
      reset(frame.past);
      return resize();
    }
    draw(frame);
    for (const each of listeners) each(frame);
    frames += 1;
    document.body.dataset.frames = frames;
  };
  source.onerror = () => {
    mark("no answer", "the connection to the console is interrupted; the page tries again");
    if (source.readyState !== EventSource.CLOSED) return;
    source = null;
    const again = () => setTimeout(listen, 3000);
    fetch("/api/session").then(
      (answer) => (answer.ok ? again() : window.dispatchEvent(new Event("logged-out"))), again);
  };
}

const values = (name, total) =>
  [total.at, ...CHARTS[name].map(([, of]) => of(total))].map((v) => (Number.isFinite(v) ? v : null));

function reset(past) {
  for (const name of Object.keys(CHARTS)) {
    const columns = past.map((total) => values(name, total));
    setPoints(name, [null, ...CHARTS[name]].map((_, i) => columns.map((each) => each[i])));
  }
}

function setPoints(name, points) {
  const chart = (charts[name] ??= makeChart(name));
  chart.points = points;
  chart.setData(points);
}

const clock = (at) => (at ? new Date(1000 * at).toTimeString().slice(0, 8) : "–");

function makeChart(name) {
  const css = getComputedStyle(document.documentElement);
  const colour = (each) => css.getPropertyValue(each).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 0.5 } };
  const series = CHARTS[name].map(([label], i) =>
    ({ label, stroke: colour(`--c${i + 1}`), width: 1.6, value: (_, v) => amount(v) }));
  return new window.uPlot({
    width: 320, height: 190, series: [{ value: (_, at) => clock(at) }, ...series],
    axes: [{ ...axis, space: 80, values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: 70, values: (_, ticks) => ticks.map((each) => amount(each)) }],
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05] } },
  }, null, $(`chart-${name}`));
}

function resize() {
  for (const [name, each] of Object.entries(charts)) {
    const width = $(`chart-${name}`).clientWidth;
    if (width) each.setSize({ width, height: 190 });
  }
}
window.addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [name, { points }] of Object.entries(charts)) {
    charts[name].destroy();
    delete charts[name];
    setPoints(name, points);
  }
  resize();
});

function mark(phase, about, failure = "") {
  const badge = $("phase");
  if (badge.textContent !== phase) badge.textContent = phase;
  badge.dataset.kind = phase;
  $("about").textContent = about;
  if ($("failure").textContent !== failure) $("failure").textContent = failure;
}

export function draw(frame) {
  drawSwitch(frame.switch);
  if (frame.failure !== undefined && !frame.run) {
    mark("no answer", "", frame.failure);
    return drawCommands([]);
  }
  const { total } = frame;
  const number = frame.number === null ? "" : `, number ${frame.number}`;
  mark(frame.phase,
    `${frame.scenario}, run ${frame.run}${number}, epoch ${frame.epoch} ${frame.pending}`, frame.failure);
  drawCommands(frame.can);
  drawRefusal(frame.refusal);
  const tiles = { "event rate": amount(total.event_rate_hz, "Hz"),
    "throughput": amount(total.throughput_bps, "b/s"),
    "latency, 99 %": amount(total.latency_p99_s, "s"),
    "lost": amount(total.lost_hz, "Hz"), "disk left": amount(total.disk_free_bytes, "B"),
    "members": `${total.members} of ${frame.units.length}`,
    "since the start": `${Math.floor(total.time_s)} s` };
  $("tiles").replaceChildren(...Object.entries(tiles).map(([name, value]) =>
    el("div", {}, el("b", {}, value), name)));
  for (const [name, { points }] of Object.entries(charts)) {
    values(name, total).forEach((value, i) => {
      if (points[i].push(value) > MOST_POINTS) points[i].shift();
    });
    charts[name].setData(points);
  }
  drawUnits(frame.units);
  drawMatrix(frame.connections ?? []);
  $("losses").replaceChildren(table(["cause", "number"],
    frame.losses.map(([cause, number]) => [cause.replaceAll("_", " "), number])));
  const log = frame.events.slice().reverse().map(([s, text]) => `${s.toFixed(2)} s  ${text}`);
  if ($("events").firstChild?.textContent !== log[0] || $("events").children.length !== log.length)
    $("events").replaceChildren(...log.map((each) => el("li", {}, each)));
}

function drawCommands(can) {
  const names = can.filter((each) => !["reset", "include", "exclude"].includes(each));
  if ($("commands").dataset.names === names.join()) return;
  $("commands").dataset.names = names.join();
  const disabled = document.body.dataset.role !== "operate";
  $("settings-label").hidden = disabled || !names.includes("configure");
  $("commands").replaceChildren(...names.map((name) =>
    el("button", { type: "button", disabled, onclick: () => command({ command: name }) }, name)));
}

// A request may be refused after its answer, when its hooks and new values are known.
function drawRefusal([requests, refusal]) {
  if (refusal && refused !== undefined && requests !== refused) say(refusal);
  refused = refusal ? requests : 0;
}

// New values for `configure`: KEY=VALUE, separated by semicolons.
const settings = () => $("settings").value.split(";").map((each) => each.trim()).filter(Boolean);

async function command(wanted) {
  if (wanted.command === "configure") wanted.settings = settings();
  if (wanted.command === "exclude" && !confirm(`Build without unit ${wanted.units[0]}?`)) return;
  if (wanted.command === "exit" && !confirm("End the run and all its units?")) return;
  try {
    await post("/api/run", wanted);
    say("");
    if (wanted.command === "configure") $("settings").value = "";
  } catch (error) {
    say(error.message);
  }
}

const COLUMNS = { "unit": (u) => u.unit, "state": (u) => u.state, "host": (u) => u.host,
  "pid": (u) => u.pid || "", "event rate": (u) => amount(u.event_rate_hz, "Hz"),
  "throughput": (u) => amount(u.throughput_bps, "b/s"),
  "waits for": (u) => WAITS.filter((name) => u[`wait_${name}`] > 0.01)
    .map((name) => `${name} ${percent(u[`wait_${name}`])}`).join(", "),
  "in": (u) => percent(u.source_fill), "out": (u) => percent(u.output_fill),
  "lost": (u) => amount(u.lost_hz, "Hz"), "last loss": (u) => u.reason };

const percent = (share) => (share === undefined ? "" : `${Math.round(100 * share)} %`);

function change(unit, { name, value }) {
  const about = name === "reset" ? { unit } : { units: [unit], sources: value === "source" };
  return command({ command: name, ...about });
}

// A row is made once; later only changed cells and changed places are touched.
function drawUnits(units) {
  if (rows.size !== units.length) {
    rows.clear();
    $("units").replaceChildren(table([...Object.keys(COLUMNS), ""], []));
  }
  const body = $("units").firstChild.tBodies[0];
  units.forEach((each, place) => {
    const { unit } = each;
    if (!rows.has(unit)) {
      const button = el("button", { type: "button", onclick: () => change(unit, button) });
      const cells = Object.keys(COLUMNS).map(() => el("td"));
      rows.set(unit, el("tr", {}, ...cells, el("td", {}, button)));
    }
    const row = rows.get(unit);
    Object.values(COLUMNS).forEach((of, i) => {
      const text = String(of(each));
      if (row.cells[i].textContent !== text) row.cells[i].textContent = text;
    });
    row.className = each.member ? "" : "odd";
    const button = row.lastChild.firstChild;
    const isThere = each.member || each.state === "available";
    const name = each.excluded ? "include" : isThere ? "exclude" : "reset";
    if (button.name !== name) [button.name, button.textContent] = [name, `${name} ${unit}`];
    button.value = each.excluded;
    button.hidden = document.body.dataset.role !== "operate";
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
  });
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
      return el("td", { class: trip > slow || lost >= MANY ? "slow" : "" },
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
