// Visits to the page of a running `fhe-serve` with a LeNet. Settings: those of service.mjs; to try less, `only`, a part of the
// name of a step.

import { open, settings, start } from "./lib.mjs";
import { Service } from "./service.mjs";

export const service = await Service.start(["lenet.fhebc"]);
const browser = await start();
const isOurs = (url) => url.startsWith(`${service.url}/`) || url.startsWith(`blob:${service.url}/`);

/** An empty page that may talk to the server only. */
export const empty = (options) => open(browser, { isOurs, ...options });

/** Opens the page and waits until it is ready; `prepare` is given its context before. */
export async function visit({ prepare, ...options } = {}) {
  const opened = await empty(options);
  await prepare?.(opened.context);
  await goTo(opened.page);
  return opened;
}

/** Goes to the page and waits until it is ready. */
export async function goTo(page) {
  await page.goto(`${service.url}/`);
  await ready(page);
}

/** Waits until the page knows whether the server has its keys. */
export const ready = (page) => page.waitForFunction(() => document.getElementById("once").textContent !== "");

export async function step(name, body) {
  if (settings.only && !name.includes(settings.only)) return;
  const began = performance.now();
  await body();
  console.log(`ok   ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}

export async function end() {
  await browser.close();
  await service.kill();
}
