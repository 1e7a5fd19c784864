// The page at `/`: a session of one task, played by hand or by a baseline.

const KEYS = {
  up: "ArrowUp", down: "ArrowDown", left: "ArrowLeft", right: "ArrowRight",
  forward: "ArrowUp", "turn left": "ArrowLeft", "turn right": "ArrowRight",
  upwind: "ArrowUp", downwind: "ArrowDown",
  "crosswind, left": "ArrowLeft", "crosswind, right": "ArrowRight",
  higher: "PageUp", lower: "PageDown",
  run: "ArrowUp", tumble: "t", stay: "s", "stand still": "s", sniff: "s", declare: "d",
};
const KEY_SIGNS = {
  ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", PageUp: "PgUp", PageDown: "PgDn",
};
// Column and row of each way on a compass.
const COMPASS = {
  "up left": [1, 1], up: [2, 1], "up right": [3, 1],
  left: [1, 2], stay: [2, 2], right: [3, 2],
  "down left": [1, 3], down: [2, 3], "down right": [3, 3],
  higher: [3, 1], lower: [3, 3],
};
const FAMILIES = { search: "Searches", arms: "Two arms", twins: "Searches, told the way" };
const HIDDEN = ["seed", "step_count", "total_reward", "terminated", "truncated", "found", "failed"];
const AGENTS = ["#ffffff", "#e69f00"];
const SOURCE = "#d55e00", OBJECT = "#009e73", GOAL = "#cc79a7", DARK = "#10141c";
const WALL = pixels([185, 182, 174])[0];
const ASIDE = 360; // pixels beside the map: the desk and the gap
const MOST_BUTTONS = 36;

const el = (id) => document.getElementById(id);

let served = "";
let task = null; // {id, base, schema, facts, palette}
let session = null; // its path
let episode = null; // {reply, view, steps, sum, done, trails, trace, peak}
let playing = false;
let busy = false;
let wake = () => {};
let turn = Promise.resolve();
const compiled = new Set();

// --- the server ---

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function ask(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "content-type": "application/json" };
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("UNREACHABLE", "The server cannot be reached.");
  }
  const said = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) {
    const error = said?.error ?? {};
    throw new Refused(error.code ?? String(answer.status), error.message ?? answer.statusText);
  }
  return said;
}

const get = (path) => ask("GET", path);
const post = (path, body) => ask("POST", path, body);

// An array of the server's, {dtype, shape, data}, of bytes.
function bytes(array) {
  const text = atob(array.data);
  const read = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) read[i] = text.charCodeAt(i);
  return read;
}

// Pixels, RGBA, of colours one after another.
function pixels(colours) {
  const read = new Uint8Array((colours.length / 3) * 4).fill(255);
  for (let i = 0; i < colours.length; i++) read[4 * Math.floor(i / 3) + (i % 3)] = colours[i];
  return new Uint32Array(read.buffer);
}

// --- one thing at a time ---

function exclusively(work) {
  turn = turn.then(async () => {
    busy = true;
    try {
      await work();
    } catch (error) {
      fail(error);
    } finally {
      busy = false;
      refresh();
    }
  });
  return turn;
}

function fail(error) {
  playing = false;
  const lost = ["UNREACHABLE", "SESSION_NOT_FOUND", "NOT_FOUND", "CAPACITY_REACHED"];
  const again = lost.includes(error.code) || !episode;
  if (lost.slice(0, 3).includes(error.code)) session = null;
  const text = {
    SESSION_NOT_FOUND: "This session is no more: it was not heard of for long, or the server began anew.",
    NOT_FOUND: "This task is no longer served: it made room for another, or the server began anew.",
  }[error.code];
  el("error-text").textContent = text ?? error.message;
  el("error-action").textContent = again ? "Start again" : "Close";
  el("error-action").onclick = () => {
    el("error").hidden = true;
    if (again) open(el("task").value || served);
  };
  el("error").hidden = false;
  if (!(error instanceof Refused)) console.error(error);
}

// --- tasks and sessions ---

async function begin() {
  const [about, others] = await Promise.all([get("/metadata"), get("/tasks")]);
  served = about.name;
  const choice = el("task");
  choice.replaceChildren(group("Served", [{ id: served, about: about.description }]));
  for (const [family, title] of Object.entries(FAMILIES)) {
    const members = others.filter((each) => each.family === family);
    if (members.length) choice.append(group(title, members));
  }
}

function group(label, tasks) {
  const made = document.createElement("optgroup");
  made.label = label;
  for (const each of tasks) {
    const option = new Option(each.id, each.id);
    option.dataset.about = each.about;
    made.append(option);
  }
  return made;
}

function open(id) {
  stop();
  return exclusively(async () => {
    await leave();
    if (!served) await begin();
    const choice = el("task");
    if (![...choice.options].some((option) => option.value === id)) id = served;
    choice.value = id;
    const about = choice.selectedOptions[0].dataset.about;
    el("about").textContent = about.charAt(0).toUpperCase() + about.slice(1);
    history.replaceState(null, "", id === served ? location.pathname : `#${id}`);
    episode = null;
    task = null;
    refresh();
    say(id === served ? "starting …" : `compiling ${id} …`);
    const base = id === served ? "" : (await post(`/tasks/${encodeURIComponent(id)}`)).path;
    say("preparing what is shown …");
    const [schema, facts] = await Promise.all([get(`${base}/schema`), get(`${base}/page`)]);
    task = { id, base, schema, facts, palette: facts.palette && pixels(bytes(facts.palette)) };
    offerActions();
    offerBaselines();
    drawColours();
    await reset();
    document.title = `${id} · plumejax`;
  });
}

async function leave() {
  const left = session;
  session = null;
  if (left) await ask("DELETE", left).catch(() => {});
}

async function reset() {
  session ??= `${task.base}/sessions/${(await post(`${task.base}/sessions`)).session_id}`;
  const seed = el("seed").value;
  const reply = await post(`${session}/reset`, seed === "" ? {} : { seed: Number(seed) });
  episode = { steps: 0, sum: 0, trails: [], trace: [], peak: 0, seed: reply.metadata.seed };
  await take(reply);
}

async function step(action) {
  const reply = await post(`${session}/step`, { action });
  if (reply.metadata.error) throw new Refused(reply.metadata.error.code, reply.metadata.error.message);
  episode.steps += 1;
  episode.sum += reply.reward ?? 0;
  await take(reply);
}

async function take(reply) {
  episode.reply = reply;
  episode.done = reply.done;
  episode.view = task.facts.view ? await get(`${session}/view`) : {};
  const { agents = [], odour, top = 0 } = episode.view;
  agents.forEach((agent, i) => (episode.trails[i] ??= []).push(agent.at));
  episode.trace.push(odour ?? reply.reward ?? 0);
  episode.peak = Math.max(episode.peak, top);
  show();
}

const byHand = (action) => {
  if (!busy && episode && !episode.done) exclusively(() => step(action));
};

// --- a baseline ---

function play() {
  if (playing) return stop();
  if (!task || !el("baseline").value) return;
  playing = true;
  refresh();
  exclusively(async () => {
    if (!episode || episode.done) await reset();
    while (playing && !episode.done) {
      const begun = performance.now();
      const name = el("baseline").value;
      const program = `${task.id} ${name}`;
      if (!compiled.has(program)) say(`compiling ${name} …`);
      const { action } = await post(`${session}/baseline`, { name });
      compiled.add(program);
      if (!playing) break;
      await step(action);
      await rest(1000 / stepsASecond() - (performance.now() - begun));
    }
  }).then(() => {
    playing = false;
    refresh();
  });
}

function stop() {
  playing = false;
  wake();
}

const rest = (ms) =>
  new Promise((done) => {
    const timer = setTimeout(done, Math.max(ms, 0));
    wake = () => {
      clearTimeout(timer);
      done();
    };
  });

function stepsASecond() {
  const at = Number(el("speed").value);
  return at >= 100 ? Infinity : 10 ** (at / 50);
}

// --- controls ---

function offerBaselines() {
  el("baseline-card").hidden = !task.facts.baselines.length;
  el("baseline").replaceChildren(
    ...task.facts.baselines.map((each) => {
      const option = new Option(each.name, each.name);
      option.dataset.about = each.about;
      return option;
    }),
  );
  // The first one that is not random says more.
  if (task.facts.baselines.length > 1) el("baseline").selectedIndex = 1;
  describeBaseline();
}

function describeBaseline() {
  el("baseline-about").textContent = el("baseline").selectedOptions[0]?.dataset.about ?? "";
}

function offerActions() {
  const form = el("actions");
  form.className = "";
  form.replaceChildren();
  form.onsubmit = (event) => event.preventDefault();
  const { properties = {} } = task.schema.action;
  const names = Object.keys(properties).filter((name) => name !== "metadata");
  const only = names.length === 1 ? properties[names[0]] : null;
  if (only?.type === "integer" && only.maximum < MOST_BUTTONS) {
    offerButtons(form, names[0], only.maximum - only.minimum + 1, only.minimum);
  } else {
    offerFields(form, properties, names);
  }
}

function offerButtons(form, field, count, first) {
  const said = task.facts.actions;
  const compass = said.length === count && said.length > 2 && said.every((name) => COMPASS[name]);
  if (compass) form.className = "compass";
  for (let i = 0; i < count; i++) {
    const name = said[i] ?? String(first + i);
    const key = KEYS[name] ?? (i < 10 ? String(first + i) : "");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.dataset.key = key;
    if (key && key !== name) {
      const hint = document.createElement("kbd");
      hint.textContent = ` ${KEY_SIGNS[key] ?? key.toUpperCase()}`;
      button.append(hint);
    }
    if (compass) [button.style.gridColumn, button.style.gridRow] = COMPASS[name].map(String);
    button.onclick = () => byHand({ [field]: first + i });
    form.append(button);
  }
}

function offerFields(form, properties, names) {
  let axis = 0;
  const made = names.map((name) => [name, field(name, properties[name])]);
  const button = document.createElement("button");
  button.className = "wide";
  button.textContent = "Step ";
  button.append(Object.assign(document.createElement("kbd"), { textContent: "Enter" }));
  form.append(button);
  form.onsubmit = (event) => {
    event.preventDefault();
    byHand(Object.fromEntries(made.map(([name, read]) => [name, read()])));
  };

  // What reads the value of a field of that schema.
  function field(name, schema) {
    if (schema.type === "string") return text(name);
    if (schema.type === "number" || schema.type === "integer") return number(name, schema);
    if (schema.type === "array") {
      const items = schema.prefixItems ?? Array(schema.minItems).fill(schema.items);
      const readers = items.map((each, i) => field(items.length > 1 ? `${name} ${i}` : name, each));
      return () => readers.map((read) => read());
    }
    form.append(Object.assign(document.createElement("p"), { textContent: `${name} is too large to be set by hand.` }));
    return () => null;
  }

  function text(name) {
    const input = labelled(name, "text");
    input.parentElement.className = "text";
    return () => input.value;
  }

  function number(name, schema) {
    const known = task.facts.axes[axis++] ?? {};
    const low = known.low ?? schema.minimum, high = known.high ?? schema.maximum;
    const bounded = low !== undefined && low !== null && high !== undefined && high !== null;
    const input = labelled(known.name ?? name, bounded ? "range" : "number");
    input.step = schema.type === "integer" ? 1 : "any";
    if (bounded) {
      Object.assign(input, { min: low, max: high });
      const output = input.parentElement.appendChild(document.createElement("output"));
      input.oninput = () => (output.textContent = short(Number(input.value)));
    }
    input.value = bounded ? (low + high) / 2 : 0;
    input.oninput?.();
    return () => Number(input.value);
  }

  function labelled(name, type) {
    const label = form.appendChild(document.createElement("label"));
    label.append(name, Object.assign(document.createElement("input"), { type, name }));
    return label.lastChild;
  }
}

// --- what is shown ---

function say(text) {
  el("status").textContent = text;
  el("status").classList.toggle("busy", text.endsWith("…"));
}

function outcome() {
  if (!task) return "";
  if (!episode) return "reset to begin";
  const { metadata, done } = episode.reply;
  if (!done) return playing ? `${el("baseline").value} is playing` : "your turn";
  const after = `after ${count(episode.steps, "step")}`;
  if (metadata.found) return task.facts.unit?.odour ? `found the source ${after}` : `done ${after}`;
  if (metadata.failed) return `the search failed ${after}`;
  return metadata.truncated ? `out of time ${after}` : `ended ${after}`;
}

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// What can be pressed now.
function refresh() {
  const ready = Boolean(task && episode) && !playing;
  for (const control of el("actions").elements) control.disabled = !ready || episode.done;
  el("task").disabled = !el("task").length;
  el("reset").disabled = el("seed").disabled = !task;
  el("play").disabled = el("baseline").disabled = !task;
  el("play-text").textContent = playing ? "Pause" : "Play";
  if (!busy) say(outcome());
}

function show() {
  refresh();
  say(outcome());
  showNumbers();
  el("map-figure").hidden = !episode.view.extent;
  if (!episode.view.extent) document.body.style.maxWidth = "";
  if (episode.view.extent) drawMap();
  drawTrace();
}

function showNumbers() {
  const { reply, view } = episode;
  const { metadata } = reply;
  const length = task.facts.unit?.length ?? "";
  const rows = [["step", view.max_steps ? `${episode.steps} of ${view.max_steps}` : episode.steps]];
  if (view.time !== undefined) rows.push(["time", `${short(view.time)} s`]);
  rows.push(["reward", short(reply.reward)], ["return", short(episode.sum)]);
  for (const { name, position, heading } of placed(view)) {
    const place = position.map((part) => short(Number(part.toFixed(3)))).join(", ");
    rows.push(name ? [name, place] : ["position", `${place} ${length}`]);
    if (typeof heading === "number") rows.push(["heading", `${short(heading)}°`]);
  }
  if (view.odour !== undefined) rows.push(["odour", short(view.odour)]);
  for (const [name, value] of Object.entries(metadata)) {
    if (!HIDDEN.includes(name) && !Array.isArray(value)) rows.push(...flat(name, value));
  }
  if (episode.seed !== undefined) rows.push(["seed", episode.seed]);
  list(el("numbers"), rows);

  const seen = Object.entries(reply.observation).filter(([name]) => !["metadata", "done", "reward"].includes(name));
  list(el("observation"), seen.flatMap(([name, value]) => flat(name, value)));
  const text = seen.map(([, value]) => value).find((value) => typeof value === "string");
  el("said").hidden = text === undefined;
  el("said").textContent = text ?? "";
}

const placed = ({ agents = [], objects = [], goals = [] }) => [...agents, ...objects, ...goals];

function list(at, rows) {
  const there = [...at.querySelectorAll("dd")];
  if (there.length !== rows.length || rows.some(([name], i) => there[i].dataset.name !== name)) {
    at.replaceChildren(...rows.flatMap(([name]) => entry(name)));
  }
  at.querySelectorAll("dd").forEach((data, i) => (data.textContent = rows[i][1]));
}

function entry(name) {
  const term = document.createElement("dt"), data = document.createElement("dd");
  term.textContent = name.replaceAll("_", " ");
  data.dataset.name = name;
  return [term, data];
}

// Rows of name and text of a value within an observation.
function flat(name, value) {
  if (value?.dtype) return [[name, `${value.dtype} ${value.shape.join(" × ")}`]];
  if (value && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([part, each]) => flat(`${name} ${part}`, each));
  }
  return [[name, Array.isArray(value) ? value.flat(Infinity).map(short).join(", ") : short(value)]];
}

function short(value) {
  if (typeof value !== "number") return value === null ? "–" : String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  return size < 1e-3 || size >= 1e5 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

// A canvas's context in CSS pixels, sharp on every screen.
function sheet(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

function drawMap() {
  const { view, trails } = episode;
  const [left, right, low, high] = view.extent;
  const canvas = el("map");
  const narrow = matchMedia("(max-width: 860px)").matches;
  const across = document.documentElement.clientWidth - (narrow ? 24 : 40);
  const room = narrow ? across : Math.min(across, 1240) - ASIDE;
  const tallest = Math.max(280, window.innerHeight - 310);
  const scale = Math.min(room / (right - left), tallest / (high - low));
  const width = scale * (right - left), height = Math.max(scale * (high - low), 48);
  const middle = (height - scale * (high - low)) / 2;
  document.body.style.maxWidth = narrow ? "" : `${Math.max(width, 480) + ASIDE + 40}px`;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = sheet(canvas, width, height);
  const place = ([x, y]) => [(x - left) * scale, middle + (high - y) * scale];

  pen.fillStyle = "#00224e";
  pen.fillRect(0, 0, width, height);
  if (view.levels) {
    pen.imageSmoothingEnabled = task.facts.unit.length !== "cells";
    pen.imageSmoothingQuality = "high";
    pen.drawImage(picture(view), 0, middle, width, scale * (high - low));
  }
  for (const goal of view.goals ?? []) drawRing(pen, place(goal.at), 13, GOAL, goal);
  const size = Math.min(Math.max(scale * 0.6, 5), 8);
  (view.agents ?? []).forEach((agent, i) => {
    drawTrail(pen, trails[i].map(place), AGENTS[i], Math.max(width, height) / 2);
    drawAgent(pen, place(agent.at), agent, AGENTS[i], size);
  });
  for (const object of view.objects ?? []) drawObject(pen, place(object.at), object);
  for (const source of view.sources ?? []) drawGoal(pen, place(source.at), view.radius * scale);
  drawScale(pen, width, height, scale);

  el("key-source").hidden = !view.sources;
  el("key-objects").hidden = !view.objects?.length;
  el("key-goals").hidden = !view.goals?.length;
  el("key-agent").textContent = view.agents?.length > 1 ? "arms, from above" : "agent and its trail";
  el("legend").hidden = !view.levels;
  const unit = task.facts.unit.odour ? ` (${task.facts.unit.odour})` : "";
  el("legend-text").textContent = `odour${unit}, colours by its cube root: 0`;
  el("top").textContent = `${short(episode.peak)} and more`;
}

// The plume in its own pixels, on one scale for the whole episode.
function picture(view) {
  const known = episode.picture;
  if (known?.data === view.levels.data && known.peak === episode.peak) return known.canvas;
  const [height, width] = view.levels.shape;
  const levels = bytes(view.levels), free = view.free && bytes(view.free);
  const dim = episode.peak > 0 ? Math.cbrt(view.top / episode.peak) : 0;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  const painted = new Uint32Array(image.data.buffer);
  for (let i = 0; i < levels.length; i++) {
    const at = (height - 1 - Math.floor(i / width)) * width + (i % width);
    painted[at] = free && !free[i] ? WALL : task.palette[Math.round(levels[i] * dim)];
  }
  pen.putImageData(image, 0, 0);
  episode.picture = { data: view.levels.data, peak: episode.peak, canvas };
  return canvas;
}

function drawGoal(pen, [x, y], radius) {
  if (radius > 4) {
    pen.setLineDash([5, 4]);
    outlined(pen, SOURCE, 1.5, () => pen.arc(x, y, radius, 0, 2 * Math.PI));
    pen.setLineDash([]);
  }
  const r = 5;
  pen.beginPath();
  pen.moveTo(x, y - r);
  pen.lineTo(x + r, y);
  pen.lineTo(x, y + r);
  pen.lineTo(x - r, y);
  pen.closePath();
  filled(pen, SOURCE);
}

function drawRing(pen, [x, y], radius, colour, { name }) {
  pen.setLineDash([5, 4]);
  outlined(pen, colour, 2, () => pen.arc(x, y, radius, 0, 2 * Math.PI));
  pen.setLineDash([]);
  written(pen, name, x, y - radius - 7, "center");
}

function drawObject(pen, [x, y], { name }) {
  pen.beginPath();
  pen.rect(x - 4, y - 4, 8, 8);
  filled(pen, OBJECT);
  written(pen, name, x, y + 24, "center");
}

function drawTrail(pen, points, colour, far) {
  outlined(pen, colour, 2, () =>
    points.forEach(([x, y], i) => {
      // Round the edge of a world without one.
      const before = points[i - 1] ?? [x, y];
      const jumps = i === 0 || Math.hypot(x - before[0], y - before[1]) > far;
      if (jumps) pen.moveTo(x, y);
      else pen.lineTo(x, y);
    }),
  );
}

function drawAgent(pen, [x, y], { heading, name }, colour, size) {
  if (heading !== null) {
    const angle = (-heading * Math.PI) / 180;
    outlined(pen, colour, 3, () => {
      pen.moveTo(x, y);
      pen.lineTo(x + 2.4 * size * Math.cos(angle), y + 2.4 * size * Math.sin(angle));
    });
  }
  pen.beginPath();
  pen.arc(x, y, size, 0, 2 * Math.PI);
  filled(pen, colour);
  if (name && colour === AGENTS[0]) written(pen, name, x - size - 6, y + 4, "right");
  else if (name) written(pen, name, x + size + 6, y + 4);
}

function drawScale(pen, width, height, scale) {
  const most = width / scale / 4;
  const power = 10 ** Math.floor(Math.log10(most));
  const long = power * [5, 2, 1].find((n) => n * power <= most);
  const x = 14, y = height - 14;
  outlined(pen, "#ffffff", 3, () => {
    pen.moveTo(x, y);
    pen.lineTo(x + long * scale, y);
  });
  written(pen, `${short(long)} ${task.facts.unit.length || "lengths"}`, x, y - 8);
}

function outlined(pen, colour, thick, path) {
  pen.lineJoin = pen.lineCap = "round";
  pen.beginPath();
  path();
  pen.globalAlpha = 0.7;
  pen.strokeStyle = DARK;
  pen.lineWidth = thick + 2;
  pen.stroke();
  pen.globalAlpha = 1;
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.stroke();
}

function filled(pen, colour) {
  pen.fillStyle = colour;
  pen.fill();
  pen.strokeStyle = DARK;
  pen.lineWidth = 2;
  pen.stroke();
}

function written(pen, text, x, y, align = "left") {
  pen.textAlign = align;
  pen.font = "12px system-ui, sans-serif";
  pen.lineJoin = "round";
  pen.strokeStyle = DARK;
  pen.lineWidth = 3;
  pen.strokeText(text, x, y);
  pen.fillStyle = "#ffffff";
  pen.fillText(text, x, y);
}

function drawColours() {
  const { palette } = task;
  if (!palette) return;
  const pen = el("colours").getContext("2d");
  const image = pen.createImageData(256, 1);
  new Uint32Array(image.data.buffer).set(palette);
  pen.putImageData(image, 0, 0);
}

function drawTrace() {
  const { trace, view } = episode;
  const canvas = el("trace");
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const pen = sheet(canvas, width, height);
  const style = getComputedStyle(document.documentElement);
  const low = Math.min(0, ...trace), high = Math.max(low + 1e-30, ...trace);
  const last = Math.max(trace.length - 1, 40);
  const inset = 10;
  const x = (i) => inset + ((width - 2 * inset) * i) / last;
  const y = (value) => height - inset - ((height - 2 * inset - 12) * (value - low)) / (high - low);
  pen.strokeStyle = style.getPropertyValue("--line");
  pen.beginPath();
  pen.moveTo(inset, y(0));
  pen.lineTo(width - inset, y(0));
  pen.stroke();
  pen.strokeStyle = style.getPropertyValue("--trace");
  pen.lineWidth = 1.6;
  pen.lineJoin = "round";
  pen.beginPath();
  trace.forEach((value, i) => pen.lineTo(x(i), y(value)));
  pen.stroke();
  pen.fillStyle = pen.strokeStyle;
  pen.beginPath();
  pen.arc(x(trace.length - 1), y(trace.at(-1)), 3, 0, 2 * Math.PI);
  pen.fill();
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = style.getPropertyValue("--quiet");
  pen.fillText(short(high === low + 1e-30 ? low : high), inset, 14);
  const what = view.odour === undefined ? "Reward of each step" : "Odour where the agent is";
  el("trace-caption").textContent = `${what}, step 0 to ${trace.length - 1}: now ${short(trace.at(-1))}`;
}

// --- what people do ---

const typing = (at) => at.matches("input, select, textarea");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const button =
    { r: el("reset"), p: el("play") }[key] ??
    [...el("actions").querySelectorAll("button")].find((each) => each.dataset.key === key);
  if (!button) return;
  event.preventDefault();
  if (!button.disabled && !(event.repeat && (key === "r" || key === "p"))) button.click();
});

el("reset").onclick = () => {
  stop();
  exclusively(reset);
};
el("play").onclick = play;
el("baseline").onchange = describeBaseline;
el("task").onchange = () => open(el("task").value);
el("speed").oninput = () => {
  const rate = stepsASecond();
  el("speed-text").textContent = rate === Infinity ? "at full speed" : `${short(Number(rate.toPrecision(2)))} a second`;
};
el("speed").oninput();

window.addEventListener("hashchange", () => open(decodeURIComponent(location.hash.slice(1)) || served));
window.addEventListener("pagehide", () => {
  // So that its place is free at once.
  if (session) fetch(session, { method: "DELETE", keepalive: true });
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) open(el("task").value);
});
window.addEventListener("resize", () => {
  if (!episode?.view) return;
  if (episode.view.extent) drawMap();
  drawTrace();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => episode?.view && drawTrace());

refresh();
open(decodeURIComponent(location.hash.slice(1)));
