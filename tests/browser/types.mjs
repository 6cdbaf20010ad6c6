// The types of the client: client.d.ts is well formed, agrees with what client.js exports, and lets the program of docs/browser.md pass.

import assert from "node:assert/strict";
import { readFileSync, mkdtempSync, writeFileSync, copyFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";

const { module, example } = JSON.parse(process.env.BROWSER_SETTINGS);
const folder = mkdtempSync(join(tmpdir(), "fhec-types-"));
try {
  for (const name of ["client.js", "client.d.ts"]) copyFileSync(join(module, name), join(folder, name));
  const code = /```js\n([\s\S]*?)```/.exec(readFileSync(example, "utf8"))[1];
  const known = "declare const token: string;\ndeclare const pixels: Uint8Array;\ndeclare function show(...what: unknown[]): void;\n";
  writeFileSync(join(folder, "example.ts"), known + code + "\nexport {};\n");
  const options = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
    types: [],
  };
  const program = ts.createProgram([join(folder, "example.ts"), join(folder, "client.d.ts")], options);
  const found = ts.getPreEmitDiagnostics(program).map((d) => ts.flattenDiagnosticMessageText(d.messageText, "\n"));
  assert.deepEqual(found, []);
  // What is declared is there, and the other way round.
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(join(folder, "client.d.ts"));
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source));
  const values = exported.filter((symbol) => symbol.flags & ts.SymbolFlags.Value).map((symbol) => symbol.name);
  globalThis.Worker ??= class {};
  const actual = await import(join(folder, "client.js"));
  assert.deepEqual(values.toSorted(), Object.keys(actual).toSorted());
  const type = exported.find((symbol) => symbol.name === "Client");
  const methods = [...type.members.values()].filter((m) => m.flags & ts.SymbolFlags.Method).map((m) => m.name);
  const made = Object.getOwnPropertyNames(actual.Client.prototype).filter((name) => name !== "constructor");
  assert.deepEqual(methods.toSorted(), made.toSorted());
  console.log(`ok   types: ${values.length} exports, ${methods.length} methods`);
} finally {
  rmSync(folder, { recursive: true });
}
