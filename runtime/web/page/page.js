// The page: a model, a picture, a question, an answer. All that is secret happens in the client's worker.

import { Client, ClientError, listPrograms } from "./client.js";
import { Drawing } from "./drawing.js";
import { showAnswer, showNoise, showSeen, size, Steps } from "./show.js";

const at = (id) => document.getElementById(id);
const server = new URL("..", location.href).href;

let programs = [];
let client = null;
let asking = null;
/** What was encrypted last and not answered yet: asked again, it is the same job. */
let pending = null;
let hasKeys = false;

const steps = new Steps(at("steps"));
const drawing = new Drawing(at("drawing"), () => changed());

const access = (signal) => ({ token: at("token").value.trim() || undefined, signal });
const storage = () => document.querySelector("input[name=storage]:checked").value;

function changed() {
  pending = null;
  if (client) showSeen(at("seen"), client.facts, drawing.isEmpty ? null : drawing.pixels());
  enable();
}

function enable() {
  at("ask").disabled = !client || asking !== null || drawing.isEmpty;
  for (const id of ["model", "export", "import", "choose", "clear"]) at(id).disabled = !client || asking !== null;
  at("model").disabled = programs.length === 0 || asking !== null;
  at("cancel").hidden = asking === null;
}

function say(error) {
  const remedies = {
    connection: "Is the server running? Try again: what was sent stays sent.",
    storage: "",
    insecure: "This page does not use it.",
  };
  const message = error ? `${capital(error.message)}. ${remedies[error.code] ?? ""}` : "";
  at("message").hidden = !error;
  at("message").textContent = message;
  at("message").dataset.code = error?.code ?? "";
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The programs of the server; one that wants a token is asked for it. */
async function connect() {
  say(null);
  try {
    programs = await listPrograms(server, access());
    at("token-row").hidden = true;
  } catch (error) {
    if (!["no-token", "unknown-token", "expired-token"].includes(error.code)) return say(error);
    at("token-row").hidden = false;
    at("token").focus();
    if (error.code !== "no-token") say(error);
    return;
  }
  const options = programs.map(({ id, name }) => {
    const option = new Option(`${name} (${id.slice(0, 8)})`, id);
    option.textContent = programs.filter((p) => p.name === name).length > 1 ? option.text : name;
    return option;
  });
  at("model").replaceChildren(...options);
  if (programs.length > 0) await choose(at("model").value, {});
  else say(new ClientError("server", "the server has no program"));
}

/** Makes a client of a program, with the kept key, an imported one or a new one. */
async function choose(program, { key, where } = {}) {
  say(null);
  client?.close();
  client = null;
  enable();
  at("facts").textContent = "Loading …";
  try {
    // Nothing new is kept unless that is asked for.
    client = await Client.connect(server, { program, key, storage: where ?? "kept", ...access() });
  } catch (error) {
    at("facts").textContent = "";
    return say(error);
  }
  const { facts } = client;
  const shape = `${facts.channels > 1 ? `${facts.channels}×` : ""}${facts.height}×${facts.width}`;
  const power = Object.assign(document.createElement("sup"), { textContent: facts.logN });
  const time = `about ${facts.predictedSeconds.toPrecision(2)} s on the server`;
  at("facts").replaceChildren(`takes ${shape} pixels, ${facts.scores} classes · ring of degree 2`, power, ` · ${time}`);
  at("key-id").textContent = facts.key.slice(0, 16);
  document.querySelector(`input[name=storage][value=${facts.wasKept ? "indexeddb" : (where ?? "memory")}]`).checked = true;
  drawing.shape = facts;
  hasKeys = await client.hasKeys(server, access()).catch(() => false);
  showOnce();
  enable();
}

function showOnce() {
  const bytes = client.facts.keyFileBytes;
  at("once").textContent = hasKeys
    ? "The server has your evaluation keys."
    : `The first time, ${size(bytes)} of evaluation keys are made and sent. They cannot decrypt.`;
}

async function ask() {
  if (at("ask").disabled) return;
  say(null);
  steps.clear();
  asking = new AbortController();
  at("ask").textContent = "Encrypt and ask";
  enable();
  const { signal } = asking;
  try {
    if (!hasKeys) await sendKeys(signal);
    if (!pending) {
      const step = steps.begin("Encrypt here");
      pending = await client.encrypt(drawing.pixels());
      step.end();
    }
    showNoise(at("noise"), at("noise-bytes"), at("noise-hex"), pending);
    await evaluate(signal);
  } catch (error) {
    steps.fail();
    if (error.code === "cancelled") return;
    if (error.code === "no-such-keys") hasKeys = false;
    at("ask").textContent = "Try again";
    say(error);
  } finally {
    asking = null;
    if (client) showOnce();
    enable();
  }
}

async function sendKeys(signal) {
  const step = steps.begin("Make and send keys");
  const progress = ({ phase, sentBytes, totalBytes }) => {
    const notes = { checking: "the server checks them", waiting: "the connection broke: going on …" };
    step.set(sentBytes / totalBytes, notes[phase] ?? `${size(sentBytes)} of ${size(totalBytes)}`);
  };
  await client.uploadKeys(server, progress, access(signal));
  step.end(size(client.facts.keyFileBytes));
  hasKeys = true;
}

async function evaluate(signal) {
  let step = steps.begin("Compute on the server");
  const progress = ({ phase, layer, fraction, etaSeconds }) => {
    const left = etaSeconds >= 1 ? `, ${Math.round(etaSeconds)} s left` : "";
    const words = { queued: "waiting for its turn", waiting: "the connection broke: looking again …" };
    step.set(fraction, words[phase] ?? `${layer ?? "begins"}${left}`);
  };
  const result = await client.evaluate(server, pending, progress, access(signal));
  step.end(`${size(pending.length)} sent, ${size(result.length)} came back`);
  step = steps.begin("Decrypt here");
  const answer = await client.decrypt(result, { scores: at("wants-scores").checked });
  step.end();
  pending = null;
  showAnswer(at("answer"), at("scores"), at("doubts"), client.facts, answer);
  // On a phone it may be below the screen.
  at("answer").scrollIntoView({ block: "nearest" });
}

async function keepKey() {
  say(null);
  try {
    await client?.keepKey(storage());
  } catch (error) {
    document.querySelector("input[name=storage][value=memory]").checked = true;
    say(error);
  }
}

async function exportKey() {
  const file = await client.exportKey();
  const url = URL.createObjectURL(new Blob([file], { type: "application/octet-stream" }));
  file.fill(0);
  const link = Object.assign(document.createElement("a"), { href: url, download: "secret.key" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function takePicture(file) {
  say(null);
  try {
    await drawing.take(file);
  } catch {
    say(new ClientError("picture", `${file.name || "this"} is no picture that the browser can read`));
  }
}

at("setup").addEventListener("submit", (event) => (event.preventDefault(), connect()));
at("model").addEventListener("change", () => choose(at("model").value));
at("ask").addEventListener("click", ask);
at("cancel").addEventListener("click", () => asking?.abort());
at("clear").addEventListener("click", () => drawing.clear());
at("drawing").addEventListener("picture", ({ detail }) => takePicture(detail));
at("drawing").addEventListener("keydown", (event) => event.key === "Enter" && ask());
at("choose").addEventListener("change", ({ target }) => {
  if (target.files[0]) takePicture(target.files[0]);
  target.value = "";
});
at("export").addEventListener("click", exportKey);
at("import").addEventListener("change", async ({ target }) => {
  const file = target.files[0];
  target.value = "";
  if (!file) return;
  const old = client?.facts.program;
  const key = new Uint8Array(await file.arrayBuffer());
  await choose(at("model").value, { key, where: storage() });
  key.fill(0);
  const error = { ...at("message").dataset }.code;
  // A key that is refused leaves the page as it was.
  if (!client && old) {
    const words = at("message").textContent;
    await choose(old);
    [at("message").hidden, at("message").textContent, at("message").dataset.code] = [false, words, error];
  }
});
for (const radio of document.querySelectorAll("input[name=storage]")) radio.addEventListener("change", keepKey);

await connect();
