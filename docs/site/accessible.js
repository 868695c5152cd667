// What the theme lacks for keyboards and screen readers: tables that scroll, the name of the search.
document$.subscribe(() => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table) => (table.tabIndex = 0));
  document.querySelector(".md-search").setAttribute("aria-label", "Search");
});
