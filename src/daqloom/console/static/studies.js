// Studies: progress, figures, tables and provenance, one or two beside each other.

import { $, el, say, table, task } from "./tools.js";

let isListed = false;

export async function enter() {
  if (isListed) return;
  try {
    const { studies } = await task("list_studies", {});
    const options = studies.map(({ name, title }) => el("option", { value: name }, `${name}: ${title}`));
    $("study-other").replaceChildren(el("option", { value: "" }, "none"),
      ...options.map((each) => each.cloneNode(true)));
    $("study").replaceChildren(...options);
    isListed = true;
  } catch (error) {
    say(error.message);
  }
}

$("studies-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  say("");
  const names = [$("study").value, $("study-other").value].filter(Boolean);
  const given = { store: $("store").value, quick: $("quick").checked };
  $("shown").replaceChildren(...names.map((name) => el("p", {}, `reading ${name} …`)));
  try {
    const found = await Promise.all(names.map((name, i) => task("study", { name, ...given },
      (share) => ($("shown").children[i].textContent = `${name}: ${Math.round(100 * share)} %`))));
    $("shown").replaceChildren(...found.map((each, i) => part(names[i], each, found[1 - i])));
  } catch (error) {
    $("shown").replaceChildren();
    say(error.message);
  }
});

function part(name, found, other) {
  const known = new Map((other?.rows ?? []).map((row) => [row[0], row]));
  const rows = found.rows && table(found.head, found.rows);
  found.rows?.forEach((row, i) => {
    const match = known.get(row[0]);
    row.forEach((value, j) => {
      if (match && match[j] !== undefined && match[j] !== value)
        rows.tBodies[0].rows[i].cells[j].className = "differs";
    });
  });
  return el("article", {},
    el("h3", {}, name), el("p", {}, found.title),
    el("p", {}, el("progress", { max: found.tasks, value: found.done, "aria-label": `Progress of ${name}` }),
      ` ${found.done} of ${found.tasks} answers`),
    ...(found.figures ?? []).map(({ heading, sentences, described, svg }) => el("figure", {},
      el("h4", {}, heading), ...sentences.map((each) => el("p", {}, each)),
      el("img", { class: "plate", alt: described, src: `data:image/svg+xml;base64,${svg}` }))),
    ...(rows ? [el("h4", {}, "Numbers"),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers of ${name}` }, rows),
      el("h4", {}, "Provenance"),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Provenance of ${name}` },
        table(["", ""], found.provenance))] : []));
}
