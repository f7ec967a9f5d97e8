"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const about = document.getElementById("about");
  const empty = [...about.childNodes];
  const picks = [...document.querySelectorAll("input.pick")];
  const DEPTH = 6;
  const LENGTH = 300;
  let current = null;
  let kept = false;

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) if (value !== null) node.setAttribute(name, value);
    for (const child of children.flat()) if (child !== null) node.append(child);
    return node;
  }
  const lane = () => picks.findIndex((pick) => pick.checked);
  const parts = (number) => [...document.querySelectorAll('[data-e="' + number + '"]')];
  const short = (text) => text.length > LENGTH ? text.slice(0, LENGTH) + "…" : text;
  const textOf = (number) => short(parts(number).map((part) => part.textContent).join("\n"));
  const chip = (dtype) => dtype < 0 ? el("span", {class: "chip none"}, "unknown")
    : el("span", {class: "chip " + data.dtypes[dtype][0]}, data.dtypes[dtype][1]);

  function link([file, row], from) {
    const text = file === from ? "line " + row : data.files[file] + ":" + row;
    return file < data.shown ? el("a", {href: "#f" + file + "L" + row}, text) : el("span", null, text);
  }
  function steps(file, scenario, numbers, path) {
    const items = numbers.filter((number) => !path.includes(number)).map((number) => {
      const [place, dtype, autocast, before] = data.steps[file][scenario][number];
      const [, , what] = data.places[place];
      const told = (what || "paths with different dtypes meet") + (autocast ? ", by autocast" : "");
      const deeper = path.length < DEPTH && before.length ? steps(file, scenario, before, [...path, number]) : null;
      return el("li", null, chip(dtype), " " + told + " ", link(data.places[place], file), deeper);
    });
    return items.length ? el("ul", {class: path.length ? null : "first"}, items) : null;
  }
  function describe(number) {
    const [file, fact, , row] = data.expressions[number];
    const [maybe, ...lanes] = data.facts[file][fact];
    const scenario = lane();
    const [dtype, numbers] = lanes[scenario];
    const why = steps(file, scenario, numbers, []);
    const inside = [];
    for (let outer = data.expressions[number][2]; outer >= 0; outer = data.expressions[outer][2]) inside.push(outer);
    return [
      el("code", {class: "what"}, textOf(number)),
      el("p", null, chip(dtype), maybe ? " if it is a tensor" : "", " in line " + row),
      why ? el("h2", null, "Where it was decided") : null, why,
      el("h2", null, "In every scenario"),
      el("table", null, lanes.map(([each], i) => el("tr", null,
        el("th", {scope: "row", class: i === scenario ? "now" : null}, data.scenarios[i]), el("td", null, chip(each))))),
      inside.length ? el("h2", null, "Inside of") : null,
      inside.length ? el("ul", {class: "first"}, inside.map((outer) => {
        const [, of] = data.expressions[outer];
        return el("li", null, chip(data.facts[file][of][scenario + 1][0]), el("code", {class: "inside"}, textOf(outer)));
      })) : null,
    ].filter((part) => part !== null);
  }
  function draw() {
    for (const part of document.querySelectorAll(".shown")) part.classList.remove("shown");
    about.classList.toggle("kept", kept);
    if (current === null) { about.replaceChildren(...empty); return; }
    for (const part of parts(current)) part.classList.add("shown");
    about.replaceChildren(...describe(current));
  }
  function show(number) {
    if (kept || number === current) return;
    current = number;
    draw();
  }
  function keep(number) {
    kept = !(kept && number === current);
    current = number;
    draw();
  }
  const numberOf = (node) => {
    const part = node.closest ? node.closest("code [data-e]") : null;
    return part ? Number(part.dataset.e) : null;
  };

  const firsts = [];
  const seen = new Set();
  for (const part of document.querySelectorAll("code [data-e]")) {
    if (!seen.has(part.dataset.e)) firsts.push(part);
    seen.add(part.dataset.e);
  }
  const rowOf = (part) => part.closest(".row");
  function focus(part) {
    if (!part) return;
    for (const other of document.querySelectorAll('code [tabindex="0"]')) other.tabIndex = -1;
    part.tabIndex = 0;
    part.focus();
  }
  function beside(part, step, sameRow) {
    let i = firsts.findIndex((other) => other.dataset.e === part.dataset.e);
    do i += step; while (firsts[i] && !sameRow && rowOf(firsts[i]) === rowOf(part));
    return firsts[i];
  }
  if (firsts.length) firsts[0].tabIndex = 0;

  document.addEventListener("mouseover", (event) => {
    const number = numberOf(event.target);
    if (number !== null) show(number);
  });
  document.addEventListener("focusin", (event) => {
    const number = numberOf(event.target);
    if (number !== null) show(number);
  });
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest ? event.target.closest("a[href^='#']") : null;
    const target = anchor && document.getElementById(anchor.getAttribute("href").slice(1));
    if (target) target.closest("details").open = true;
    const number = numberOf(event.target);
    if (number !== null && !String(getSelection())) keep(number);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { kept = false; draw(); return; }
    const number = numberOf(event.target);
    if (number === null) return;
    const moves = {ArrowRight: [1, true], ArrowLeft: [-1, true], ArrowDown: [1, false], ArrowUp: [-1, false]};
    if (event.key === "Enter") keep(number);
    else if (event.key in moves) focus(beside(event.target, ...moves[event.key]));
    else return;
    event.preventDefault();
  });
  for (const pick of picks) pick.addEventListener("change", draw);
})();
