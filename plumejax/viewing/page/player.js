"use strict";
// Replays the episodes of a report: the plume, the way, and what the agent had in mind.

const told = JSON.parse(document.getElementById("data").textContent);
const el = (id) => document.getElementById(id);
const DARK = "#10141c", SOURCE = "#d55e00", WIND = "#56b4e9", OBJECT = "#009e73", HIT = "#0072b2";
const AGENTS = ["#ffffff", "#e69f00", "#cc79a7", "#56b4e9"];
const MAP = 480, MIND = 360;

let palette = null; // Uint32Array[256]
let shown = null; // the episode that is shown, unpacked
let now = 0;
let playing = false;
let last = 0; // when the last step was made, ms

const KINDS = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

async function unpack(array) {
  if (!array) return null;
  const text = atob(array.data);
  const read = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([read]).stream().pipeThrough(new DecompressionStream("deflate"));
  const values = new KINDS[array.dtype](await new Response(stream).arrayBuffer());
  return { shape: array.shape, values };
}

// Shares of a range, as numbers.
const spread = (values, low, high) => Array.from(values, (n) => low + ((high - low) * n) / 65535);

async function ways(arrays, [left, right, bottom, top]) {
  const read = await Promise.all((arrays ?? []).map(unpack));
  return read.map(({ values }) => {
    const x = spread(values.filter((_, i) => i % 2 === 0), left, right);
    const y = spread(values.filter((_, i) => i % 2 === 1), bottom, top);
    return x.map((each, i) => [each, y[i]]);
  });
}

const brief = (number) =>
  number !== 0 && (Math.abs(number) >= 1e5 || Math.abs(number) < 1e-3)
    ? number.toExponential(1)
    : String(+number.toPrecision(4));

const pixel = (r, g, b) => new Uint32Array(new Uint8Array([r, g, b, 255]).buffer)[0];
// Blue through white to vermilion, for what is below and above 0.
const signed = Uint32Array.from({ length: 256 }, (_, i) => {
  const share = i / 127.5 - 1;
  const end = share < 0 ? [0, 114, 178] : [213, 94, 0];
  return pixel(...end.map((c) => Math.round(255 + (c - 255) * Math.abs(share))));
});

async function show(number) {
  const episode = told.episodes[number];
  const { extent } = episode;
  const [field, free, belief, hidden, total, odour, heading] = await Promise.all(
    ["field", "free", "belief", "hidden", "total", "odour", "heading"].map((name) => unpack(episode[name])),
  );
  shown = {
    ...episode,
    field,
    free,
    belief,
    hidden,
    total: total.values,
    roots: odour && spread(odour.values, 0, Math.cbrt(episode.most)),
    heading: heading && spread(heading.values, 0, 360),
    agents: await ways(episode.agents, extent),
    objects: await ways(episode.objects, extent),
  };
  el("episode").value = String(number);
  el("at").max = String(episode.steps);
  const [left, right, bottom, top] = extent;
  const scale = MAP / Math.max(right - left, top - bottom);
  size(el("map"), (right - left) * scale, Math.max(40, (top - bottom) * scale));
  const mind = belief ? "belief" : hidden ? "hidden" : "";
  el("beside").hidden = !mind;
  if (belief) {
    const [, rows, columns] = belief.shape;
    size(el("mind"), (MIND * columns) / Math.max(rows, columns), Math.max(30, (MIND * rows) / Math.max(rows, columns)));
  } else if (hidden) size(el("mind"), MIND, Math.min(320, 5 * hidden.shape[1]));
  const unit = episode.unit ? `, ${episode.unit}` : "";
  const span = (a, b) => `${brief(a)} to ${brief(b)}`;
  el("of-map").textContent = `x ${span(left, right)}, y ${span(bottom, top)}${unit}`;
  el("of-trace").textContent = episode.odour
    ? `Odour at the agent (${episode.odour_unit}; drawn by its cube root, at most ${brief(episode.most)})${episode.hits ? ", hits as ticks" : ""}; a click goes there`
    : "Return so far; a click goes there";
  for (const id of ["hit-before", "hit-after"]) el(id).hidden = !episode.hits?.length;
  go(0);
}

function size(canvas, width, height) {
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  canvas.style.width = `${Math.round(width)}px`;
  canvas.style.height = "auto";
  canvas.getContext("2d").imageSmoothingEnabled = false;
}

function go(step) {
  now = Math.max(0, Math.min(shown.steps, Math.round(step)));
  if (now === shown.steps) pause();
  el("at").value = String(now);
  draw();
}

// The latest of some moments that is not after now.
function before(moments) {
  let i = moments.length - 1;
  while (i > 0 && moments[i] > now) i -= 1;
  return i;
}

function image(values, offset, rows, columns, colours, hide) {
  const made = new OffscreenCanvas(columns, rows);
  const data = new ImageData(columns, rows);
  const out = new Uint32Array(data.data.buffer);
  const wall = pixel(222, 219, 211);
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x < columns; x += 1) {
      const from = y * columns + x; // row 0 is the lowest y
      out[(rows - 1 - y) * columns + x] = hide && !hide[from] ? wall : colours[values[offset + from]];
    }
  }
  made.getContext("2d").putImageData(data, 0, 0);
  return made;
}

function draw() {
  drawMap();
  if (shown.belief) drawBelief();
  else if (shown.hidden) drawHidden();
  drawTrace();
  const parts = [`step ${now} of ${shown.steps}`];
  if (shown.dt) parts.push(`${(now * shown.dt).toFixed(2)} s`);
  if (shown.roots) parts.push(`odour ${brief(shown.roots[now] ** 3)}`);
  if (shown.entropy) parts.push(`belief ${shown.entropy[before(shown.believed)].toFixed(2)} bits`);
  parts.push(`return ${brief(shown.total[now])}`);
  if (now === shown.steps) parts.push(shown.found ? "found" : "not found");
  el("said").textContent = parts.join(" · ");
}

// Places of the task on a canvas.
function onto(canvas) {
  const [left, right, bottom, top] = shown.extent;
  return ([x, y]) => [
    ((x - left) / (right - left)) * canvas.width,
    ((top - y) / (top - bottom)) * canvas.height,
  ];
}

function drawMap() {
  const canvas = el("map"), pen = canvas.getContext("2d"), at = onto(canvas);
  const u = Math.max(canvas.width, canvas.height) / 240;
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = DARK;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const moment = shown.moments ? before(shown.moments) : 0;
  if (shown.field) {
    const [count, rows, columns] = shown.field.shape;
    const offset = (count > 1 ? moment : 0) * rows * columns;
    const made = image(shown.field.values, offset, rows, columns, palette, shown.free?.values);
    pen.drawImage(made, 0, 0, canvas.width, canvas.height);
  }
  const sources = shown.sources?.[shown.sources.length > 1 ? moment : 0] ?? [];
  for (const source of sources) {
    const [x, y] = at(source);
    if (shown.radius) {
      pen.strokeStyle = "rgba(255, 255, 255, 0.75)";
      pen.lineWidth = u;
      pen.beginPath();
      pen.arc(x, y, (shown.radius / (shown.extent[1] - shown.extent[0])) * canvas.width, 0, 7);
      pen.stroke();
    }
    star(pen, x, y, 3.4 * u, u);
  }
  shown.objects.forEach((way) => {
    const [x, y] = at(way[now]);
    pen.fillStyle = OBJECT;
    pen.fillRect(x - 3 * u, y - 3 * u, 6 * u, 6 * u);
  });
  shown.agents.forEach((way, i) => {
    pen.strokeStyle = AGENTS[i % AGENTS.length];
    pen.globalAlpha = 0.75;
    line(pen, way.slice(0, now + 1).map(at), u);
    pen.globalAlpha = 1;
  });
  shown.agents.forEach((way, i) => agent(pen, at(way[now]), i, u));
  wind(pen, canvas, shown.wind?.[moment], u);
}

function star(pen, x, y, arm, u) {
  for (const [width, colour] of [[3 * u, "#ffffff"], [1.4 * u, SOURCE]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineCap = "round";
    for (const angle of [0, Math.PI / 3, (2 * Math.PI) / 3]) {
      pen.beginPath();
      pen.moveTo(x - arm * Math.cos(angle), y - arm * Math.sin(angle));
      pen.lineTo(x + arm * Math.cos(angle), y + arm * Math.sin(angle));
      pen.stroke();
    }
  }
}

function line(pen, places, width) {
  pen.lineWidth = width;
  pen.lineJoin = "round";
  pen.beginPath();
  places.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}

function agent(pen, [x, y], i, u) {
  pen.beginPath();
  if (shown.heading && i === 0) {
    const angle = (shown.heading[now] * Math.PI) / 180;
    const corner = (far, turn) => [x + far * u * Math.cos(angle + turn), y - far * u * Math.sin(angle + turn)];
    [corner(6.5, 0), corner(4.6, 2.45), corner(4.6, -2.45)].forEach((to, n) => (n ? pen.lineTo(...to) : pen.moveTo(...to)));
    pen.closePath();
  } else pen.arc(x, y, 3.4 * u, 0, 7);
  pen.fillStyle = AGENTS[i % AGENTS.length];
  pen.strokeStyle = "#000000";
  pen.lineWidth = 1.2 * u;
  pen.stroke();
  pen.fill();
}

function wind(pen, canvas, way, u) {
  const speed = way ? Math.hypot(...way) : 0;
  if (!speed) return;
  const [x, y] = [13 * u, canvas.height - 13 * u];
  const [dx, dy] = [way[0] / speed, -way[1] / speed];
  for (const [more, colour] of [[1.6 * u, "#000000"], [0, WIND]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = 1.6 * u + more;
    pen.lineCap = "round";
    const tip = [x + 8 * u * dx, y + 8 * u * dy];
    for (const turn of [2.6, -2.6]) {
      const [c, s] = [Math.cos(turn), Math.sin(turn)];
      line(pen, [tip, [tip[0] + 5 * u * (dx * c - dy * s), tip[1] + 5 * u * (dx * s + dy * c)]], pen.lineWidth);
    }
    line(pen, [[x - 8 * u * dx, y - 8 * u * dy], tip], pen.lineWidth);
  }
}

function drawBelief() {
  const canvas = el("mind"), pen = canvas.getContext("2d"), at = onto(canvas);
  const u = Math.max(canvas.width, canvas.height) / 240;
  const [, rows, columns] = shown.belief.shape;
  const made = image(shown.belief.values, before(shown.believed) * rows * columns, rows, columns, palette);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(made, 0, 0, canvas.width, canvas.height);
  (shown.sources?.[0] ?? []).forEach((source) => star(pen, ...at(source), 3.4 * u, u));
  agent(pen, at(shown.agents[0][now]), 0, u);
  el("of-mind").textContent = "belief where the source is (logarithm, 4 decades)";
}

function drawHidden() {
  const canvas = el("mind"), pen = canvas.getContext("2d");
  const [steps, units] = shown.hidden.shape;
  // A row is a unit, a column a step.
  const turned = new Uint8Array(steps * units);
  for (let t = 0; t < steps; t += 1) for (let i = 0; i < units; i += 1) turned[i * steps + t] = shown.hidden.values[t * units + i];
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image(turned, 0, units, steps, signed), 0, 0, canvas.width, canvas.height);
  cursor(pen, canvas);
  el("of-mind").textContent = `hidden state: ${units} units upwards, steps to the right; blue below 0, red above`;
}

function cursor(pen, canvas) {
  const x = ((now + 0.5) / (shown.steps + 1)) * canvas.width;
  pen.strokeStyle = "#000000";
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x, canvas.height);
  pen.stroke();
}

function drawTrace() {
  const canvas = el("trace"), pen = canvas.getContext("2d");
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * dense);
  canvas.height = Math.round(canvas.clientHeight * dense);
  pen.fillStyle = "#eef0f4";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const values = shown.roots ?? Array.from(shown.total);
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const high = values.reduce((a, b) => Math.max(a, b), low + 1e-12);
  const x = (step) => ((step + 0.5) / (shown.steps + 1)) * canvas.width;
  const y = (value) => canvas.height * (0.95 - 0.75 * ((value - low) / (high - low)));
  pen.strokeStyle = "#5b6474";
  line(pen, values.map((value, step) => [x(step), y(value)]), 1.5 * dense);
  pen.fillStyle = HIT;
  const thick = Math.min(4 * dense, Math.max(dense, canvas.width / (shown.steps + 1) / 2));
  for (const step of shown.hits ?? []) pen.fillRect(x(step) - thick / 2, 0, thick, canvas.height * 0.12);
  cursor(pen, canvas);
}

function pause() {
  playing = false;
  el("play").textContent = "Play";
}

function toggle() {
  if (playing) return pause();
  if (now === shown.steps) go(0);
  playing = true;
  last = performance.now();
  el("play").textContent = "Pause";
  requestAnimationFrame(tick);
}

function tick(time) {
  if (!playing) return;
  const each = 1000 / Number(el("speed").value);
  const steps = Math.floor((time - last) / each);
  if (steps > 0) {
    last += steps * each;
    go(now + steps);
  }
  requestAnimationFrame(tick);
}

function toHit(way) {
  pause();
  const hits = way > 0 ? shown.hits.filter((step) => step > now) : shown.hits.filter((step) => step < now).reverse();
  if (hits.length) go(hits[0]);
}

function scrub(event) {
  if (event.type === "pointerdown") el("trace").setPointerCapture(event.pointerId);
  if (event.buttons !== 1 && event.type !== "click") return;
  const box = el("trace").getBoundingClientRect();
  go(((event.clientX - box.left) / box.width) * (shown.steps + 1) - 0.5);
}

async function begin() {
  const table = (await unpack(told.palette)).values;
  palette = Uint32Array.from({ length: 256 }, (_, i) => pixel(...table.subarray(3 * i, 3 * i + 3)));
  el("episode").append(...told.episodes.map((each, i) => new Option(each.title, i)));
  el("episode").onchange = () => {
    pause();
    show(Number(el("episode").value));
  };
  el("play").onclick = toggle;
  el("back").onclick = () => (pause(), go(now - 1));
  el("on").onclick = () => (pause(), go(now + 1));
  el("hit-before").onclick = () => toHit(-1);
  el("hit-after").onclick = () => toHit(1);
  el("at").oninput = () => go(Number(el("at").value));
  for (const kind of ["click", "pointerdown", "pointermove"]) el("trace").addEventListener(kind, scrub);
  document.addEventListener("keydown", (event) => {
    const kind = event.target.tagName; // what it does with a key itself
    if (kind === "SELECT" || kind === "INPUT" || (kind === "BUTTON" && event.key === " ")) return;
    const keys = { " ": toggle, ArrowLeft: el("back").onclick, ArrowRight: el("on").onclick };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("resize", () => shown && draw());
  await show(0);
  document.body.dataset.ready = "yes";
}

begin();
