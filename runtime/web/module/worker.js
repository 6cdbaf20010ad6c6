// The worker: the module, the key, the network. One function for each call of client.js.

import init, { Client } from "./fhec_web.js";
import { keptKey, keep, forget } from "./storage.js";
import { Refusal, Server } from "./server.js";
import { uploadKeys } from "./upload.js";

// The modules from the fastest on, each with the body of a function that a browser must know to run it, by `i32x4.splat` on zeros
// and `f64x2.relaxed_madd`.
const ZEROS = [0x41, 0, 0xfd, 0x11];
const MODULES = [
  ["fhec_web_relaxed.wasm", [...ZEROS, ...ZEROS, ...ZEROS, 0xfd, 0x87, 2]],
  ["fhec_web_simd.wasm", ZEROS],
];

let memory = null;
let client = null;
let facts = null;

/** Whether the browser knows the instructions of a function without parameters that gives a vector. */
function knows(body) {
  const [start, kind] = [[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], [1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0]];
  const code = [10, body.length + 4, 1, body.length + 2, 0, ...body, 0x0b];
  return WebAssembly.validate(Uint8Array.of(...start, ...kind, ...code));
}

/** Loads the module that this browser runs fastest. All of them give the same bits. */
async function load() {
  const [name] = MODULES.find(([, body]) => knows(body)) ?? ["fhec_web.wasm"];
  ({ memory } = await init({ module_or_path: new URL(name, import.meta.url) }));
}

const calls = {
  async create({ bytes, key, storage, program, insecure }) {
    await load();
    client = new Client(bytes, key, insecure);
    facts = client.facts();
    if (program !== undefined && facts.program !== program) {
      const message = `the interface is of program ${facts.program.slice(0, 16)}…, not of ${program.slice(0, 16)}…`;
      throw new Refusal("program", message);
    }
    const kept = key || storage === "memory" ? null : await keptKey(facts.program);
    if (kept) {
      // Which program it is said the first client; its own key was never used.
      client.free();
      client = new Client(bytes, kept, insecure);
      facts = client.facts();
      kept.fill(0);
    }
    if (storage === "indexeddb" && !kept) await calls.keepKey({ storage });
    return { ...facts, wasKept: kept !== null };
  },

  async hasKeys({ url, token }, { signal }) {
    const keys = await new Server(url, token, signal).keys(facts.program, facts.key);
    return keys?.state === "ready";
  },

  uploadKeys({ url, token }, { signal, progress }) {
    const server = new Server(url, token, signal);
    return uploadKeys(server, facts, () => client.evaluationKeys(), progress);
  },

  encrypt({ pixels }) {
    return pixels instanceof Float64Array ? client.encryptNumbers(pixels) : client.encryptPixels(pixels);
  },

  evaluate({ url, token, input }, { signal, progress }) {
    return new Server(url, token, signal).evaluate(facts, input, progress);
  },

  decrypt({ bytes, scores }) {
    return client.decrypt(bytes, scores === true);
  },

  exportKey() {
    return client.keyFile();
  },

  async keepKey({ storage }) {
    if (storage !== "indexeddb") return forget(facts.program);
    const file = client.keyFile();
    await keep(facts.program, file);
    file.fill(0);
  },

  memoryBytes() {
    return memory.buffer.byteLength;
  },
};

const running = new Map();

self.onmessage = async ({ data: { id, name, args, abort } }) => {
  if (abort) return running.get(id)?.abort();
  const control = new AbortController();
  running.set(id, control);
  const progress = (progress) => self.postMessage({ id, progress });
  try {
    const value = await calls[name](args, { signal: control.signal, progress });
    self.postMessage({ id, value });
  } catch (error) {
    self.postMessage({ id, error: told(error) });
  } finally {
    running.delete(id);
  }
};

/** An error as a message can carry it. */
function told(error) {
  if (error?.code && typeof error.code === "string") return { code: error.code, message: error.message };
  if (error?.name === "AbortError") return { code: "cancelled", message: "cancelled" };
  const isTrap = error instanceof WebAssembly.RuntimeError || String(error).includes("bug:");
  return { code: isTrap ? "bug" : "worker", message: String(error?.message ?? error) };
}
