// The page when things go wrong: servers that die, keys that break off, hostile interfaces and results. Settings: those of
// visit.mjs; `digits`; in `folder`, interfaces of another program and of a toy ring.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { settings } from "./lib.mjs";
import { ask, draw, ended, readGray } from "./hand.mjs";
import { at, refuse } from "./service.mjs";
import { empty, end, goTo, ready, service, step, visit } from "./visit.mjs";

const digit = (name) => readGray(join(settings.digits, `${name}.png`));

await step("a server that dies in mid-job is told, and trying again works", async () => {
  const { page, context } = await visit();
  await draw(page, digit("plain-3"));
  assert.equal((await ask(page)).label, "3");
  await draw(page, digit("broad-7"));
  // The page hears that its job is accepted when the server is dead.
  await page.route("**/jobs?*", async (route) => {
    const response = await route.fetch();
    await service.kill();
    await route.fulfill({ response });
  });
  const told = await ask(page);
  assert.equal(told.code, "connection");
  assert.match(told.message, /server/);
  assert.equal(told.button, "Try again");
  await page.unroute("**/jobs?*");
  await service.start();
  const said = await ask(page);
  assert.equal(said.message, null);
  assert.equal(said.label, "7");
  await context.close();
});

await step("keys that break off are gone on with, by the same page and by the next one", async () => {
  const other = await visit();
  await other.page.locator("#key-card").evaluate((card) => (card.open = true));
  await other.page.locator("input[value=indexeddb]").check();
  await draw(other.page, digit("plain-3"));
  await other.page.locator("#ask").click();
  await other.page.waitForFunction(() => document.querySelector("#steps progress")?.value > 0.3);
  await service.kill();
  const told = await ended(other.page);
  assert.equal(told.code, "connection");
  await service.start();
  await other.page.reload();
  await ready(other.page);
  await draw(other.page, digit("plain-3"));
  assert.equal((await ask(other.page)).label, "3");
  // What this server received since it was started: the rest of the keys, and one input.
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const received = Number(/^fhe_body_bytes_total (\d+)/m.exec(metrics)[1]);
  const [{ key_file_bytes: total }] = await (await fetch(`${service.url}/v1/programs`)).json();
  assert.ok(received > 0 && received < 0.8 * total, `${received} of ${total} bytes came after the break`);
  await other.context.close();
});

await step("hostile interfaces and results are refused, as by the command", async () => {
  const hostile = await empty();
  const program = await (await fetch(`${service.url}/v1/programs`)).json();
  const file = new Uint8Array(await (await fetch(`${service.url}/v1/programs/${program[0].id}/interface`)).arrayBuffer());
  const others = readFileSync(at("other.fhei"));
  const damaged = file.slice();
  damaged[damaged.length >> 1] ^= 4;
  writeFileSync(at("damaged.fhei"), damaged);
  const cases = [
    [damaged, "interface", /checksum|damaged|malformed/i],
    [file.slice(0, 100), "interface", /interface/],
    [new Uint8Array(0), "interface", /interface/],
    [others, "program", /is of program/],
    [readFileSync(at("toy.fhei")), "insecure", /INSECURE/],
  ];
  for (const [bytes, code, words] of cases) {
    await hostile.page.route("**/interface", (route) => route.fulfill({ body: Buffer.from(bytes) }));
    await hostile.page.goto(`${service.url}/`);
    await hostile.page.waitForFunction(() => !document.getElementById("message").hidden);
    assert.equal(await hostile.page.locator("#message").getAttribute("data-code"), code);
    assert.match(await hostile.page.locator("#message").textContent(), words);
    assert.equal(await hostile.page.locator("#ask").isDisabled(), true);
    await hostile.page.unroute("**/interface");
  }
  assert.match(refuse("fhe-run", "info", "damaged.fhei"), /./);
  await goTo(hostile.page);
  let kept = null;
  const change = (how) =>
    hostile.page.route("**/result", async (route) => {
      const body = Buffer.from(await (await route.fetch()).body());
      await route.fulfill({ body: how(body) });
    });
  const changes = [
    [(body) => ((body[body.length >> 1] ^= 1), body), "result", /damaged|result/],
    [(body) => body.subarray(0, body.length - 1), "result", /bytes/],
    [(body) => Buffer.concat([body, Buffer.alloc(1)]), "result", /bytes/],
    [(body) => ((kept ??= Buffer.from(body)), body), null, null],
    // An answer to an earlier question is no answer to this one.
    [() => kept, "result", /answers no request/],
  ];
  for (const [how, code, words] of changes) {
    await change(how);
    await draw(hostile.page, digit("plain-1"));
    const said = await ask(hostile.page);
    assert.equal(said.code, code, said.message ?? "");
    if (words) assert.match(said.message, words);
    await hostile.page.unroute("**/result");
  }
  assert.deepEqual(hostile.complaints, []);
  await hostile.context.close();
});

await end();
