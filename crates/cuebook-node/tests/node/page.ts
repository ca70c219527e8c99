// What the examples of the chapter need: a folder, and a console whose output is compared.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { format } from "node:util";

import { project } from "./projects.js";

let printed = "";

/** The console of the examples. */
export const console = {
  log(...values: unknown[]): void {
    printed += `${format(...values)}\n`;
  },
};

/** Works in a folder next to that of the examples' project. */
export function open(): void {
  process.chdir(project({ "desk/cuebook.toml": "" }));
  process.chdir("desk");
}

/** Writes a file of the chapter. */
export function file(path: string, text: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true });
  writeFileSync(join(process.cwd(), path), text);
}

/** Checks what was printed since the last call. */
export function expect(text: string): void {
  assert.equal(printed, text);
  printed = "";
}
