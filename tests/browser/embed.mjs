// The page of docs/browser.md, made and used as it says there. Settings: those of service.mjs; `example`, the document; `digits`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { open, settings, start } from "./lib.mjs";
import { Service, at } from "./service.mjs";

const text = readFileSync(settings.example, "utf8").split("## In your own page")[1];
const block = (kind) => new RegExp(`\`\`\`${kind}[^\n]*\n([\\s\\S]*?)\`\`\``).exec(text)[1];

mkdirSync(at("target"));
symlinkSync(settings.page, at("target/web"));
execFileSync("bash", ["-euc", block("sh")], { cwd: settings.folder });
writeFileSync(at("mine/index.html"), block("html"));
writeFileSync(at("mine/mine.js"), block("js"));

settings.page = "mine";
const service = await Service.start(["lenet.fhebc"]);
const browser = await start();
const isOurs = (url) => url.startsWith(`${service.url}/`);
const { page, complaints } = await open(browser, { isOurs });
const said = () => page.locator("output").textContent();
for (const visit of ["first", "next"]) {
  const sent = [];
  page.on("request", (request) => request.method() === "PUT" && sent.push(request.url()));
  await page.goto(`${service.url}/`);
  for (const digit of ["3", "1"]) {
    await page.waitForFunction(() => !document.querySelector("input").disabled, null, { timeout: 120_000 });
    await page.locator("input").setInputFiles(join(settings.digits, `plain-${digit}.png`));
    await page.waitForFunction((digit) => document.querySelector("output").textContent.startsWith(`a ${digit},`), digit);
  }
  console.log(`ok   the ${visit} visit to a page of one's own: ${await said()}`);
  assert.equal(sent.length > 0, visit === "first", "keys are sent once");
  page.removeAllListeners("request");
}
assert.deepEqual(complaints, []);
await browser.close();
await service.kill();
