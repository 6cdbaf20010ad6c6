// The types of the client: client.d.ts agrees with what client.js exports, lets usage.ts pass, and knows all that the program of
// docs/browser.md uses. Settings: `module`, the folder of the client; `example`, the document.

import assert from "node:assert/strict";
import { readFileSync, mkdtempSync, writeFileSync, copyFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";

import { settings } from "./lib.mjs";

const { module, example } = settings;
const OPTIONS = {
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ES2022,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
  types: [],
};
const folder = mkdtempSync(join(tmpdir(), "fhec-types-"));
const at = (name) => join(folder, name);
const check = (names, options) => {
  const program = ts.createProgram(names.map(at), { ...OPTIONS, ...options });
  const found = ts.getPreEmitDiagnostics(program).map((d) => ts.flattenDiagnosticMessageText(d.messageText, "\n"));
  assert.deepEqual(found, []);
  return program;
};
try {
  for (const name of ["client.js", "client.d.ts"]) copyFileSync(join(module, name), at(name));
  copyFileSync(new URL("usage.ts", import.meta.url), at("usage.ts"));
  writeFileSync(at("example.js"), /```js\n([\s\S]*?)```/.exec(readFileSync(example, "utf8"))[1]);
  check(["example.js"], { allowJs: true, checkJs: true, strict: false });
  const program = check(["usage.ts", "client.d.ts"], { strict: true });
  // What is declared is there, and the other way round.
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(at("client.d.ts"));
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source));
  const values = exported.filter((symbol) => symbol.flags & ts.SymbolFlags.Value).map((symbol) => symbol.name);
  globalThis.Worker ??= class {};
  const actual = await import(at("client.js"));
  assert.deepEqual(values.toSorted(), Object.keys(actual).toSorted());
  const type = exported.find((symbol) => symbol.name === "Client");
  const methods = [...type.members.values()].filter((m) => m.flags & ts.SymbolFlags.Method).map((m) => m.name);
  const made = Object.getOwnPropertyNames(actual.Client.prototype).filter((name) => name !== "constructor");
  assert.deepEqual(methods.toSorted(), made.toSorted());
  console.log(`ok   types: ${values.length} exports, ${methods.length} methods`);
} finally {
  rmSync(folder, { recursive: true });
}
