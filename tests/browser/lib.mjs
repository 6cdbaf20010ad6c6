// What the scripts share: a page in Chromium that remembers everything it should not have done.

import { chromium } from "playwright-core";

/** What the Rust test gave. */
export const settings = JSON.parse(process.env.BROWSER_SETTINGS ?? "{}");

/** Starts the browser. */
export function start() {
  const args = ["--disable-quic", "--disable-background-networking", "--disable-component-update"];
  return chromium.launch({ executablePath: settings.chromium, args });
}

/** Opens an empty page; `complaints` lists console messages, exceptions, and requests that `isOurs` does not know. */
export async function open(browser, { isOurs = () => true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  context.on("request", (request) => isOurs(request.url()) || complaints.push(`request: ${request.url()}`));
  return { context, page, complaints };
}

/** Center of the first element that a selector finds, scrolled into view. */
export function center(page, selector) {
  return page.evaluate((selector) => {
    const element = document.querySelector(selector);
    element.scrollIntoView({ block: "center" });
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  }, selector);
}

/** Whether nothing hangs out to the right. */
export const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

/** The color of the paper. */
export const paper = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

/** The modules of the client, from the fastest on. */
export const MODULES = ["fhec_web_relaxed.wasm", "fhec_web_simd.wasm", "fhec_web.wasm"];

/** The text of worker.js as if the browser knew no better module. */
export function preferring(worker, module) {
  const changed = worker.replace(/MODULES\.find\(.*?\) \?\? /, `["${module}"] ?? `);
  if (changed === worker) throw new Error("worker.js has changed: it loads what it likes");
  return changed;
}

/** Has pages of a context load a module as if the browser knew no better one. */
export function withModule(context, module) {
  return context.route("**/worker.js", async (route) => {
    const text = await (await route.fetch()).text();
    await route.fulfill({ contentType: "text/javascript", body: preferring(text, module) });
  });
}
