import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { Book } from "cuebook";
import { project } from "./projects.js";

const JUDGE = `---
name: judge
model: gpt-4o
inputs:
  - {name: text, kind: string, required: true, description: What to judge */ here.}
  - {name: mode, kind: string, enumValues: [fast, slow]}
outputs:
  - {name: verdict, kind: string, enumValues: [good, bad]}
  - {name: score, kind: float}
  - {name: parts, kind: array, items: {kind: object, properties: [{name: from-line, kind: integer}]}}
---
user:
{{ text }} {{ mode }} {{ more.of }}
`;
const GREETING = 'VARIABLES = {"required": [{"name": "name", "type": "string"}], "custom": [{"name": "n", "type": "integer", "default": 1}]}\n';
const PROGRAM = `import { Book } from "cuebook";
import { judgeOutput, type JudgeOutput, type Prompts } from "./prompts.js";

const book = Book.open<Prompts>(".");
book.render("greeting", { name: "Ada", n: 2n });
book.render("judge", { text: "x", mode: "fast", more: { of: 1 } });
export const verdict: Promise<"good" | "bad"> = book.run("judge", { text: "x" }).then((done) => done.outputs.verdict);
export const output: JudgeOutput = judgeOutput.parse({ verdict: "good", score: 1, parts: [{ "from-line": 1 }] });
WRONG
`;
const WRONG = [
  'book.render("greeting");',
  'book.render("greeting", { name: 7 });',
  'book.render("greeting", { name: "Ada", n: "x" });',
  'book.render("greeting", { nmae: "Ada" });',
  'book.render("greting", { name: "Ada" });',
  'book.render("judge", { text: "x", mode: "quick" });',
  'book.start("judge", { text: "x" }, { modle: "m" });',
  "export const wrong: Promise<number> = book.run(\"judge\", { text: \"x\" }).then((done) => done.outputs.verdict);",
];

const require = createRequire(import.meta.url);
const modules = dirname(dirname(require.resolve("cuebook/package.json")));
const command = join(modules, "cuebook/native/cuebook");

function files(): string {
  const root = project({
    "prompts/greeting/prompt.py": GREETING,
    "prompts/greeting/template.md": "Hello {{ name }}",
    "prompts/judge.prompty": JUDGE,
    "prompts/broken/template.md": "{% if %}",
    "tsconfig.json": JSON.stringify({
      compilerOptions: { module: "node16", strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: ["node"], skipLibCheck: true },
      files: ["program.mts"],
    }),
  });
  symlinkSync(modules, join(root, "node_modules"));
  return root;
}

function stubs(root: string, ...words: string[]) {
  return spawnSync(command, ["stubs", "--root", root, ...words], { encoding: "utf8", cwd: root });
}

test("the compiler finds wrong calls and no others", () => {
  const root = files();
  assert.equal(stubs(root, "--out", "prompts.mts", "--zod").status, 0);
  writeFileSync(join(root, "program.mts"), PROGRAM.replace("./prompts.js", "./prompts.mjs").replace("WRONG", WRONG.join("\n")));
  const done = spawnSync(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", root, "--pretty", "false"], { encoding: "utf8" });
  const places = [...done.stdout.matchAll(/^(\S+?)\((\d+),/gm)].map((found) => `${found[1]!.split("/").at(-1)}:${found[2]}`);
  assert.deepEqual([...new Set(places)], WRONG.map((_, number) => `program.mts:${9 + number}`), done.stdout);
});

test("the command and the package write the same module", async () => {
  const root = files();
  const printed = stubs(root, "--lang", "ts");
  assert.equal(printed.stdout.trimEnd(), (await Book.open(root).stubs()).trimEnd());
  assert.ok((await Book.open(root).stubs({ zod: true })).includes("export const judgeInput = z.object({"));
  assert.equal(stubs(root, "--zod").status, 2);
  writeFileSync(join(root, "mine.ts"), "export {};\n");
  assert.match(stubs(root, "--out", "mine.ts").stderr, /CB112|not one that this command wrote/);
});

test("the module follows the prompts while it is watched", async (context) => {
  const root = files();
  const out = join(root, "prompts.ts");
  const watching = spawn(command, ["stubs", "--root", root, "--out", out, "--watch"], { stdio: ["ignore", "ignore", "pipe"] });
  context.after(() => watching.kill());
  const lines = createInterface({ input: watching.stderr })[Symbol.asyncIterator]();
  assert.match((await lines.next()).value as string, /^wrote /);
  assert.ok(!readFileSync(out, "utf8").includes("urgent"));
  writeFileSync(join(root, "prompts/greeting/template.md"), "Hello {{ name }} {{ urgent }}");
  assert.match((await lines.next()).value as string, /^wrote /);
  assert.ok(readFileSync(out, "utf8").includes("urgent?: unknown"));
});
