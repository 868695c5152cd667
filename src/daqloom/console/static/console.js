// Pages of the console: navigation and login.

import { $, el, post, say, task } from "./tools.js";
import * as run from "./run.js";
import * as topology from "./topology.js";
import * as studies from "./studies.js";
import * as scenario from "./scenario.js";

const PAGES = { run, topology, studies, scenario };
let shown = null;

function show() {
  const name = location.hash.slice(1) in PAGES ? location.hash.slice(1) : "run";
  if (name === shown) return;
  for (const each of Object.keys(PAGES)) $(`page-${each}`).hidden = each !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shown = name;
  say("");
  document.title = `${name} – daqloom console`;
  PAGES[name].enter();
}

async function begin() {
  const answer = await fetch("/api/session");
  if (!answer.ok) return $("login").open || $("login").showModal();
  const { role } = await answer.json();
  $("login").close();
  $("role").textContent = role;
  document.body.dataset.role = role;
  for (const id of ["simulate", "topology-simulate"]) $(id).disabled = role !== "operate";
  show();
  task("scenarios", {}).then(
    ({ scenarios }) => $("names").replaceChildren(
      ...scenarios.map(({ name, title }) => el("option", { value: name }, title))),
    (error) => say(error.message));
}

async function logIn(token) {
  try {
    await post("/api/login", { token });
    $("login-failure").textContent = "";
  } catch (error) {
    $("login-failure").textContent = error.message;
  }
  await begin();
}

$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  logIn($("token").value);
  $("token").value = "";
});
window.addEventListener("logged-out", () => $("login").open || $("login").showModal());
window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return $("main").focus();
  if (document.body.dataset.role) show();
});

const given = location.hash.match(/^#token=(.+)$/);
if (given) {
  history.replaceState(null, "", "#run");
  logIn(given[1]);
} else {
  begin();
}
