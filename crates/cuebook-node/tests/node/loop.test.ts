// What waits must not keep the event loop from turning.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { GREETING, open } from "./projects.js";

/** Counts the ticks of a timer during a call. Each call takes many times as long as these ticks. */
async function turns(call: () => Promise<unknown>): Promise<void> {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  try {
    await call();
  } finally {
    clearInterval(timer);
  }
  assert.ok(ticks >= 3, `${ticks} ticks`);
}

const TOOL = `version: 1.0.0
category: team
tool_type: shell
executor_id: rye/core/primitives/subprocess
description: Waits
config: {command: sleep, args: ["0.3"]}
`;

test("the event loop turns during a check", async () => {
  const files: Record<string, string> = {};
  for (let number = 0; number < 800; number++) files[`prompts/p${number}/template.md`] = `${GREETING}{{ other }} {{ more | upper }}\n`.repeat(5);
  const book = open(files);
  await turns(async () => assert.ok((await book.check()).prompts >= 800));
});

test("the event loop turns during an attack", async () => {
  const lines = Array.from({ length: 6 }, (_, number) => `{{ v${number} }}\n`).join("");
  const book = open({ "prompts/long/template.md": lines });
  await turns(async () => assert.deepEqual((await book.attack("long")).breaches, []));
});

test("the event loop turns while a tool runs", async () => {
  const book = open({ ".ai/tools/team/wait.yaml": TOOL });
  await book.generateKey({ owner: "ann", replace: true });
  await book.sign("tool", "team/wait");
  await turns(async () => assert.equal((await book.execute("tool", "team/wait"))["status"], "success"));
});

test("the event loop turns while hooks wait", async () => {
  const code = "import time\n\n\ndef pre_render(variables, context):\n    time.sleep(0.3)\n    return variables\n";
  const book = open({ "prompts/slow/prompt.py": code, "prompts/slow/template.md": GREETING, "prompts/greeting/template.md": GREETING });
  await turns(async () => assert.equal((await book.renderAsync("slow", { name: "Ada" })).text, "Hello Ada!"));
  book.preRender("greeting", async (variables) => {
    await sleep(300);
    return variables;
  });
  await turns(async () => assert.equal((await book.renderAsync("greeting", { name: "Ada" })).text, "Hello Ada!"));
});

test("the event loop turns during a batch", async () => {
  const rows = Array.from({ length: 60_000 }, (_, number) => ({ name: `n${number}` }));
  await turns(async () => assert.equal((await open({ "prompts/greeting/template.md": GREETING }).renderBatch("greeting", rows)).length, 60_000));
});
