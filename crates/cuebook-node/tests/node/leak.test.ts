import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { test } from "node:test";

import { CHAT, GREETING, project } from "./projects.js";

const require = createRequire(import.meta.url);
/** A million in a release build, and fewer in a debug build, which is slow. */
const CALLS = Number(process.env["CALLS_THAT_MUST_NOT_LEAK"] ?? 100_000);
/** Bytes that the allocator and V8 may keep. A leak of a hundred bytes in each call is larger over a million of them. */
const MOST_GROWTH = 20e6;

const PROGRAM = `
  const { Book } = require(process.env.CUEBOOK);
  const { host } = require(require("node:path").join(require("node:path").dirname(process.env.CUEBOOK), "native.js"));
  const book = Book.open(process.env.CUEBOOK_ROOT);
  book
    .filter("shout", (text) => text.toUpperCase())
    .filter("breaks", () => { throw new RangeError("broken"); });
  const calls = Number(process.env.CUEBOOK_CALLS);
  const rows = Array.from({ length: 10 }, (_, number) => ({ name: "n" + number }));
  let [done, failed] = [0, 0];

  function fails(id, variables) {
    try {
      book.render(id, variables);
    } catch (error) {
      failed += error.report.length > 0 ? 1 : 0;
    }
  }

  // A hundred calls. Some wait for other threads, so that the event loop turns.
  async function hundred() {
    const waiting = [];
    for (let call = 0; call < 54; call++) book.render("greeting", { name: "Ada" + done + call });
    // Eighteen calls: a render, its spans and a body each.
    for (let call = 0; call < 6; call++) {
      const rendered = book.render("reply", { question: "Why " + done + "?" });
      rendered.spans;
      rendered.wire("openai");
    }
    for (let call = 0; call < 10; call++) book.render("loud", { name: "Ada" });
    for (let call = 0; call < 4; call++) fails("greeting", { nmae: "Ada" });
    for (let call = 0; call < 2; call++) fails("broken", { name: "Ada" });
    for (let call = 0; call < 6; call++) waiting.push(book.renderAsync("greeting", { name: "Ada" }));
    for (let call = 0; call < 4; call++) waiting.push(book.renderAsync("none", { name: "Ada" }).catch(() => failed++));
    for (let call = 0; call < 2; call++) waiting.push(book.renderBatch("greeting", rows));
    await Promise.all(waiting);
    done += 100;
  }

  // Otherwise the allocator would keep the memory of all renders that wait for V8 to collect their objects, whose number differs.
  async function collect() {
    global.gc();
    await new Promise((resolve) => setImmediate(resolve));
    host.count();
  }

  async function memory(calls) {
    while (done < calls) {
      await hundred();
      if (done % 1000 === 0) await collect();
    }
    for (let round = 0; round < 4; round++) await collect();
    return process.memoryUsage().rss;
  }

  async function main() {
    const before = await memory(calls / 10);
    const after = await memory(calls);
    console.log(JSON.stringify({ done, failed, growth: after - before, live: host.count() }));
  }
  main();
`;

test("many calls of every kind leak nothing", { timeout: 1_200_000 }, async () => {
  const root = project({
    "prompts/greeting/template.md": GREETING,
    "prompts/loud/template.md": "{{ name | shout }}\n",
    "prompts/broken/template.md": "{{ name | breaks }}\n",
    "prompts/reply.prompty": CHAT,
  });
  const env = { ...process.env, CUEBOOK: require.resolve("cuebook"), CUEBOOK_ROOT: root, CUEBOOK_CALLS: String(CALLS) };
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", "-e", PROGRAM], { env });
  const { done, failed, growth, live } = JSON.parse(stdout);
  assert.deepEqual([done, failed], [CALLS, CALLS / 10]);
  assert.ok(growth < MOST_GROWTH, `${growth} bytes more after ${CALLS} calls`);
  // The last renders may still be on the stack.
  assert.ok(live <= 20, `${live} renders are kept`);
});
