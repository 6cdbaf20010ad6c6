// The client of a server of compiled networks: a thin hand on a Web Worker, where everything happens (worker.js).

/** What went wrong, with a word for programs in `code`. */
export class ClientError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "ClientError";
    this.code = code;
  }
}

/** A worker that answers calls by their number. */
class Hand {
  #worker;
  #calls = new Map();
  #last = 0;
  #end = /** @type {ClientError | null} */ (null);

  constructor() {
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "fhec" });
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.close(new ClientError("worker", event.message || "the worker cannot be started"));
    };
  }

  /** Calls a function of the worker; `transfer` names the buffers that go with it. */
  call(name, args, { onProgress, signal, transfer = [] } = {}) {
    if (this.#end) return Promise.reject(this.#end);
    if (signal?.aborted) return Promise.reject(new ClientError("cancelled", "cancelled"));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const abort = () => this.#worker.postMessage({ id, abort: true });
      signal?.addEventListener("abort", abort, { once: true });
      const settle = (how) => (value) => {
        signal?.removeEventListener("abort", abort);
        how(value);
      };
      this.#calls.set(id, { resolve: settle(resolve), reject: settle(reject), onProgress });
      this.#worker.postMessage({ id, name, args }, transfer);
    });
  }

  #hear({ id, value, error, progress }) {
    const call = this.#calls.get(id);
    if (!call) return;
    if (progress) return void call.onProgress?.(progress);
    this.#calls.delete(id);
    if (!error) return call.resolve(value);
    const found = new ClientError(error.code, error.message);
    call.reject(found);
    // A module that stopped in the middle is not to be trusted with another call.
    if (error.code === "bug") this.close(found);
  }

  close(why = new ClientError("closed", "the client was closed")) {
    this.#end ??= why;
    this.#worker.terminate();
    for (const call of this.#calls.values()) call.reject(this.#end);
    this.#calls.clear();
  }
}

/** A program's input and output under one secret key, which does not leave the worker unless it is exported. */
export class Client {
  #hand;

  constructor(hand, facts) {
    this.#hand = hand;
    this.facts = Object.freeze(facts);
  }

  static async create(bytes, options = {}) {
    const { key, storage = "memory", program, insecure = false } = options;
    const hand = new Hand();
    try {
      return new Client(hand, await hand.call("create", { bytes, key, storage, program, insecure }));
    } catch (error) {
      hand.close();
      throw error;
    }
  }

  static async connect(url, { program, ...options } = {}) {
    const { token, signal } = options;
    const programs = await listPrograms(url, { token, signal });
    const meant = programs.filter((p) => program === undefined || p.id === program || p.name === program);
    if (meant.length !== 1) {
      const names = programs.map((p) => `${p.name} (${p.id.slice(0, 16)})`).join(", ");
      throw new ClientError("program", `name one of the programs that are served: ${names || "there is none"}`);
    }
    const { id } = meant[0];
    const response = await ask(url, `/v1/programs/${id}/interface`, { token, signal });
    return Client.create(new Uint8Array(await response.arrayBuffer()), { ...options, program: id });
  }

  uploadKeys(url, onProgress, { token, signal } = {}) {
    return this.#hand.call("uploadKeys", { url: String(url), token }, { onProgress, signal });
  }

  hasKeys(url, { token, signal } = {}) {
    return this.#hand.call("hasKeys", { url: String(url), token }, { signal });
  }

  encrypt(pixels) {
    return this.#hand.call("encrypt", { pixels });
  }

  evaluate(url, input, onProgress, { token, signal } = {}) {
    return this.#hand.call("evaluate", { url: String(url), token, input }, { onProgress, signal });
  }

  decrypt(bytes, { scores = false } = {}) {
    return this.#hand.call("decrypt", { bytes, scores });
  }

  exportKey() {
    return this.#hand.call("exportKey", {});
  }

  keepKey(storage) {
    return this.#hand.call("keepKey", { storage });
  }

  memoryBytes() {
    return this.#hand.call("memoryBytes", {});
  }

  close() {
    this.#hand.close();
  }
}

export async function listPrograms(url, { token, signal } = {}) {
  const response = await ask(url, "/v1/programs", { token, signal });
  const programs = await response.json();
  const isHash = (id) => typeof id === "string" && /^[0-9a-f]{64}$/.test(id);
  if (!Array.isArray(programs) || !programs.every((p) => isHash(p?.id) && typeof p.name === "string")) {
    throw new ClientError("server", "the server's list of programs makes no sense");
  }
  return programs;
}

async function ask(url, path, { token, signal }) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let response;
  try {
    response = await fetch(String(url).replace(/\/$/, "") + path, { headers, signal, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (signal?.aborted) throw new ClientError("cancelled", "cancelled");
    throw new ClientError("connection", "the server cannot be reached");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ClientError(String(problem.code ?? "server"), String(problem.message ?? `the server answers ${response.status}`));
}
