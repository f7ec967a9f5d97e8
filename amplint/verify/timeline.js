"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const CONTEXT = 3;
  const MAX_MARKS = 1500;
  const CHANGES = ["failed", "nonfinite", "promotion", "autocast-cast", "explicit-cast", "mixed", "op-output"];
  const ORDER = [...CHANGES, "created", "kept"];
  const LANES = [
    ["failed, inf, NaN", ["failed", "nonfinite"]],
    ["promoted", ["promotion"]],
    ["autocast cast", ["autocast-cast"]],
    ["explicit cast", ["explicit-cast"]],
    ["mixed, changed", ["mixed", "op-output"]],
    ["made, kept", ["created", "kept"]],
  ];
  const SHORT = {float64: "f64", float32: "f32", float16: "f16", bfloat16: "bf16", int64: "i64", int32: "i32", int16: "i16", int8: "i8", uint8: "u8", complex64: "c64", complex128: "c128"};
  const state = {run: 0, lines: "all", phase: "both", unfolded: new Set()};

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  function svg(tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  const short = (dtype) => SHORT[dtype] || dtype.replace("float8_", "f8 ");
  const hue = (dtype) => !dtype ? "other" : dtype.startsWith("float8") ? "f8" : ["f64", "f32", "f16", "bf16"].includes(SHORT[dtype]) ? SHORT[dtype] : "other";
  const bad = (event) => event.kind === "failed" || event.kind === "nonfinite";
  const floats = (dtypes) => dtypes.filter((dtype) => /float/.test(dtype));
  const shape = (sizes) => "[" + sizes.join(", ") + "]";
  const times = (count) => count > 1 ? "×" + count.toLocaleString("en") : "";
  function size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
    return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes).toLocaleString("en")) + " " + units[unit];
  }

  function summaryOf(event) {
    const from = [...new Set(floats(event.inputs).length ? floats(event.inputs) : event.inputs)].map(short);
    const to = event.output ? short(event.output) : "";
    const arrow = (from.length ? from.join(" + ") + " → " : "") + to;
    switch (event.kind) {
      case "failed": return ["failed", from.join(" × ")];
      case "nonfinite": return [/^NaN/.test(event.note) ? "NaN" : "inf", to];
      case "promotion": return [event.inputs.length > 1 ? "promoted" : "hidden cast", arrow];
      case "autocast-cast": return ["autocast", arrow];
      case "explicit-cast": return ["cast", arrow];
      case "mixed": return ["mixed", arrow];
      case "op-output": return [event.inputs.length > 1 || event.op.indexOf("_to_copy") < 0 ? "result" : "hidden cast", arrow];
      case "created": return ["made", to];
      default: return ["kept", to];
    }
  }
  function chip(event, count, bytes, phase) {
    const [what, dtypes] = summaryOf(event);
    const cost = event.kind === "promotion" && bytes ? "+" + size(bytes) : "";
    return el("span", {class: "chip " + event.kind + " " + (bad(event) ? "bad" : hue(event.output)), title: data.kinds[event.kind]},
      phase === "backward" ? el("span", {class: "phase what"}, "backward") : null,
      el("span", {class: "what"}, what), dtypes || null,
      cost ? el("span", {class: "what"}, cost) : null,
      count > 1 ? el("span", {class: "times"}, times(count)) : null);
  }
  function chips(events) {
    const groups = new Map();
    const telling = events.filter((event) => event.phase === "forward" || CHANGES.includes(event.kind));
    for (const event of (telling.length ? telling : [...events]).sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))) {
      const key = [event.phase, ...summaryOf(event), event.kind].join("|");
      const group = groups.get(key) || {event, count: 0, bytes: 0};
      group.count += event.count;
      group.bytes += event.bytes;
      groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => (a.event.phase < b.event.phase) - (a.event.phase > b.event.phase))
      .map((group) => chip(group.event, group.count, group.bytes, group.event.phase));
  }
  function operands(event) {
    return event.inputs.map((dtype, i) => el("span", {class: "chip " + hue(dtype)},
      (event.operands[i] ? event.operands[i] + ": " : "") + dtype + shape(event.shapes[i] || [])));
  }
  function detail(events) {
    const rows = [...events].sort((a, b) => a.order - b.order).map((event) => el("tr", null,
      el("td", {class: "num"}, String(event.order)),
      el("td", null, event.kind + (event.phase === "backward" ? ", backward" : "")),
      el("td", {class: "mono"}, event.op || "(before dispatch)", event.function ? el("div", null, event.function) : null),
      el("td", null, el("div", {class: "operands"}, operands(event))),
      el("td", {class: "mono"}, event.output || ""),
      el("td", {class: "num"}, event.count.toLocaleString("en")),
      el("td", {class: "num"}, event.bytes ? size(event.bytes) : ""),
      el("td", null, event.note || "")));
    const head = ["order", "what", "operation", "operands at first", "result", "times", "bytes", "note"];
    return el("div", {class: "detail"}, el("table", null,
      el("thead", null, el("tr", null, head.map((name) => el("th", null, name)))), el("tbody", null, rows)));
  }

  function runsPanel() {
    if (data.runs.length < 2) return null;
    const modes = [...new Set(data.runs.map((run) => run.mode))];
    const targets = [...new Set(data.runs.map((run) => run.target))];
    const devices = new Set(data.runs.map((run) => run.device + run.run_on));
    const tables = targets.map((target) => {
      const rows = new Map();
      data.runs.forEach((run, i) => {
        if (run.target !== target) return;
        const name = run.scenario + (devices.size > 1 ? " (" + run.device + " on " + run.run_on + ")" : "");
        if (!rows.has(name)) rows.set(name, new Map());
        rows.get(name).set(run.mode, [...(rows.get(name).get(run.mode) || []), i]);
      });
      const own = modes.filter((mode) => [...rows.values()].some((cells) => cells.has(mode)));
      const button = (i) => el("button", {type: "button", class: "v-" + data.runs[i].verdict, "aria-pressed": String(i === state.run), onclick: () => select(i)}, data.runs[i].verdict);
      return el("table", null, targets.length > 1 ? el("caption", null, target) : null,
        el("thead", null, el("tr", null, el("th", {scope: "col"}, "scenario"), own.map((mode) => el("th", {scope: "col"}, mode)))),
        el("tbody", null, [...rows].map(([name, cells]) => el("tr", null, el("th", {scope: "row"}, name),
          own.map((mode) => el("td", null, (cells.get(mode) || []).map(button)))))));
    });
    return el("section", {class: "panel"}, el("h2", null, "Runs"), el("div", {class: "runs"}, tables));
  }

  function aboutPanel(run) {
    const fact = (label, value) => value ? el("span", null, el("span", {class: "label"}, label + " "), el("b", null, value)) : null;
    const hardware = run.device === run.run_on ? run.device : run.device + " policy on " + run.run_on + " kernels";
    const confirmed = run.verdict === "confirmed";
    return el("section", {class: "panel"},
      el("div", {class: "about"},
        el("span", {class: "verdict v-" + run.verdict}, run.verdict),
        fact("scenario", run.scenario), fact("mode", run.mode), fact("device", hardware), fact("torch", run.torch),
        fact("rule", run.codes.join(", ")), run.seconds ? fact("took", run.seconds.toFixed(1) + " s") : null,
        data.runs.length > 1 ? fact("target", run.target) : null),
      run.error ? el("pre", {class: confirmed ? "error" : "error quiet"}, run.error) : null,
      run.reproduce ? el("p", {class: "again"}, "Run it again: ", el("code", null, run.reproduce)) : null,
      run.dropped ? el("p", {class: "again"}, run.dropped.toLocaleString("en") + " further events were not kept.") : null);
  }

  function cards(run) {
    const t = run.totals;
    const card = (number, label, under, heat, onclick) => el(onclick ? "button" : "div", {class: "panel card " + heat, onclick, type: onclick ? "button" : null},
      el("span", {class: "number"}, number), el("span", null, label), el("br"), el("span", {class: "under"}, under));
    const n = (value) => value.toLocaleString("en");
    const place = (event) => data.files[event.filename].name + ":" + event.row;
    const failure = run.failure;
    const nonfinite = run.first_nonfinite;
    return el("section", {class: "cards"},
      card(n(t["autocast-cast"].count), "casts by autocast", size(t["autocast-cast"].bytes) + " written", ""),
      card(n(t["explicit-cast"].count), "explicit casts", size(t["explicit-cast"].bytes) + " written", ""),
      card(n(t.promotion.count), "silent promotions", size(t.promotion.bytes) + " moved by them", t.promotion.count ? "warm" : "", t.promotion.count ? () => { state.lines = state.lines === "promotions" ? "all" : "promotions"; draw(); } : null),
      card(nonfinite ? n(t.nonfinite.count) : "none", "inf or NaN", nonfinite ? "first at " + place(nonfinite) : "in any operation's result", nonfinite ? (run.verdict === "confirmed" ? "hot" : "warm") : "", nonfinite ? () => jump(nonfinite) : null),
      card(failure ? "1" : "none", "failure", failure ? "at " + place(failure) : "ran to its end", failure ? "hot" : "", failure ? () => jump(failure) : null));
  }

  function shown(event) {
    if (state.phase !== "both" && event.phase !== state.phase) return false;
    if (state.lines === "promotions") return event.kind === "promotion";
    return state.lines === "all" || CHANGES.includes(event.kind);
  }

  function strip(run) {
    const events = run.events.filter((event) => state.phase === "both" || event.phase === state.phase);
    if (!events.length) return null;
    const marks = events.slice(0, MAX_MARKS);
    const pitch = Math.max(7, Math.min(24, 1160 / marks.length));
    const height = LANES.length * 20;
    const width = Math.max(marks.length * pitch + 70, 400);
    const drawing = svg("svg", {width, height: height + 18, role: "group", "aria-label": "Events in the order of execution"});
    LANES.forEach((_, i) => { if (i % 2 === 0) drawing.append(svg("rect", {class: "lane", x: 0, y: i * 20, width, height: 20})); });
    marks.forEach((event, i) => {
      if (event.phase === "backward") drawing.append(svg("rect", {class: "backward", x: 6 + i * pitch, y: 0, width: pitch, height}));
    });
    marks.forEach((event, i) => {
      const lane = LANES.findIndex(([, kinds]) => kinds.includes(event.kind));
      const go = () => jump(event);
      drawing.append(svg("rect", {class: "mark " + (bad(event) ? "bad" : hue(event.output)), x: 7 + i * pitch, y: lane * 20 + 4, width: pitch - 2, height: 12, rx: 2, tabindex: bad(event) || event.kind === "promotion" ? 0 : -1,
        onclick: go, onkeydown: (press) => { if (press.key === "Enter") go(); }},
        svg("title", {}, event.order + ". " + summaryOf(event).join(" ") + " " + times(event.count) + "\n" + (event.function || event.op) + "\n" + data.files[event.filename].name + ":" + event.row + (event.phase === "backward" ? " (backward)" : ""))));
    });
    const first = marks.findIndex((event) => event.phase === "backward");
    if (first > 0) {
      drawing.append(svg("line", {class: "edge", x1: 6 + first * pitch, x2: 6 + first * pitch, y1: 0, y2: height + 14}));
      drawing.append(svg("text", {x: 10 + first * pitch, y: height + 13}, "backward"));
    }
    drawing.append(svg("text", {x: 6, y: height + 13}, first === 0 ? "backward" : "forward"));
    const more = events.length - marks.length;
    return el("section", {class: "panel"}, el("h2", null, "In order of execution" + (more ? " (the first " + MAX_MARKS.toLocaleString("en") + "; " + more.toLocaleString("en") + " more follow)" : "")),
      el("div", {class: "strip"}, el("div", {class: "lanes"}, LANES.map(([name]) => el("div", null, name))), el("div", {class: "scroll"}, drawing)));
  }

  function tools(run) {
    const group = (name, label, choices) => el("span", {class: "group", role: "group", "aria-label": label}, choices.map(([value, text]) =>
      el("button", {type: "button", "aria-pressed": String(state[name] === value), onclick: () => { state[name] = value; draw(); }}, text)));
    const dtypes = [...new Set(run.events.flatMap((event) => [...floats(event.inputs), ...floats([event.output || ""])]))].sort();
    return el("section", {class: "panel tools"},
      group("lines", "Which lines", [["all", "All"], ["changed", "Changes"], ["promotions", "Promotions"]]),
      group("phase", "Which phase", [["both", "Both"], ["forward", "Forward"], ["backward", "Backward"]]),
      el("span", {class: "legend"}, el("span", {class: "label"}, "Colour: the result's dtype"), dtypes.map((dtype) => el("span", {class: "chip " + hue(dtype)}, short(dtype) === dtype ? dtype : short(dtype) + " " + dtype))));
  }

  function ends(run) {
    return [run.failure, run.verdict === "confirmed" ? run.first_nonfinite : null].filter(Boolean);
  }
  function told(event, error) {
    return el("div", {class: "told"}, el("p", null, event.note || error || "failed here"),
      el("div", {class: "operands"}, event.op || event.function ? el("span", {class: "chip other"}, event.op || event.function) : null, operands(event)));
  }
  function resultOf(events) {
    const last = [...events].filter((event) => event.output).sort((a, b) => (a.phase === "forward") - (b.phase === "forward") || a.order - b.order).pop();
    return last ? hue(last.output) : "other";
  }
  function lineId(file, row) { return "f" + file + "L" + row; }

  function fileSection(run, index, events) {
    const byRow = new Map();
    for (const event of events) byRow.set(event.row, [...(byRow.get(event.row) || []), event]);
    const stops = ends(run).filter((event) => event.filename === index);
    for (const event of stops) if (!byRow.has(event.row)) byRow.set(event.row, []);
    const lines = data.files[index].lines;
    const last = Math.max(lines.length, ...byRow.keys());
    const visible = new Set();
    for (const row of byRow.keys()) for (let r = row - CONTEXT; r <= row + CONTEXT; r++) if (r >= 1 && r <= last) visible.add(r);
    const box = el("div", {class: "lines"});
    const line = (row) => {
      const here = byRow.get(row);
      const ending = stops.filter((event) => event.row === row);
      const node = el("div", {id: lineId(index, row), class: "row" + (here ? " has " + resultOf(here) : "") + (ending.length ? " failed" : "")},
        el("span", {class: "n"}, row ? String(row) : ""), el("span", {class: "code"}, row ? lines[row - 1] || (lines.length ? "" : "(source not available)") : "(below no line of user code)"),
        here ? el("span", {class: "chips"}, chips(here)) : null);
      if (here && here.length) {
        node.tabIndex = 0;
        node.setAttribute("aria-expanded", "false");
        const toggle = () => {
          const next = node.nextElementSibling;
          const open = next && next.classList.contains("detail");
          if (open) next.remove(); else node.after(detail(here));
          node.setAttribute("aria-expanded", String(!open));
        };
        node.addEventListener("click", () => { if (!String(getSelection())) toggle(); });
        node.addEventListener("keydown", (press) => { if (press.key === "Enter") toggle(); });
      }
      box.append(node);
      for (const event of ending) box.append(told(event, run.error));
    };
    const rows = lines.length ? [...Array(last).keys()].map((i) => i + 1) : [...byRow.keys()].sort((a, b) => a - b);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      const key = state.run + ":" + index + ":" + row;
      if (!lines.length || visible.has(row)) { line(row); continue; }
      let end = i;
      while (end + 1 < rows.length && !visible.has(rows[end + 1])) end += 1;
      const count = end - i + 1;
      if (state.unfolded.has(key) || count < 3) for (let j = i; j <= end; j++) line(rows[j]);
      else box.append(el("button", {type: "button", class: "fold", onclick: () => { state.unfolded.add(key); draw(); }}, "⋯ lines " + row + " to " + rows[end]));
      i = end;
    }
    const moved = events.filter((event) => event.kind === "promotion").reduce((sum, event) => sum + event.bytes, 0);
    const note = byRow.size + (byRow.size === 1 ? " line" : " lines") + (moved ? ", " + size(moved) + " moved by promotion" : "");
    return el("details", {class: "panel file", open: ""}, el("summary", null, data.files[index].name, el("span", null, note)), box);
  }

  function draw() {
    const run = data.runs[state.run];
    const events = run.events.filter(shown);
    const files = [...new Set(events.map((event) => event.filename))];
    for (const event of ends(run)) if (!files.includes(event.filename)) files.push(event.filename);
    const keep = [...document.querySelectorAll(".scroll, .runs")].map((node) => node.scrollLeft);
    page.replaceChildren(...[runsPanel(), aboutPanel(run), cards(run), strip(run), tools(run),
      ...files.map((file) => fileSection(run, file, events.filter((event) => event.filename === file))),
      files.length ? null : el("p", {class: "panel empty"}, run.events.length ? "No line does this. Choose All and Both to see every line." : "Nothing was recorded in this run."),
    ].filter(Boolean));
    [...document.querySelectorAll(".scroll, .runs")].forEach((node, i) => { node.scrollLeft = keep[i] || 0; });
  }
  function select(run) {
    state.run = run;
    history.replaceState(null, "", "#run" + run);
    draw();
  }
  function jump(event) {
    if (!shown(event)) { state.lines = "all"; state.phase = "both"; draw(); }
    const node = document.getElementById(lineId(event.filename, event.row));
    if (!node) return;
    const file = node.closest("details");
    if (file) file.open = true;
    node.scrollIntoView({block: "center"});
    node.classList.remove("reached");
    void node.offsetWidth;
    node.classList.add("reached");
  }
  const asked = /^#run(\d+)$/.exec(location.hash);
  if (asked && data.runs[Number(asked[1])]) state.run = Number(asked[1]);
  else state.run = Math.max(0, data.runs.findIndex((run) => run.verdict === "confirmed"));
  draw();
})();
