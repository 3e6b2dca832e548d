"use strict";
/* The page of gazeveil explore. Where it is saved, its figures stand in the element #figures; else it asks its server, with the secret of its link. */
const el = (id) => document.getElementById(id);
const held = el("figures") ? JSON.parse(el("figures").textContent) : null;
const secret = location.hash.slice(1);
const POLL_MS = 600;

class Unreachable extends Error {}

async function ask(what, query = {}) {
  let answer;
  try {
    answer = await fetch(`api/${what}?${new URLSearchParams(query)}`, { headers: { "X-Gazeveil-Session": secret } });
  } catch {
    throw new Unreachable("gazeveil explore does not answer any more. Start it again and open its new link.");
  }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error.reason);
  return body;
}

/* One source of figures with two forms: what the file holds, or what the server says. */
const source = held
  ? {
      board: async () => held.board,
      picture: async (at) => held.pictures[at.mechanism][at.value][`${at.person}/${at.stimulus}`],
      recorded: async (at) => held.recorded[`${at.person}/${at.stimulus}`],
      attack: async (at) => held.attacks[at.mechanism],
    }
  : {
      board: () => ask("board"),
      picture: (at) => ask("picture", { people: at.people, person: at.person, stimulus: at.stimulus, mechanism: at.mechanism, value: at.value }),
      recorded: (at) => ask("picture", { people: at.people, person: at.person, stimulus: at.stimulus }),
      attack: (at) => ask("attack", { people: at.people, mechanism: at.mechanism, value: at.value }),
    };

let board, turn = 0;

const percent = (share) => `${Math.round(100 * share)} %`;
const count = (n, word) => `${n} ${n === 1 ? word : word === "person" ? "people" : word === "stimulus" ? "stimuli" : `${word}s`}`;

function fill(select, names) {
  select.replaceChildren(...names.map((name, i) => new Option(name, String(i))));
}

function here() {
  const chosen = [...document.querySelectorAll("#people input:checked")].map((box) => box.value);
  return { mechanism: Number(el("mechanism").value), value: Number(el("value").value), person: Number(el("person").value), stimulus: Number(el("stimulus").value), people: chosen.join(",") };
}

function showControls() {
  const chosen = board.mechanisms[Number(el("mechanism").value)];
  const slider = el("value");
  slider.max = String(chosen.values.length - 1);
  slider.disabled = chosen.values.length < 2;
  el("steps").replaceChildren(...chosen.values.map((_, i) => new Option("", String(i))));
  el("parameter").textContent = chosen.parameter || "no parameter";
  el("summary").textContent = chosen.summary;
}

function showValue() {
  const chosen = board.mechanisms[Number(el("mechanism").value)];
  const value = chosen.values[Number(el("value").value)];
  el("shown").textContent = value;
  el("value").setAttribute("aria-valuetext", `${chosen.parameter} ${value}`);
  const boxes = document.querySelectorAll("#people input");
  el("grouped").textContent = `People: ${document.querySelectorAll("#people input:checked").length} of ${boxes.length}`;
}

/* SVG by hand: text goes in as text, never as markup. */
function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function line(points, at) {
  let path = "", pen = false;
  for (const [x, y] of points) {
    if (y === null) { pen = false; continue; }
    path += `${pen ? "L" : "M"}${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`;
    pen = true;
  }
  return path;
}

/* Drawn at the width there is, so that letters keep their size. */
const room = (id) => Math.max(240, Math.min(560, el(id).clientWidth || 560));

function drawTrace(before, after, extent) {
  const wide = room("trace"), high = 320, left = 52, gap = 26, half = (high - gap - 30) / 2;
  const last = Math.max(1, ...before.t, ...after.t);
  const x = (t) => left + ((wide - left - 8) * t) / last;
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "Horizontal and vertical gaze over time, as recorded and as released." });
  [["x", extent[0], extent[1], "right"], ["y", extent[2], extent[3], "down"]].forEach(([key, low, up, word], i) => {
    const top = 8 + i * (half + gap);
    const values = [...before[key], ...after[key]].filter((v) => v !== null);
    const [least, most] = values.length ? [Math.max(low - (up - low), Math.min(...values)), Math.min(up + (up - low), Math.max(...values))] : [low, up];
    const span = most - least || 1;
    // Down is drawn downwards, and right upwards, as larger values of other figures are.
    const [above, below] = key === "x" ? [most, least] : [least, most];
    const at = { x, y: (v) => top + (half * Math.abs(Math.min(most, Math.max(least, v)) - above)) / span };
    drawing.append(svg("rect", { x: left, y: top, width: wide - left - 8, height: half, fill: "none", stroke: "var(--rule)" }));
    drawing.append(svg("text", { x: left - 6, y: top + 12, "text-anchor": "end" }, `${above.toFixed(0)}°`), svg("text", { x: left - 6, y: top + half, "text-anchor": "end" }, `${below.toFixed(0)}°`));
    drawing.append(svg("text", { x: left + 4, y: top + half + 16 }, `${word}, degrees`));
    drawing.append(svg("path", { d: line(after.t.map((t, j) => [t, after[key][j]]), at), fill: "none", stroke: "var(--vermilion)", "stroke-width": 1.3, class: "after" }));
    drawing.append(svg("path", { d: line(before.t.map((t, j) => [t, before[key][j]]), at), fill: "none", stroke: "var(--blue)", "stroke-width": 1.8, "stroke-dasharray": "5 3", class: "before" }));
  });
  drawing.append(svg("text", { x: wide - 8, y: high - 4, "text-anchor": "end" }, `0 to ${last.toFixed(0)} s`));
  el("trace").replaceChildren(drawing);
}

function drawMap(id, shades, label) {
  const canvas = el(id), scale = 6;
  canvas.width = shades[0].length * scale;
  canvas.height = shades.length * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--blue");
  shades.forEach((row, y) => row.forEach((shade, x) => {
    if (!shade) return;
    pen.globalAlpha = Math.sqrt(shade / 99);
    pen.fillRect(x * scale, y * scale, scale, scale);
  }));
  canvas.setAttribute("aria-label", label);
}

function drawRates(found, chosen, current) {
  const wide = room("rates"), high = 240, left = 52, bottom = 46, top = 10;
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img" });
  const n = chosen.values.length;
  const x = (i) => left + ((wide - left - 20) * (i + 0.5)) / n;
  const y = (share) => top + (high - top - bottom) * (1 - share);
  for (const share of [0, 0.5, 1]) {
    drawing.append(svg("line", { x1: left, x2: wide - 8, y1: y(share), y2: y(share), stroke: "var(--rule)" }), svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
  }
  const base = found.baseline;
  if (base && !base.refusal) {
    drawing.append(svg("line", { x1: left, x2: wide - 8, y1: y(base.value), y2: y(base.value), stroke: "var(--blue)", "stroke-dasharray": "5 3", "stroke-width": 1.6 }), svg("line", { x1: left, x2: wide - 8, y1: y(base.chance), y2: y(base.chance), stroke: "var(--muted)", "stroke-dasharray": "2 4", "stroke-width": 1.6 }));
  }
  chosen.values.forEach((value, i) => {
    const figure = found.values[i];
    drawing.append(svg("text", { x: x(i), y: high - 26, "text-anchor": "middle" }, value));
    if (!figure || figure.refusal) {
      drawing.append(svg("text", { x: x(i), y: y(0) - 6, "text-anchor": "middle" }, figure ? "refused" : "…"));
      return;
    }
    if (figure.low !== null && figure.high !== null) drawing.append(svg("line", { x1: x(i), x2: x(i), y1: y(figure.low), y2: y(figure.high), stroke: "var(--vermilion)", "stroke-width": 2 }));
    drawing.append(svg("circle", { cx: x(i), cy: y(figure.value), r: i === current ? 7 : 4.5, fill: i === current ? "var(--vermilion)" : "var(--paper)", stroke: "var(--vermilion)", "stroke-width": 2, class: "rate" }));
  });
  drawing.append(svg("text", { x: wide - 8, y: high - 6, "text-anchor": "end" }, chosen.parameter));
  const known = chosen.values.map((value, i) => [value, found.values[i]]).filter(([, f]) => f && !f.refusal).map(([value, f]) => `${value}: ${percent(f.value)}`);
  drawing.setAttribute("aria-label", `Share recognised at each value of ${chosen.parameter}. ${known.join(", ")}`);
  el("rates").replaceChildren(drawing);
}

function words(figure) {
  const range = figure.low === null || figure.high === null ? "no interval" : `95 % interval ${percent(figure.low)} to ${percent(figure.high)}`;
  return `${percent(figure.value)} of ${figure.n} ${figure.unit} (${range}; chance ${percent(figure.chance)})`;
}

function showFound(found, at) {
  const chosen = board.mechanisms[at.mechanism], figure = found.values[at.value], base = found.baseline;
  drawRates(found, chosen, at.value);
  const refused = figure && figure.refusal;
  el("headline").classList.toggle("refused", Boolean(refused));
  el("headline").textContent = !figure ? "Not known yet." : refused ? figure.refusal : `Recognised: ${words(figure)}.`;
  if (!base) el("change").textContent = "";
  else if (base.refusal) el("change").textContent = `As recorded: ${base.refusal}`;
  else {
    const points = figure && !refused && figure.unit === base.unit ? Math.round(100 * (figure.value - base.value)) : null;
    el("change").textContent = `As recorded: ${words(base)}.${points === null ? "" : ` Change: ${points > 0 ? "+" : points < 0 ? "−" : ""}${Math.abs(points)} points.`}`;
  }
  const who = figure && !refused ? `Strongest here: ${figure.attack}, ${figure.scenario} (learnt from / asked about), of ${figure.tried} tried, ${figure.repetitions} draws. ` : "";
  el("how").textContent = `${who}Points: strongest of the ${board.battery} battery (${board.attackers.join(", ")}) at each value, bars: 95 % over people; dashed: as recorded; dotted: chance.`;
}

function showPictures(before, after, at) {
  const refusal = after.refusal || before.refusal;
  if (refusal) {
    el("trace").replaceChildren();
    el("trace-caption").textContent = refusal;
    el("promise").textContent = el("exact").textContent = "";
    el("status").textContent = "";
    for (const id of ["map-before", "map-after"]) el(id).getContext("2d").clearRect(0, 0, el(id).width, el(id).height);
    return;
  }
  drawTrace(before.trace, after.trace, before.extent);
  el("trace-caption").textContent = after.trace.t.length ? `First seconds of ${board.people[at.person]}, ${board.stimuli[at.stimulus]}. Dashed: as recorded; solid: as released.` : "Nothing of this recording is released.";
  drawMap("map-before", before.map, "Where people looked, as recorded.");
  drawMap("map-after", after.map, "Where people look in the release.");
  el("map-caption").textContent = `All viewers of ${board.stimuli[at.stimulus]}, over the whole screen or sphere; each map is shaded up to its own darkest cell.`;
  el("promise").textContent = after.promise;
  el("exact").textContent = after.exact;
  el("status").textContent = after.status ? `promise: ${after.status}` : "";
  // A proof has no colour of its own here: beside people who are recognised it would be read as safety.
  el("status").className = `badge ${after.status === "proved" ? "none" : after.status}`;
}

async function watch(mine, at) {
  for (;;) {
    const found = await source.attack(at);
    if (mine !== turn) return;
    showFound(found, at);
    if (!found.left) { el("state").textContent = ""; return; }
    const cells = found.cells ? `, ${found.done} of ${found.cells} cells of this one` : "";
    el("state").textContent = `Attacking: ${count(found.left, "release")} left${cells}.`;
    await new Promise((done) => setTimeout(done, POLL_MS));
    if (mine !== turn) return;
  }
}

async function update() {
  const mine = ++turn, at = here();
  showValue();
  try {
    if (!held && !at.people) throw new Error("Nobody is chosen. Choose at least two people.");
    const [before, after] = await Promise.all([source.recorded(at), source.picture(at)]);
    if (mine !== turn) return;
    showPictures(before, after, at);
    await watch(mine, at);
  } catch (error) {
    if (mine === turn) el("state").textContent = error.message;
  }
}

async function start() {
  board = await source.board();
  fill(el("mechanism"), board.mechanisms.map((m) => m.name));
  fill(el("person"), board.people);
  fill(el("stimulus"), board.stimuli);
  const n = board.people_attacked ?? board.people.length, stimuli = board.stimuli_attacked ?? board.stimuli.length;
  el("about").textContent = `${count(n, "person")}, ${count(stimuli, "stimulus")}, ${count(board.recordings, "recording")}: choose a mechanism, move its parameter, and see what is released and who is still recognised.`;
  if (held) {
    el("note").textContent = "Traces, maps and promises on this page are of simulated people; the figures of attackers are of the people who were loaded. No recorded gaze is in this file.";
    el("foot").textContent = `Saved by gazeveil ${board.version}. The file holds everything it shows and asks nobody for anything.`;
  } else {
    el("note").textContent = "This page shows recorded gaze. It is served to this machine alone.";
    el("foot").textContent = "Save this page for sending on, without recorded gaze: gazeveil explore FOLDER --save explore.html";
    el("group").hidden = false;
    el("people").replaceChildren(...board.people.map((name, i) => {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox"; box.value = String(i); box.checked = true;
      label.append(box, name);
      return label;
    }));
  }
  el("note").hidden = false;
  showControls();
  el("mechanism").addEventListener("change", () => { showControls(); el("value").value = "0"; update(); });
  for (const id of ["value", "person", "stimulus", "people"]) el(id).addEventListener(id === "value" ? "input" : "change", update);
  el("controls").addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; update(); } });
  document.body.dataset.ready = "yes";
  await update();
}

start().catch((error) => { el("about").textContent = error.message; });
