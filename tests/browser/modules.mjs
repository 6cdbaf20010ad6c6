// The keys of one secret key by every module, which the Rust test compares. Settings: those of visit.mjs; `digits`.

import assert from "node:assert/strict";
import { copyFileSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { MODULES, settings, withModule } from "./lib.mjs";
import { ask, draw, readGray } from "./hand.mjs";
import { at } from "./service.mjs";
import { end, service, step, visit } from "./visit.mjs";

const program = (await (await fetch(`${service.url}/v1/programs`)).json())[0].id;
let key = null;

for (const module of [null, ...MODULES]) {
  await step(`${module ?? "the module that the browser prefers"} makes the same keys`, async () => {
    const loaded = [];
    const prepare = (context) => {
      context.on("request", (request) => request.url().endsWith(".wasm") && loaded.push(request.url().split("/").at(-1)));
      return module && withModule(context, module);
    };
    const { page, context, complaints } = await visit({ prepare });
    await page.locator("#key-card").evaluate((card) => (card.open = true));
    if (key === null) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export").click()]);
      await download.saveAs((key = at("module.key")));
    } else {
      await page.locator("#import").setInputFiles(key);
      await page.waitForFunction(() => /first time/.test(document.getElementById("once").textContent));
    }
    await draw(page, readGray(join(settings.digits, "plain-3.png")));
    assert.equal((await ask(page)).label, "3");
    assert.deepEqual([...new Set(loaded)], [module ?? MODULES[0]]);
    // The server forgets them, so that the next module makes them anew.
    const id = readFileSync(key).subarray(44, 60).toString("hex");
    const [name] = readdirSync(at("store/keys"), { recursive: true }).filter((name) => name.endsWith(id));
    copyFileSync(join(at("store/keys"), name), at(`${module ?? "preferred"}.evk`));
    const deleted = await fetch(`${service.url}/v1/programs/${program}/keys/${id}`, { method: "DELETE" });
    assert.equal(deleted.status, 204);
    assert.deepEqual(complaints, []);
    await context.close();
  });
}

await end();
