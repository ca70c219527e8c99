import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Book, CuebookError, type RunEvent } from "cuebook";
import { CuebookProvider } from "cuebook/promptfoo";
import { home, project } from "./projects.js";

const PROMPT = `---
name: answer
model: small
inputs:
  - name: question
    kind: string
---
system:
Be brief.

user:
{{ question }}
`;

let server: Server;
let book: Book;
const asked: any[] = [];
/** Resolves when the model is asked next. */
let nextAsked: () => void = () => {};
let answers = true;

before(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(parts).toString());
      asked.push(body);
      nextAsked();
      if (!answers) {
        return;
      }
      const said = body.response_format ? '{"word": "yes", "score": 0.5}' : `You asked: ${body.messages.at(-1).content}`;
      const choice = { index: 0, message: { role: "assistant", content: said }, finish_reason: "stop" };
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ id: "a1", object: "chat.completion", model: "small", choices: [choice], usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  mkdirSync(join(home, ".ai/config/providers"), { recursive: true });
  writeFileSync(
    join(home, ".ai/config/providers/local.yaml"),
    `name: local
api: openai-chat
base_url: http://127.0.0.1:${port}/v1
stream: false
tiers: {fast: small, general: small, high: small}
models:
  small: {context_window: 32000, max_output: 4096, price: {input: 1, output: 10}}
`,
  );
  book = Book.open(project({ "prompts/answer.prompty": PROMPT, "prompts/judge.prompty": judge() }));
});

after(() => {
  server.closeAllConnections();
  server.close();
});

function judge(): string {
  const outputs = "outputs:\n  - {name: word, kind: string}\n  - {name: score, kind: float}\n---\nsystem:";
  return PROMPT.replace("name: answer", "name: judge").replace("---\nsystem:", outputs);
}

const local = { provider: "local" };

test("a run answers and is logged", async () => {
  const done = (await book.run("answer", { question: "Why?" }, local)).check();
  assert.deepEqual([done.status, done.result, done.cost["turns"]], ["completed", "You asked: Why?", 1]);
  assert.equal((await book.threads())[0]!["thread_id"], done.threadId);
  assert.ok((await book.events(done.threadId)).length > 2);
  assert.deepEqual(asked[0].messages[0], { role: "system", content: "Be brief." });
});

test("outputs are an object", async () => {
  const done = (await book.run("judge", { question: "Why?" }, local)).check();
  assert.deepEqual(done.outputs, { word: "yes", score: 0.5 });
});

test("events are iterated", async () => {
  const run = book.start("answer", { question: "Why?" }, local);
  const events: RunEvent[] = [];
  for await (const event of run) {
    events.push(event);
  }
  assert.equal(run.running, false);
  assert.deepEqual([...new Set(events.map((event) => event.threadId))], [run.threadId]);
  const logged = events.filter((event) => event.kind === "event");
  assert.deepEqual(logged.map((event) => event.data.seq), logged.map((_, at) => at + 1));
  assert.equal((await run.result()).status, "completed");
});

test("a run is stopped by a signal, by cancel, and by leaving the loop", async () => {
  answers = false;
  const stops: ((run: AbortController, cancel: () => void) => void)[] = [(stop) => stop.abort(), (_, cancel) => cancel()];
  for (const stop of stops) {
    const controller = new AbortController();
    const wasAsked = new Promise<void>((resolve) => (nextAsked = resolve));
    const run = book.start("answer", { question: "Why?" }, { ...local, signal: controller.signal });
    await wasAsked;
    stop(controller, () => run.cancel());
    const done = await run.result();
    assert.deepEqual([done.status, done.error?.code], ["cancelled", "CB727"]);
    assert.throws(() => done.check(), CuebookError);
  }
  const run = book.start("answer", { question: "Why?" }, local);
  for await (const event of run) {
    assert.ok(event.threadId);
    break;
  }
  assert.equal((await run.result()).status, "cancelled");
  answers = true;
});

test("a limited run is resumed", async () => {
  const done = await book.run("answer", { question: "Why?" }, { ...local, limits: { tokens: 1 } });
  assert.deepEqual([done.status, done.error?.code], ["suspended", "CB716"]);
  const again = await book.resume(done.threadId, { ...local, limits: { tokens: 100_000 } }).result();
  assert.equal(again.status, "completed");
});

test("what keeps a run from starting is thrown", async () => {
  await assert.rejects(book.run("answer", { question: "Why?" }, { provider: "nowhere" }), (error: CuebookError) => error.code !== undefined);
  await assert.rejects(book.run("answer", { questoin: "Why?" }, local), { message: /no variable `questoin`/ });
  const run = book.start("missing", {}, local);
  await assert.rejects(async () => {
    for await (const _ of run);
  }, { name: "PromptNotFoundError" });
  await assert.rejects(book.events("none"), { name: "ExecuteError" });
});

test("promptfoo's provider runs a prompt", async () => {
  const provider = new CuebookProvider({ id: "ours", config: { project: book.root, prompt: "answer", provider: "local" } });
  const answer = await provider.callApi("ignored", { vars: { question: "Why?" } });
  assert.deepEqual([answer.output, answer.error], ["You asked: Why?", undefined]);
  assert.deepEqual(answer.tokenUsage, { total: 15, prompt: 10, completion: 5 });
  assert.ok(answer.cost! > 0 && answer.metadata!["status"] === "completed");
});
