// The page that bench.mjs measures: the client as a page has it, its figures in the title at the end.

import { Client } from "./client.js";

const runs = Number(new URLSearchParams(location.search).get("runs"));

async function measure() {
  const start = performance.now();
  const client = await Client.connect("/");
  const createMs = performance.now() - start;

  const began = performance.now();
  let keysSentMs = 0;
  // Sent: the server has the last byte. Done: it has checked them all.
  await client.uploadKeys("/", ({ sentBytes, totalBytes }) => {
    if (sentBytes === totalBytes && keysSentMs === 0) keysSentMs = performance.now() - began;
  });
  const keysCheckedMs = performance.now() - began;

  const times = { encrypt: [], evaluate: [], decrypt: [] };
  const timed = async (name, call) => {
    const began = performance.now();
    const value = await call();
    times[name].push(performance.now() - began);
    return value;
  };
  const { channels, height, width } = client.facts;
  for (let i = 0; i < runs; i += 1) {
    const pixels = new Uint8Array(channels * height * width).map((_, k) => (k * 31 + i) % 256);
    const input = await timed("encrypt", () => client.encrypt(pixels));
    const result = await timed("evaluate", () => client.evaluate("/", input));
    await timed("decrypt", () => client.decrypt(result));
  }
  const { engine, logN, keys, keyFileBytes } = client.facts;
  return { engine, logN, keys, keyFileBytes, createMs, keysSentMs, keysCheckedMs, memoryBytes: await client.memoryBytes(), times };
}

// Lists of pages show titles as HTML does: without quotes.
document.title = `done ${encodeURIComponent(JSON.stringify(await measure().catch((error) => ({ error: String(error) }))))}`;
