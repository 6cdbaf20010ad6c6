// The picture of the page for the documents. Settings: those of service.mjs, `digits`, `picture`, where it goes.

import { join } from "node:path";

import { open, settings, start } from "./lib.mjs";
import { ask, draw, readGray } from "./hand.mjs";
import { Service } from "./service.mjs";

const service = await Service.start(["lenet.fhebc"]);
const browser = await start();
const { page } = await open(browser, { viewport: { width: 1180, height: 900 } });
await page.goto(`${service.url}/`);
await page.waitForFunction(() => document.getElementById("once").textContent !== "");
// The second question, which sends no keys any more.
for (const name of ["plain-1", "broad-3"]) {
  await draw(page, readGray(join(settings.digits, `${name}.png`)));
  const said = await ask(page);
  if (said.message) throw new Error(said.message);
}
await page.evaluate(() => document.activeElement?.blur());
await page.screenshot({ path: settings.picture, fullPage: true });
await browser.close();
await service.kill();
