import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { greetings } from "./projects.js";

const run = promisify(execFile);
const require = createRequire(import.meta.url);
const cuebook = JSON.stringify(require.resolve("cuebook"));
const root = JSON.stringify(greetings().root);

/** Runs a program and returns what it printed. */
async function program(code: string, ...flags: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [...flags, "-e", `const { Book } = require(${cuebook}); const book = Book.open(${root});\n${code}`]);
  return stdout;
}

test("worker threads render", async () => {
  const code = `
    const { parentPort } = require("node:worker_threads");
    const { Book } = require(${cuebook});
    const book = Book.open(${root});
    book.filter("shout", async (text) => text.toUpperCase());
    const names = Array.from({ length: 200 }, (_, number) => "n" + number);
    Promise.all(names.map((name) => book.renderAsync("greeting", { name })))
      .then((all) => parentPort.postMessage(all.map((rendered) => rendered.text + book.render("greeting", { name: "Bo" }).spans.length)));
  `;
  const done = await Promise.all(
    [1, 2, 3, 4].map(
      () =>
        new Promise<string[]>((resolve, reject) => {
          const worker = new Worker(code, { eval: true });
          worker.once("message", resolve).once("error", reject);
        }),
    ),
  );
  assert.ok(done.every((texts) => texts.length === 200 && texts[7] === "Hello n7!3"));
});

test("a worker thread that is terminated with work in flight takes nothing with it", async () => {
  const code = `
    const { parentPort } = require("node:worker_threads");
    const { Book } = require(${cuebook});
    const book = Book.open(${root});
    book.preRender("greeting", () => new Promise(() => {}));
    for (let number = 0; number < 20; number++) book.renderAsync("greeting", { name: "Ada" });
    for (let number = 0; number < 200; number++) book.check();
    parentPort.postMessage("begun");
  `;
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(code, { eval: true });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    await worker.terminate();
  }
  assert.equal((await greetings().renderAsync("greeting", { name: "Ada" })).text, "Hello Ada!");
});

test("a program waits for what is in flight, and then ends", async () => {
  assert.equal(await program(`book.renderAsync("greeting", { name: "Ada" }).then((rendered) => console.log(rendered.text));`), "Hello Ada!\n");
  assert.equal(await program(`book.render("greeting", { name: "Ada" });`), "");
});

test("a program that exits with work in flight does not crash", async () => {
  const busy = `book.preRender("greeting", () => new Promise(() => {}));
    for (let number = 0; number < 50; number++) { book.renderAsync("greeting", { name: "Ada" }); book.check(); }`;
  assert.equal(await program(`${busy} setTimeout(() => { console.log("end"); process.exit(0); }, 5);`), "end\n");
  await assert.rejects(program(`${busy} throw new Error("mine");`), (error: Error & { code: number; stderr: string }) => {
    assert.match(error.stderr, /Error: mine/);
    return error.code === 1;
  });
});

test("renders that nothing uses are dropped, in a loop and between", async () => {
  const printed = await program(
    `const { host } = require(require("node:path").join(require("node:path").dirname(${cuebook}), "native.js"));
    const kept = [];
    let most = 0;
    // A loop that never lets the event loop turn: a finalizer would not run.
    for (let number = 0; number < 20000; number++) {
      const rendered = book.render("greeting", { name: "Ada".repeat(100) });
      if (number % 2000 === 0) kept.push(rendered);
    }
    global.gc();
    console.log(host.count(), kept.every((rendered) => rendered.spans.length === 3), process.memoryUsage().rss < 400e6);`,
    "--expose-gc",
  );
  const [count, intact, small] = printed.trim().split(" ");
  // The last render may still be on the stack.
  assert.ok(Number(count) <= 12, printed);
  assert.deepEqual([intact, small], ["true", "true"]);
});

test("bad calls are errors and never crashes", async () => {
  const book = greetings() as any;
  for (const values of [[], [undefined], [null], [7], [{}], ["greeting", 7], ["greeting", "x"], ["greeting", {}, 7], ["greeting", {}, { agent: 7 }], ["a".repeat(100_000)], ["\u0000"], ["../../etc/passwd"]]) {
    try {
      book.render(...values);
    } catch (error) {
      assert.ok(error instanceof Error);
    }
    await book.renderAsync(...values).catch((error: unknown) => assert.ok(error instanceof Error));
    await book.show(...values).catch((error: unknown) => assert.ok(error instanceof Error));
  }
  await assert.rejects(book.execute("tool", "none", { loop: (() => {}) as never }), { code: "CB407" });
  const rendered = book.render("greeting", { name: "Ada" });
  assert.throws(() => rendered.wire("nothing"), { name: "InvokerError" });
  assert.throws(() => rendered.find("nowhere"), { name: "PromptValidationError" });
});
