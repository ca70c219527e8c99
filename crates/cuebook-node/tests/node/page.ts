// What the examples of the chapter need: a folder, a model, and a console whose output is compared.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { format } from "node:util";

import type { Book } from "cuebook";
import { serveModel } from "./model.js";
import { project } from "./projects.js";

const modules = dirname(dirname(createRequire(import.meta.url).resolve("cuebook/package.json")));

let printed = "";

/** The console of the examples. */
export const console = {
  log(...values: unknown[]): void {
    printed += `${format(...values)}\n`;
  },
};

/** Works in a folder next to that of the examples' project, with a model that always says the same in two pieces. */
export async function open(): Promise<void> {
  process.chdir(project({ "desk/cuebook.toml": "" }));
  process.chdir("desk");
  symlinkSync(modules, "node_modules");
  await serveModel("openai", "gpt-4o", (_request, response) => {
    const send = (choice: object): void => {
      const chunk = { id: "a1", object: "chat.completion.chunk", model: "gpt-4o", choices: [{ index: 0, ...choice }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    response.setHeader("content-type", "text/event-stream");
    send({ delta: { role: "assistant", content: "It is " } });
    setTimeout(() => {
      send({ delta: { content: "on its way." } });
      send({ delta: {}, finish_reason: "stop" });
      response.end("data: [DONE]\n\n");
    }, 100);
  });
}

function program(words: string[]): { status: number | null; said: string } {
  const done = spawnSync(process.execPath, words, { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
  return { status: done.status, said: done.stdout + done.stderr };
}

/** Compiles a piece, whose errors are those that its comments name. */
export async function compiled(book: Book<any>, piece: string): Promise<void> {
  writeFileSync("prompts.ts", await book.stubs());
  writeFileSync("piece.ts", piece);
  const options = { module: "node16", target: "es2022", strict: true, noEmit: true, types: ["node"], skipLibCheck: true };
  writeFileSync("tsconfig.json", JSON.stringify({ compilerOptions: options, files: ["piece.ts"] }));
  writeFileSync("package.json", '{"type": "module"}');
  const { said } = program([join(modules, "typescript/bin/tsc"), "-p", ".", "--pretty", "false"]);
  const found = said.split("\n").filter((line) => /^\S.*error TS/.test(line));
  const wanted = piece.split("\n").flatMap((line, at) => {
    const [, code, message] = /\/\/ error (TS\d+): (.*)$/.exec(line) ?? [];
    return code ? [{ place: `piece.ts(${at + 1},`, code, message: message! }] : [];
  });
  assert.equal(found.length, wanted.length, said);
  for (const [at, { place, code, message }] of wanted.entries()) {
    const line = found[at]!;
    assert.ok(line.startsWith(place) && line.includes(`error ${code}:`) && line.includes(message), `${line} is not ${place} ${code}: ${message}`);
  }
}

/** Runs a file of tests with Vitest. A case is next to the greeting. */
export async function vitest(piece: string): Promise<void> {
  file("../leaf/prompts/greeting/tests.md", "## polite\n\n```yaml inputs\nname: Ada\n```\n\n```text expected\nHello Ada!\n```\n");
  writeFileSync("prompts.test.ts", piece);
  const { status, said } = program([join(modules, "vitest/vitest.mjs"), "run", "--root", ".", "--reporter", "verbose"]);
  assert.equal(status, 0, said);
  assert.match(said, /greeting.*polite/);
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
