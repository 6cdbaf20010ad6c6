// The page of `fhe-serve --page` with a LeNet, as a person uses it. Settings: those of visit.mjs, `digits`, a folder of
// pictures; to try less, `names` of those to draw.
// What it leaves in `folder` is compared by the Rust test: the key and the keys of the page.

import assert from "node:assert/strict";
import { chmodSync, copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { fits, paper, settings } from "./lib.mjs";
import { ask, draw, ended, grayOf, readGray, seen, writeGray } from "./hand.mjs";
import { at, refuse, run } from "./service.mjs";
import { end, ready, service, step, visit } from "./visit.mjs";

const DIGITS = settings.names ?? ["plain-3", "broad-7", "school-0"];

const keyId = (page) => page.locator("#key-id").textContent();
/** What `fhe-run` says of a picture. */
const infer = (picture) => {
  const said = JSON.parse(run("fhe-run", "infer", "lenet.fhebc", picture, "--format", "json", "--scores", "--quiet"));
  return said.predictions[0];
};

const { context, page, complaints } = await visit();

await step("the page is served under a strict policy and says what it protects", async () => {
  const answer = await fetch(`${service.url}/page/`);
  const policy = answer.headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|\*|https?:/);
  assert.match(await page.locator("#promise").textContent(), /encrypted in this browser/);
  assert.equal(await page.evaluate(() => crossOriginIsolated), false, "no special headers are needed");
});

await step("digits drawn by a pointer get the answers of fhe-run", async () => {
  for (const name of DIGITS) {
    await draw(page, readGray(join(settings.digits, `${name}.png`)));
    const drawn = await seen(page);
    writeFileSync(at(`${name}.png`), writeGray(drawn.width, drawn.height, drawn.pixels));
    await page.locator("#wants-scores").setChecked(true);
    const said = await ask(page);
    assert.equal(said.message, null);
    assert.equal(said.label, name.at(-1), name);
    const expected = infer(`${name}.png`);
    assert.equal(said.label, expected.top[0].label);
    await page.locator("#scores-card").evaluate((card) => (card.open = true));
    const shown = await page.locator("#scores .best .value").textContent();
    // Two encryptions differ by their noise: by a unit of what is shown, at most by two.
    const unit = 10 ** -(shown.split(".")[1]?.length ?? 0);
    assert.ok(Math.abs(Number(shown.replace("−", "-")) - expected.top[0].score) <= 2 * unit + 1e-9, `${shown} ${expected.top[0].score}`);
    console.log(`     ${name}: ${said.label}, ${said.steps.map(([step, ms]) => `${step} ${ms.toFixed(0)} ms`).join(", ")}`);
  }
});

await step("a picture that is chosen is encrypted as it is", async () => {
  await page.locator("#choose").setInputFiles(join(settings.digits, "broad-5.png"));
  await page.waitForFunction(() => !document.getElementById("ask").disabled);
  assert.deepEqual((await seen(page)).pixels, readGray(join(settings.digits, "broad-5.png")).pixels);
  await page.locator("#wants-scores").setChecked(false);
  const said = await ask(page);
  assert.equal(said.label, infer(join(settings.digits, "broad-5.png")).top[0].label);
  // Nobody asked for scores.
  assert.equal(await page.locator("#scores-card").isVisible(), false);
});

await step("what the server gets is noise", async () => {
  const counts = new Array(16).fill(0);
  for (const value of (await grayOf(page, "noise")).pixels) counts[value >> 4] += 1;
  for (const count of counts) assert.ok(Math.abs(count - 576) < 150, String(counts));
});

await step("keys and ciphertexts go both ways between the page and fhe-run", async () => {
  await page.locator("#key-card").evaluate((card) => (card.open = true));
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export").click()]);
  await download.saveAs(at("page.key"));
  // Downloads are for everyone; `fhe-run` wants a secret to be its owner's.
  assert.match(refuse("fhe-run", "info", "page.key"), /chmod 600/);
  chmodSync(at("page.key"), 0o600);
  assert.match(run("fhe-run", "info", "page.key"), /secret key/);
  copyFileSync(findKeys(), at("page.evk"));
  const input = await page.evaluate(async (key) => {
    const { Client } = await import("./client.js");
    const bytes = new Uint8Array(await (await fetch(`/v1/programs/${document.getElementById("model").value}/interface`)).arrayBuffer());
    window.other = await Client.create(bytes, { key: Uint8Array.from(key) });
    const pixels = new Uint8Array(28 * 28).map((_, i) => (i % 28 > 11 && i % 28 < 16 && i > 112 && i < 672 ? 255 : 0));
    return [...(await window.other.encrypt(pixels))];
  }, [...readFileSync(at("page.key"))]);
  writeFileSync(at("page.ct"), Uint8Array.from(input));
  run("fhe-run", "eval", "lenet.fhebc", "page.ct", "--eval-keys", "page.evk", "-o", "page-result.ct");
  const line = JSON.parse(
    run("fhe-run", "decrypt", "lenet.fhebc", "page-result.ct", "--secret-key", "page.key", "--request", "page.ct", "--format", "json"),
  );
  const answer = await page.evaluate((bytes) => window.other.decrypt(Uint8Array.from(bytes)), [...readFileSync(at("page-result.ct"))]);
  assert.equal(answer.label, line.predictions[0].top[0].label);
  // The same result again answers nothing any more.
  const again = await page.evaluate((bytes) => window.other.decrypt(Uint8Array.from(bytes)).catch((e) => e.code), [...readFileSync(at("page-result.ct"))]);
  assert.equal(again, "result");
  await page.evaluate(() => window.other.close());
});

await step("a key of fhe-run is used by the page", async () => {
  run("fhe-run", "keygen", "lenet.fhebc", "--secret-key", "run.key", "--eval-keys", "run.evk");
  const before = await keyId(page);
  await page.locator("#import").setInputFiles(at("run.key"));
  await page.waitForFunction((before) => document.getElementById("key-id").textContent !== before, before);
  assert.ok(run("fhe-run", "info", "run.key").includes(await keyId(page)));
  await draw(page, readGray(join(settings.digits, "plain-3.png")));
  assert.equal((await ask(page)).label, "3");
  // A damaged one is refused, and nothing else changes.
  const damaged = readFileSync(at("run.key"));
  damaged[200] ^= 1;
  writeFileSync(at("damaged.key"), damaged, { mode: 0o600 });
  const id = await keyId(page);
  await page.locator("#import").setInputFiles(at("damaged.key"));
  await page.waitForFunction(() => !document.getElementById("message").hidden && !document.getElementById("export").disabled);
  assert.match(await page.locator("#message").textContent(), /secret key is damaged/);
  assert.match(refuse("fhe-run", "decrypt", "lenet.fhebc", "page-result.ct", "--secret-key", "damaged.key"), /damaged/);
  assert.notEqual(id, "");
});

await step("a reload keeps the key where that was chosen, and forgets it elsewhere", async () => {
  await page.reload();
  await ready(page);
  const first = await keyId(page);
  await page.locator("#key-card").evaluate((card) => (card.open = true));
  await page.locator("input[value=indexeddb]").check();
  await draw(page, readGray(join(settings.digits, "plain-1.png")));
  assert.equal((await ask(page)).label, "1");
  await page.reload();
  await ready(page);
  assert.equal(await keyId(page), first, "the key was kept");
  assert.match(await page.locator("#once").textContent(), /has your evaluation keys/);
  assert.equal(await page.locator("input[value=indexeddb]").isChecked(), true);
  await page.locator("#key-card").evaluate((card) => (card.open = true));
  await page.locator("input[value=memory]").check();
  await page.reload();
  await ready(page);
  assert.notEqual(await keyId(page), first, "the key was forgotten");
});

await step("nothing in the console, and no request but to this server", async () => {
  assert.deepEqual(complaints, []);
});

await step("all of it by the keyboard", async () => {
  await page.locator("#drawing").focus();
  for (let i = 0; i < 3; i += 1) await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Space");
  for (let i = 0; i < 17; i += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  assert.equal((await ended(page)).label, "1");
});

await step("light and dark, on a desktop and on a phone", async () => {
  const light = await paper(page);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await paper(page), light);
  assert.ok(await fits(page));
  const phone = await visit({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, colorScheme: "dark" });
  assert.ok(await fits(phone.page), "nothing hangs out of a phone");
  const below = await phone.page.evaluate(() => {
    const top = (id) => document.getElementById(id).getBoundingClientRect().top;
    return top("drawing") < top("ask") && top("ask") < top("noise");
  });
  assert.ok(below, "the button comes right after the drawing");
  const small = await phone.page.evaluate(() =>
    [...document.querySelectorAll("button, select, .button")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 40).length,
  );
  assert.equal(small, 0, "everything is large enough for a thumb");
  assert.deepEqual(phone.complaints, []);
  await phone.context.close();
});

await context.close();
await end();

/** The evaluation keys of the exported key, in the server's store. */
function findKeys() {
  const id = readFileSync(at("page.key")).subarray(44, 60).toString("hex");
  const all = readdirSync(at("store"), { recursive: true }).filter((name) => name.includes(id));
  assert.equal(all.length, 1, String(all));
  return join(at("store"), all[0]);
}
