import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";

import { MockModel as Answers } from "cuebook/testing";
import { greetings, open } from "./projects.js";

test("hooks and providers take part", async () => {
  const book = open({ "prompts/review/template.md": "Review {{ git.branch }} for {{ who }}." });
  book
    .provider("git", (context) => {
      assert.deepEqual([context.workspacePath, context.namespace], [book.root, "git"]);
      return { branch: "main" };
    })
    .preRender("review", (variables, context) => ({ ...variables, who: context.promptId }))
    .postRender("review", (text) => `${text} Now!`);
  const rendered = book.render("review");
  assert.equal(rendered.text, "Review main for review. Now!");
  assert.equal(rendered.find("Now!")[0]!.pieces[0]!.origin.kind, "hook");
  assert.equal((await book.renderAsync("review")).text, rendered.text);
});

test("asynchronous functions are waited for", async () => {
  const book = open({ "prompts/p/template.md": "{{ word | slowly }} {{ shop.name }}" });
  book
    .filter("slowly", async (word: string) => {
      await turn();
      return word.toUpperCase();
    })
    .provider("shop", async () => ({ name: "Leaf" }));
  assert.equal((await book.renderAsync("p", { word: "tea" })).text, "TEA Leaf");
  assert.throws(() => book.render("p", { word: "tea" }), (error: Error) => {
    assert.match(error.message, /returned a promise/);
    assert.match(error.message, /renderAsync/);
    return true;
  });
});

test("a function may render in turn", async () => {
  const book = open({ "prompts/outer/template.md": "<{{ word | inner }}>", "prompts/small/template.md": "[{{ word }}]" });
  book.filter("inner", (word: string) => book.render("small", { word }).text);
  assert.equal(book.render("outer", { word: "a" }).text, "<[a]>");
  book.filter("inner", async (word: string) => (await book.renderAsync("small", { word })).text);
  // More than there are threads: those that wait for JavaScript make room for others.
  const texts = await Promise.all(Array.from({ length: 100 }, () => book.renderAsync("outer", { word: "b" })));
  assert.ok(texts.every((rendered) => rendered.text === "<[b]>"));
});

test("an exception in a hook is the cause of the error", async () => {
  const book = greetings();
  const lost = new RangeError("lost");
  book.preRender("greeting", () => {
    throw lost;
  });
  for (const render of [async () => book.render("greeting", { name: "Ada" }), () => book.renderAsync("greeting", { name: "Ada" })]) {
    await assert.rejects(render, (error: Error & { code: string }) => {
      assert.deepEqual([error.name, error.code], ["PromptHookError", "CB410"]);
      assert.ok(error.message.includes("RangeError: lost"));
      return error.cause === lost;
    });
  }
  assert.throws(() => book.render("missing"), (error: Error) => error.cause === undefined);
});

test("an exception in a filter has the place of the filter", () => {
  const book = open({ "prompts/p/template.md": "a\n{{ name | breaks }}" });
  book.filter("breaks", () => {
    throw new TypeError("no more");
  });
  assert.throws(() => book.render("p", { name: "Ada" }), (error: Error & { line: number }) => {
    assert.equal(error.line, 2);
    return error.cause instanceof TypeError;
  });
});

test("a wrong return type is an error", () => {
  const book = greetings();
  book.preRender("greeting", (() => undefined) as never);
  assert.throws(() => book.render("greeting", { name: "Ada" }), { name: "PromptHookError", code: "CB411", message: /must return an object/ });
  book.preRender("greeting", (variables) => ({ ...variables, tone: Symbol("s") }));
  assert.throws(() => book.render("greeting", { name: "Ada" }), /is a symbol/);
});

test("filters, tests, functions and engines extend templates", () => {
  const book = open({
    "prompts/p/template.md": "{{ greet(name) | shout }}{% if name is short %}, {{ 'x' | pad(3, with='-') }}{% endif %}",
    "prompts/e.prompty": "---\nname: e\nmodel: m\ntemplate:\n  format: {kind: twice}\n---\nsystem:\nab\n",
  });
  book
    .filter("shout", (text: string) => text.toUpperCase())
    .templateTest("short", (text: string) => text.length < 20)
    .function("greet", (name: string) => `Hello ${name}`)
    .filter("pad", (text: string, size: number, options: { with: string }) => options.with.repeat(size) + text)
    .engine("twice", (template, variables) => template.replace("ab", "abab") + Object.keys(variables).length * 0);
  assert.equal(book.render("p", { name: "Ada" }).text, "HELLO ADA, ---x");
  assert.match(book.render("e").text, /abab/);
});

test("a function replaces one of the same name", () => {
  const book = open({ "prompts/p/template.md": "{{ 'a' | f }}" });
  book.filter("f", () => "one").filter("f", () => "two");
  assert.equal(book.render("p").text, "two");
});

test("a prompt with hooks in Python is rendered asynchronously", async () => {
  const code = "def pre_render(variables, context):\n    return {**variables, 'name': 'Ms ' + variables['name']}\n";
  const book = open({ "prompts/p/prompt.py": code, "prompts/p/template.md": "Hello {{ name }}" });
  assert.throws(() => book.render("p", { name: "Ada" }), { name: "UsageError", message: /has hooks in Python/, hint: /renderAsync/ });
  assert.equal(book.render("p", { name: "Ada" }, { withoutHooks: true }).text, "Hello Ada");
  assert.equal((await book.renderAsync("p", { name: "Ada" })).text, "Hello Ms Ada");
});

test("a model calls functions", async () => {
  const book = greetings();
  book.tool("weather", async ({ city }: { city: string }) => ({ city, sky: "grey" }));
  const model = new Answers().call("weather", { city: "Oslo" }).say("It is grey.");
  const done = await book.render("reply", { question: "And in Oslo?" }).converse(model.ask);
  assert.deepEqual([done.result, done.turns], ["It is grey.", 2]);
  const told = model.asked[1].messages.at(-1);
  assert.deepEqual([told.role, JSON.parse(told.content)], ["tool", { city: "Oslo", sky: "grey" }]);
  assert.equal(done.messages.at(-1)!.role, "assistant");
});

test("a model learns of a tool that failed", async () => {
  const model = new Answers().call("weather", { city: "Oslo" }).say("Unknown.");
  const tools = {
    weather: () => {
      throw new Error("no satellite");
    },
  };
  assert.equal((await greetings().render("reply", { question: "?" }).converse(model.ask, { tools })).result, "Unknown.");
  assert.match(JSON.stringify(model.asked[1].messages.at(-1)), /no satellite/);
});

test("what asks the model may fail, and a conversation may be stopped", async () => {
  const rendered = greetings().render("reply", { question: "?" });
  const failed = new Error("no network");
  await assert.rejects(
    rendered.converse(() => Promise.reject(failed)),
    (error) => error === failed,
  );
  const stop = new AbortController();
  const loop = (): object => {
    stop.abort();
    return new Answers().call("weather", { city: "Oslo" }).ask({});
  };
  await assert.rejects(rendered.converse(loop, { tools: { weather: () => "grey" }, signal: stop.signal }), { name: "AbortError" });
});

test("a reply is read", () => {
  const rendered = greetings().render("reply", { question: "?" });
  assert.deepEqual([rendered.readReply(new Answers().say("Yes.").ask({})).kind, rendered.readReply(new Answers().say("Yes.").ask({})).value], ["text", "Yes."]);
  assert.equal(rendered.readReply(new Answers().call("weather", {}).ask({}), "openai").kind, "tool_calls");
  assert.throws(() => rendered.readReply({ nothing: true }), { name: "ReplyError" });
});

test("a tool is called by name", async () => {
  const book = greetings().tool("add", ({ a, b }: { a: number; b: number }) => a + b);
  assert.equal(await book.callTool("add", { a: 1, b: 2 }), "3");
  await assert.rejects(book.callTool("ad"), { name: "InvokerError", hint: "did you mean `add`?" });
});
