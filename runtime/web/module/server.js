// The server's contract (docs/serving.md): requests that are tried again when the connection breaks or the server is busy.

/** Times that a request is tried. */
const TRIES = 4;
/** Most seconds between two tries. */
const MAX_PAUSE = 30;
/** Times that a job is looked at in vain before it is given up. */
const MAX_LOOKS = 10_000;

/** Why something is not done. */
export class Refusal extends Error {
  constructor(code, message, status = 0) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const sleep = (seconds, signal) =>
  new Promise((resolve, reject) => {
    const cancelled = () => reject(new Refusal("cancelled", "cancelled"));
    if (signal.aborted) return cancelled();
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), cancelled()), { once: true });
  });

export class Server {
  #url;
  #token;
  #signal;

  constructor(url, token, signal) {
    this.#url = url.replace(/\/$/, "");
    this.#token = token;
    this.#signal = signal;
  }

  pause(seconds) {
    return sleep(seconds, this.#signal);
  }

  /** One try. Refusals are errors. */
  async once(path, options = {}) {
    const headers = { ...options.headers };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      const how = { ...options, headers, signal: this.#signal, credentials: "omit", redirect: "error", cache: "no-store" };
      response = await fetch(this.#url + path, how);
    } catch {
      this.#checkCancelled();
      throw new Refusal("connection", "the server cannot be reached");
    }
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({}));
    const refusal = new Refusal(
      String(problem.code ?? "server"),
      String(problem.message ?? `the server answers ${response.status}`),
      response.status,
    );
    refusal.retryAfter = Number(response.headers.get("Retry-After")) || undefined;
    throw refusal;
  }

  /** Tries until the server answers, waiting as long as it asks for, and a bounded number of times. */
  async again(path, options) {
    for (let left = TRIES - 1, pause = 1; ; left -= 1, pause *= 2) {
      try {
        return await this.once(path, options);
      } catch (error) {
        const isPassing = error.code === "connection" || error.status === 429 || error.status === 503;
        if (!isPassing || left === 0) throw error;
        await this.pause(Math.min(error.retryAfter ?? pause, MAX_PAUSE));
      }
    }
  }

  #checkCancelled() {
    if (this.#signal.aborted) throw new Refusal("cancelled", "cancelled");
  }

  /** Where keys are; null if there are none. */
  async keys(program, key) {
    try {
      return await (await this.again(`/v1/programs/${program}/keys/${key}?wait=60`)).json();
    } catch (error) {
      if (error.code === "no-such-keys") return null;
      throw error;
    }
  }

  /** Sends bytes of a file of keys. What was cut is not tried again here: the server says what it has. */
  async putKeys(program, key, first, bytes, total) {
    const headers = { "Content-Range": `bytes ${first}-${first + bytes.length - 1}/${total}` };
    return (await this.once(`/v1/programs/${program}/keys/${key}`, { method: "PUT", headers, body: bytes })).json();
  }

  /** The result of an encrypted input. The same input is the same job, so a request that was cut is sent again as it was. */
  async evaluate(facts, input, progress) {
    const path = `/v1/programs/${facts.program}/jobs?key=${facts.key}`;
    let job = await (await this.again(path, { method: "POST", body: input })).json();
    if (!/^[0-9a-f]{64}$/.test(job?.id)) throw new Refusal("server", "the server's job has no name");
    job = await this.#follow(job, progress);
    if (job.state !== "done") {
      const { code = "server", message = "the job failed" } = job.error ?? {};
      throw new Refusal(job.state === "cancelled" ? "job-cancelled" : String(code), String(message));
    }
    const response = await this.again(`/v1/jobs/${job.id}/result`);
    return bounded(response, facts.resultBytes);
  }

  /** Follows a job to its end by its events; when they break off, by looking at it. */
  async #follow(job, progress) {
    const isOver = () => ["done", "failed", "cancelled"].includes(job.state);
    const seen = (now) => {
      job = { ...job, ...now, id: job.id };
      const fraction = Math.min(1, Math.max(0, Number(job.fraction) || 0));
      const layer = typeof job.layer === "string" ? job.layer : undefined;
      const etaSeconds = Number.isFinite(job.eta_seconds) ? job.eta_seconds : undefined;
      progress({ phase: job.state === "queued" ? "queued" : "running", layer, fraction, etaSeconds });
    };
    seen(job);
    for (let looks = 0; !isOver() && looks < MAX_LOOKS; looks += 1) {
      await this.#events(`/v1/jobs/${job.id}/events`, seen).catch((error) => {
        this.#checkCancelled();
        if (error.code !== "connection") throw error;
        progress({ phase: "waiting", fraction: Number(job.fraction) || 0 });
      });
      if (isOver()) break;
      await this.pause(0.2 + 0.05 * Math.min(looks, 100));
      seen(await (await this.again(`/v1/jobs/${job.id}`)).json());
    }
    if (!isOver()) throw new Refusal("server", "the job does not end");
    return job;
  }

  /** Reads server-sent events until they end or break off. */
  async #events(path, seen) {
    const response = await this.once(path);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new Refusal("connection", "the server broke off");
      });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      if (rest.length > 1 << 16) throw new Refusal("connection", "an event has no end");
      for (const line of lines.filter((line) => line.startsWith("data:"))) {
        try {
          seen(JSON.parse(line.slice(5)));
        } catch {
          throw new Refusal("connection", "an event makes no sense");
        }
      }
    }
  }
}

/** The body of a response, which has exactly `length` bytes. */
async function bounded(response, length) {
  const wrong = () => new Refusal("result", `the result has not the ${length} bytes that it must have`);
  const bytes = new Uint8Array(length);
  const reader = response.body.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Refusal("connection", "the server broke off");
    });
    if (done) break;
    if (at + value.length > length) {
      await reader.cancel();
      throw wrong();
    }
    bytes.set(value, at);
    at += value.length;
  }
  if (at !== length) throw wrong();
  return bytes;
}
