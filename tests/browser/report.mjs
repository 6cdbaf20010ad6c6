// The page of `fhec report`. Settings: `page`, the file; `hostile`, a name that must be shown as it is.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

import { center, fits, open, paper, settings, start } from "./lib.mjs";

const url = pathToFileURL(settings.page).href;
const browser = await start();
const { page, complaints } = await open(browser, { isOurs: (asked) => asked === url });
await page.goto(url);
const tip = () => page.locator("#tip").innerText();

if (settings.hostile) await hostileNames();
else await usualPage();
assert.deepEqual(complaints, []);
await browser.close();

async function hostileNames() {
  for (const node of [1, 2, 3]) {
    await page.mouse.move(...(await center(page, `.stage:not([hidden]) .node:nth-of-type(${node})`)));
  }
  const shown = await tip();
  assert.ok(shown.includes(settings.hostile.slice(0, 20)), `the name is shown: ${shown}`);
  assert.equal(await page.evaluate(() => window.harm === undefined), true);
  assert.equal(await page.evaluate(() => document.images.length + document.scripts.length), 1);
}

async function usualPage() {
  const boxes = () => page.locator(".stage:not([hidden]) .node").count();
  assert.equal(await boxes(), 40);
  const isLarge = await page.evaluate(() =>
    [...document.querySelectorAll("svg")].every(
      (svg) => svg.closest("[hidden], details") || svg.getBoundingClientRect().width > 50,
    ),
  );
  assert.ok(isLarge, "drawings have a size");
  assert.ok(await fits(page), "nothing hangs out to the right");

  // Another stage.
  await page.locator("#tab-0").click();
  assert.equal(await boxes(), 74);
  assert.equal(await page.locator("#tab-0").getAttribute("aria-selected"), "true");
  await page.locator("#tab-0").press("End");
  assert.equal(await boxes(), 40, "the End key shows the program");

  // A pointer over a box.
  await page.mouse.move(...(await center(page, ".stage:not([hidden]) .node:nth-of-type(1)")));
  const shown = await tip();
  for (const part of ["shape", "level", "scale", "L20.1"]) assert.ok(shown.includes(part), `${part}: ${shown}`);
  await page.mouse.move(2, 2);
  assert.equal(await page.locator("#tip").isHidden(), true);

  // Zoom by wheel and by button, and back.
  const graph = ".stage:not([hidden]) svg.graph";
  const width = async () => Number((await page.locator(graph).getAttribute("viewBox")).split(" ")[2]);
  const home = await width();
  await page.mouse.move(...(await center(page, graph)));
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -240);
  await page.keyboard.up("Control");
  await page.waitForFunction(
    ([graph, home]) => Number(document.querySelector(graph).getAttribute("viewBox").split(" ")[2]) < home * 0.8,
    [graph, home],
  );
  const near = await width();
  await page.evaluate(() => document.querySelector("[data-zoom=in]").click());
  assert.ok((await width()) < near);
  await page.evaluate(() => document.querySelector("[data-zoom=fit]").click());
  assert.ok(Math.abs((await width()) - home) < 0.01);

  // A column of the charts, a narrow window, dark colors, paper.
  await page.mouse.move(...(await center(page, ".chart .hit")));
  assert.equal(await page.locator(".hit.here").count(), 1);
  await page.setViewportSize({ width: 400, height: 800 });
  assert.ok(await fits(page), "nothing hangs out of a narrow window");
  const light = await paper(page);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await paper(page), light);
  assert.ok((await page.pdf()).length > 10_000);
}
