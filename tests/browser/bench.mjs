// Times of the client against a running `fhe-serve`: keys, encryption, decryption, memory. Settings: those of service.mjs, with
// `program.fhebc` in `folder`; `module`, which of the client's; `runs`, questions that are asked. Prints one line of JSON.
//
// Nothing drives the browser meanwhile: a driver gets every body that is sent, which takes longer than to make it.

import { spawn } from "node:child_process";
import { copyFileSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { preferring, settings } from "./lib.mjs";
import { Service, at } from "./service.mjs";

const page = at(`page-${settings.module}`);
cpSync(settings.page, page, { recursive: true });
writeFileSync(join(page, "worker.js"), preferring(readFileSync(join(page, "worker.js"), "utf8"), settings.module));
copyFileSync(new URL("measured.js", import.meta.url), join(page, "measured.js"));
writeFileSync(join(page, "index.html"), '<!doctype html><meta charset="utf-8"><script type="module" src="measured.js"></script>');
settings.page = page;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const service = await Service.start(["program.fhebc"], { store: `bench-${settings.module}` });
const profile = at(`profile-${settings.module}`);
const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const where = [`--user-data-dir=${profile}`, "--remote-debugging-port=0", `${service.url}/page/?runs=${settings.runs ?? 10}`];
const browser = spawn(settings.chromium, ["--headless", "--no-sandbox", "--disable-gpu", ...quiet, ...where], { stdio: "ignore" });
process.once("exit", () => browser.kill("SIGKILL"));

/** What the page wrote into its title: the list of pages has it, and attaches to none. */
async function titled() {
  const file = join(profile, "DevToolsActivePort");
  for (let tries = 0; tries < 6000; tries += 1, await pause(100)) {
    if (!existsSync(file)) continue;
    const [port] = readFileSync(file, "utf8").split("\n");
    const pages = await fetch(`http://127.0.0.1:${port}/json/list`).then((answer) => answer.json(), () => []);
    const title = pages.map(({ title }) => title).find((title) => title.startsWith("done "));
    if (title) return JSON.parse(decodeURIComponent(title.slice(5)));
  }
  throw new Error("the page does not finish");
}

const { times, error, ...figures } = await titled();
if (error) throw new Error(error);
const round = (ms) => Number(ms.toFixed(1));
const median = (list) => round(list.toSorted((a, b) => a - b)[list.length >> 1]);
/** The first is slower than the others, as the browser compiles meanwhile. */
const told = (list) => ({ first: round(list[0]), median: median(list), least: round(Math.min(...list)) });
for (const name of ["createMs", "keysSentMs", "keysCheckedMs"]) figures[name] = round(figures[name]);
for (const [name, list] of Object.entries(times)) figures[`${name}Ms`] = told(list);
console.log(JSON.stringify({ module: settings.module, ...figures }));
browser.kill();
await service.kill();
rmSync(page, { recursive: true });
