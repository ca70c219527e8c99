// Makes a module of the Worker in a chapter, and of the project that it renders.
//
//   node chapter.mjs CHAPTER OUT

import { readFileSync, writeFileSync } from "node:fs";

const [chapter, out] = process.argv.slice(2);
const [, piece] = /^```ts worker\n(.*?)^```$/ms.exec(readFileSync(chapter, "utf8")) ?? [];
if (piece === undefined) {
  throw new Error("the chapter has no piece `ts worker`");
}
writeFileSync(out, piece);
