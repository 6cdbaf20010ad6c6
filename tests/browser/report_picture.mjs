// The picture of a report for the documents. Settings: `page`, the file; `picture`, where it goes; `width`, `height`.

import { pathToFileURL } from "node:url";

import { open, settings, start } from "./lib.mjs";

const { width, height } = settings;
const browser = await start();
const { page } = await open(browser, { viewport: { width, height } });
await page.goto(pathToFileURL(settings.page).href);
const bottom = await page.evaluate(
  () => document.querySelector("#layers details").getBoundingClientRect().top + scrollY,
);
await page.screenshot({ path: settings.picture, fullPage: true, clip: { x: 0, y: 0, width, height: bottom } });
await browser.close();
