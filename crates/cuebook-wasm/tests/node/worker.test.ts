import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const esbuild = fileURLToPath(new URL("../.bin/esbuild", import.meta.resolve("esbuild/package.json")));
const here = fileURLToPath(new URL("..", import.meta.url));

test("the handler of the chapter answers, also in a bundle without Node", async () => {
  // An edge runtime gives a program a compiled module for a file of WebAssembly, as this piece does.
  const bundle = `${here}bundle`;
  mkdirSync(bundle, { recursive: true });
  copyFileSync(`${here}worker.ts`, `${bundle}/worker.ts`);
  const words = [`${bundle}/worker.ts`, "--bundle", "--format=esm", "--platform=browser", "--external:*.wasm", `--outfile=${bundle}/worker.js`];
  const done = spawnSync(esbuild, words, { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  const text = readFileSync(`${bundle}/worker.js`, "utf8");
  assert.ok(!/from "node:|require\("node:/.test(text));
  const file = JSON.stringify(fileURLToPath(import.meta.resolve("cuebook-wasm/cuebook.wasm")));
  const compiled = `import { readFileSync } from "node:fs";\nconst $1 = new WebAssembly.Module(readFileSync(${file}));`;
  writeFileSync(`${bundle}/worker.mjs`, text.replace(/import (\w+) from "cuebook-wasm\/cuebook\.wasm";/, compiled));
  const worker = (await import(`${bundle}/worker.mjs`)) as { default: { fetch(request: Request): Promise<Response> } };
  const answer = await worker.default.fetch(new Request("https://example.com/?name=Ada"));
  assert.equal(answer.status, 200);
  const body = (await answer.json()) as { model: string; messages: unknown[] };
  assert.deepEqual([body.model, body.messages], ["gpt-4o", [{ role: "user", content: "Say hello to Ada." }]]);
  const refused = await worker.default.fetch(new Request("https://example.com/"));
  assert.equal(refused.status, 400);
  assert.equal(((await refused.json()) as { code: string }).code, "CB401");
});
