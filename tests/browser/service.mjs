// A running `fhe-serve` and the other commands, for scripts. Settings: `binaries`, the folder of the commands; `folder`, to work in;
// `page`, what `cargo xtask web` wrote.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";

import { settings } from "./lib.mjs";

export const at = (name) => join(settings.folder, name);

/** What a command prints. */
export function run(name, ...args) {
  const how = { cwd: settings.folder, env: { ...process.env, NO_COLOR: "1" }, maxBuffer: 1 << 26 };
  return execFileSync(join(settings.binaries, name), args, { ...how, stdio: ["ignore", "pipe", "pipe"] }).toString();
}

/** What a command refuses with: its messages. */
export function refuse(name, ...args) {
  try {
    run(name, ...args);
  } catch (error) {
    return error.stderr.toString();
  }
  throw new Error(`${name} ${args.join(" ")} did not refuse`);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A server that can be killed and started again, on the same port and with the same store. */
export class Service {
  #process = null;
  #args;

  constructor(programs, store, port, options) {
    this.url = `http://127.0.0.1:${port}`;
    const listen = ["--listen", `127.0.0.1:${port}`, "--store", at(store), "--memory", settings.memory ?? "2GiB"];
    this.#args = ["run", ...programs.map(at), ...listen, "--log-level", "warn", `--page=${settings.page}`, ...options];
  }

  static async start(programs, { store = "store", options = [] } = {}) {
    const service = new Service(programs, store, await freePort(), options);
    await service.start();
    return service;
  }

  async start() {
    const stdio = ["ignore", "inherit", "inherit"];
    this.#process = spawn(join(settings.binaries, "fhe-serve"), this.#args, { cwd: settings.folder, stdio });
    // A script that fails leaves no server behind.
    process.once("exit", () => this.#process.kill("SIGKILL"));
    const ended = once(this.#process, "exit").then(() => "ended");
    for (let tries = 0; tries < 600; tries += 1) {
      const ready = fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false);
      const now = await Promise.race([ready, ended]);
      if (now === true) return;
      if (now === "ended") throw new Error("fhe-serve does not start");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("fhe-serve does not get ready");
  }

  /** Ends the server as a power cut would. */
  async kill() {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }
}
