// The page of `fhec report` on a phone, a tablet and a desk. Settings: `page`, the file.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

import { fits, open, settings, start } from "./lib.mjs";

const url = pathToFileURL(settings.page).href;
const windows = [
  { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  { viewport: { width: 820, height: 1180 }, hasTouch: true },
  { viewport: { width: 1440, height: 900 } },
];
const browser = await start();
for (const window of windows) await look(window);
await browser.close();

async function look(window) {
  const { page, context, complaints } = await open(browser, { isOurs: (asked) => asked === url, ...window });
  await page.goto(url);
  const { width, height } = window.viewport;
  const holds = async (what, script) => assert.ok(await page.evaluate(script), `${width} x ${height}: ${what}`);

  assert.ok(await fits(page), `${width} x ${height}: nothing hangs out to the right`);
  await holds("the figures are on the first screen", () =>
    [...document.querySelectorAll(".figure dd")].every((f) => f.getBoundingClientRect().bottom <= innerHeight),
  );
  await holds("no figure is cut off", () =>
    [...document.querySelectorAll(".figure dd")].every((f) => f.scrollWidth <= f.clientWidth + 1),
  );
  await holds("no cell of the figures is empty", () => {
    const columns = getComputedStyle(document.querySelector(".figures")).gridTemplateColumns.split(" ").length;
    return document.querySelectorAll(".figure").length % columns === 0;
  });
  await holds("the drawing fills its frame", () => {
    const svg = document.querySelector(".stage:not([hidden]) svg.graph");
    const [frame, scene] = [svg.getBoundingClientRect(), svg.querySelector(".scene").getBoundingClientRect()];
    return scene.height > 0.5 * frame.height;
  });
  await holds("levels are numbers, and bars only where they have room", () =>
    [...document.querySelectorAll("td.bar")].every((b) => b.offsetWidth === 0 || b.offsetWidth > 100),
  );
  await holds("every arrow has a head", () => {
    const count = (selector) => document.querySelectorAll(selector).length;
    return count(".arrow") > 0 && count(".arrow") === count(".head");
  });
  await holds("counters are folded", () => [...document.querySelectorAll("details")].every((d) => !d.open));

  if (window.hasTouch) {
    await page.locator(".stage:not([hidden]) .node").first().tap();
    assert.equal(await page.locator("#tip").isVisible(), true, "a tap shows the figures of a box");
    await page.locator("h1").tap();
    assert.equal(await page.locator("#tip").isHidden(), true, "a tap elsewhere hides them");
  }
  assert.deepEqual(complaints, []);
  await context.close();
}
