// Makes a test of a chapter: files are written, pieces of TypeScript run one after another, and `text` after one is what it printed. A piece
// that is `compiled` has just the errors that its comments name, and one for `vitest` is a file of tests that pass. A piece for `next` is a file
// of a project of Next.js, which is written to the folder `next` beside the test.
//
//   node chapter.mjs CHAPTER OUT

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [chapter, out] = process.argv.slice(2);
const imports = [];
const steps = [];
let pieces = 0;
for (const [, info, text] of readFileSync(chapter, "utf8").matchAll(/^```([^\n]*)\n(.*?)^```$/gms)) {
  const words = info.split(" ");
  if (words[1] === "next") {
    // A file of a project of Next.js, which `next.test.ts` builds.
    const path = join(dirname(out), "next", words[2]);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  } else if (words.includes("file")) {
    steps.push(`file(${JSON.stringify(words.at(-1))}, ${JSON.stringify(text)});`);
  } else if (info === "ts") {
    pieces += 1;
    const code = text.replace(/^import .*?;$/gms, (line) => (imports.push(line), "")).replace(/^export /gm, "");
    if (/\bexport\b/.test(code)) throw new Error(`a piece cannot be run: ${code}`);
    steps.push(`expect("");\n${code}`);
  } else if (info === "ts compiled") {
    steps.push(`await compiled(book, ${JSON.stringify(text)});`);
  } else if (info === "ts vitest") {
    steps.push(`await vitest(${JSON.stringify(text)});`);
  } else if (info === "ts worker") {
    // The tests of `cuebook-wasm` run it.
  } else if (info.startsWith("ts")) {
    throw new Error(`a piece of the chapter is not tested: ${info}`);
  } else if (info === "text") {
    steps.push(`expect(${JSON.stringify(text)});`);
  }
}
const body = steps.join("\n").replace(/^/gm, "  ");
writeFileSync(
  out,
  `import assert from "node:assert/strict";
import { test } from "node:test";
import { compiled, console, expect, file, open as begin, vitest } from "./page.js";
${imports.join("\n")}

test("the examples of the chapter are true", async () => {
  await begin();
${body}
  expect("");
  assert.ok(${pieces} >= 12);
});
`,
);
