// Times of the client: keys, encryption, decryption, memory. Settings: `page`; `folder` with `program.fhebc` and `program.fhei`;
// `binaries`; `runs`; `plain`, for the module without vectors. Prints one line of JSON.

import { createServer } from "node:http";
import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";

import { open, settings, start } from "./lib.mjs";
import { at, run } from "./service.mjs";

const KINDS = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const KEYS = /^\/v1\/programs\/[0-9a-f]+\/keys\//;

// A server that takes keys and checks nothing, so that nothing but the client is measured.
let received = 0;
const file = createWriteStream(at("bench.evk"));
const server = createServer((request, response) => {
  const url = request.url.split("?")[0];
  if (KEYS.test(url)) {
    const total = Number(request.headers["content-range"]?.split("/")[1] ?? settings.total ?? 0);
    request.on("data", (bytes) => {
      received += bytes.length;
      file.write(bytes);
    });
    return void request.on("end", () => {
      const state = received > 0 && received === settings.total ? "ready" : "uploading";
      response.setHeader("Content-Type", "application/json");
      response.statusCode = received === 0 ? 404 : 200;
      const none = { code: "no-such-keys", message: "none" };
      response.end(JSON.stringify(received === 0 ? none : { state, received_bytes: received, total_bytes: total }));
    });
  }
  const name = url === "/" ? "bench.html" : url.slice(1);
  const ours = { "bench.html": () => "<!doctype html><link rel=icon href=icon.svg>", interface: () => readFileSync(at("program.fhei")) };
  const body = ours[name]?.() ?? (name === "result" ? readFileSync(at("bench-result.ct")) : null);
  response.setHeader("Content-Type", KINDS[extname(name)] ?? "application/octet-stream");
  response.end(body ?? readFileSync(join(settings.page, name)));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;

const browser = await start();
const { page, context } = await open(browser);
const session = await browser.newBrowserCDPSession();
/** Processor time of the page and its worker so far, in ms: what counts on a machine that others use. */
const processor = async () => {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime * 1000, 0);
};
if (settings.plain) {
  await context.route("**/worker.js", async (route) => {
    const text = await (await route.fetch()).text();
    await route.fulfill({ contentType: "text/javascript", body: text.replace("WebAssembly.validate(RELAXED)", "false") });
  });
}
await page.goto(url);
const made = await page.evaluate(async (runs) => {
  const { Client } = await import("./client.js");
  const bytes = new Uint8Array(await (await fetch("interface")).arrayBuffer());
  let began = performance.now();
  window.client = await Client.create(bytes);
  const create = performance.now() - began;
  const { facts } = window.client;
  const times = [];
  // The fastest of several is what the machine can do while others use it, too.
  for (let i = 0; i < runs; i += 1) {
    const pixels = new Uint8Array(facts.channels * facts.height * facts.width).map((_, k) => (k * 31 + i) % 256);
    began = performance.now();
    window.input = await window.client.encrypt(pixels);
    times.push(performance.now() - began);
  }
  return { facts, create, encrypt: times, input: [...window.input] };
}, settings.runs ?? 10);
settings.total = made.facts.keyFileBytes;
const before = await processor();
const keys = await page.evaluate(async (url) => {
  const began = performance.now();
  await window.client.uploadKeys(url);
  return [performance.now() - began, await window.client.memoryBytes()];
}, url);
const keysProcessor = (await processor()) - before;
await new Promise((resolve) => file.end(resolve));
writeFileSync(at("bench.ct"), Uint8Array.from(made.input));
run("fhe-run", "eval", "program.fhebc", "bench.ct", "--eval-keys", "bench.evk", "-o", "bench-result.ct");
// Every result is decrypted once, so a time is that of one; the first of all is slower, as the browser compiles.
const decrypt = await page.evaluate(async () => {
  const bytes = new Uint8Array(await (await fetch("result")).arrayBuffer());
  const began = performance.now();
  await window.client.decrypt(bytes);
  return performance.now() - began;
});
const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];
const result = {
  engine: made.facts.engine,
  logN: made.facts.logN,
  keys: made.facts.keys,
  keyFileBytes: made.facts.keyFileBytes,
  createMs: made.create,
  keysMs: keys[0],
  keysProcessorMs: keysProcessor,
  memoryBytes: keys[1],
  encryptMs: median(made.encrypt),
  encryptFastestMs: Math.min(...made.encrypt),
  decryptMs: decrypt,
};
console.log(JSON.stringify(result));
await browser.close();
server.close();
