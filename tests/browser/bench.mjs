// Times of the client against a running `fhe-serve`: keys, encryption, decryption, memory. Settings: those of service.mjs, with
// `program.fhebc` in `folder`; `module`, which of the client's; `runs`, questions that are asked. Prints one line of JSON.

import { open, settings, start, withModule } from "./lib.mjs";
import { Service } from "./service.mjs";

const service = await Service.start(["program.fhebc"], { store: `bench-${settings.module}` });
const browser = await start();
const { page, context } = await open(browser);
await withModule(context, settings.module);
const session = await browser.newBrowserCDPSession();
/** Processor time of the page and its worker so far, in ms: what counts on a machine that others use. */
const processor = async () => {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime * 1000, 0);
};
await page.goto(`${service.url}/`);
await page.waitForFunction(() => document.getElementById("once").textContent !== "");

const facts = await page.evaluate(async () => {
  const { Client } = await import("./client.js");
  const began = performance.now();
  window.client = await Client.connect("/");
  return { ...window.client.facts, createMs: performance.now() - began };
});
const before = await processor();
// Sent: the server has the last byte. Done: it has checked them all.
const keys = await page.evaluate(async () => {
  const began = performance.now();
  let sent = 0;
  await window.client.uploadKeys("/", ({ sentBytes, totalBytes }) => {
    if (sentBytes === totalBytes && sent === 0) sent = performance.now() - began;
  });
  return { sent, done: performance.now() - began, memory: await window.client.memoryBytes() };
});
const keysProcessor = (await processor()) - before;
const times = await page.evaluate(async (runs) => {
  const { client } = window;
  const { channels, height, width } = client.facts;
  const times = { encrypt: [], evaluate: [], decrypt: [] };
  const timed = async (name, call) => {
    const began = performance.now();
    const value = await call();
    times[name].push(performance.now() - began);
    return value;
  };
  for (let i = 0; i < runs; i += 1) {
    const pixels = new Uint8Array(channels * height * width).map((_, k) => (k * 31 + i) % 256);
    const input = await timed("encrypt", () => client.encrypt(pixels));
    const result = await timed("evaluate", () => client.evaluate("/", input));
    await timed("decrypt", () => client.decrypt(result));
  }
  return { ...times, memory: await client.memoryBytes() };
}, settings.runs ?? 5);

const round = (ms) => Number(ms.toFixed(1));
const median = (list) => round(list.toSorted((a, b) => a - b)[list.length >> 1]);
/** The first is slower than the others, as the browser compiles meanwhile; the least is what a machine can do that others use, too. */
const told = (list) => ({ first: round(list[0]), median: median(list), least: round(Math.min(...list)) });
const result = {
  module: settings.module,
  engine: facts.engine,
  logN: facts.logN,
  keys: facts.keys,
  keyFileBytes: facts.keyFileBytes,
  createMs: round(facts.createMs),
  keysSentMs: round(keys.sent),
  keysCheckedMs: round(keys.done),
  keysProcessorMs: round(keysProcessor),
  memoryBytes: Math.max(keys.memory, times.memory),
  encryptMs: told(times.encrypt),
  evaluateMs: told(times.evaluate),
  decryptMs: told(times.decrypt),
};
console.log(JSON.stringify(result));
await browser.close();
await service.kill();
