import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import * as cuebook from "cuebook";
import { CuebookError, PromptConflictError, PromptNotFoundError, PromptRenderError, PromptValidationError } from "cuebook";
import { greetings, open } from "./projects.js";

function failure(call: () => unknown): CuebookError {
  try {
    call();
  } catch (error) {
    assert.ok(error instanceof CuebookError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "nothing was thrown" });
}

test("not found carries the nearest id", () => {
  const error = failure(() => greetings().render("greting"));
  assert.ok(error instanceof PromptNotFoundError);
  assert.deepEqual([error.code, error.promptId, error.nearest, error.name], ["CB101", "greting", ["greeting"], "PromptNotFoundError"]);
});

test("an error has its place, and its report is that of the command line", () => {
  const error = failure(() => open({ "prompts/p/template.md": "Hello\n{{ name | uper }}\n" }).render("p", { name: "Ada" }));
  assert.deepEqual([error.file, error.line, error.excerpt], ["prompts/p/template.md", 2, "{{ name | uper }}"]);
  assert.ok(error.report.startsWith(`error[${error.code}]: ${error.message}`));
  assert.ok(error.report.includes("prompts/p/template.md:2:") && error.report.includes(error.hint!));
  assert.match(error.hint!, /upper/);
  assert.deepEqual([error.advice, error.commands], [error.hint, []]);
  // The call is in the stack, and an uncaught error shows the code and the hint.
  assert.match(error.stack!, /errors\.test/);
  assert.match(inspect(error), new RegExp(`code: '${error.code}'`));
});

test("an id that is no text is refused by name", async () => {
  for (const id of [undefined, null, 7, {}]) {
    assert.throws(() => greetings().render(id as never), { name: "UsageError", code: "CB407", message: /^the id of a prompt must be a text/ });
    await assert.rejects(greetings().renderAsync(id as never), { name: "UsageError", code: "CB407" });
    assert.throws(() => greetings().renderFile(id as never), { name: "UsageError", code: "CB407" });
  }
});

test("every missing variable is reported", async () => {
  const code = 'VARIABLES = {"required": [{"name": "a", "type": "string"}, {"name": "b", "type": "integer"}]}\n';
  const book = open({ "prompts/p/prompt.py": code, "prompts/p/template.md": "{{ a }}{{ b }}" });
  const error = failure(() => book.render("p"));
  assert.ok(error instanceof PromptValidationError);
  assert.deepEqual(
    error.diagnostics.map((one) => one.code),
    ["CB401", "CB401"],
  );
  assert.deepEqual((await book.validate("p")).map((one) => one.name).sort(), ["a", "b"]);
});

test("a conflict lists its candidates", async () => {
  const places = ["prompts/greet", "user_data/packs/polite/prompts/greet"];
  const book = open(Object.fromEntries(places.map((place) => [`${place}/template.md`, place])));
  const error = failure(() => book.render("greet"));
  assert.ok(error instanceof PromptConflictError);
  assert.deepEqual(
    error.candidates.map((one) => one.source),
    places,
  );
  await book.resolve("greet", places[1]!);
  assert.equal(book.render("greet").text, places[1]);
});

test("a failing template is a render error", async () => {
  const book = open({ "prompts/p/template.md": "{{ 1 // n }}" });
  const error = failure(() => book.render("p", { n: 0 }));
  assert.ok(error instanceof PromptRenderError && error.line === 1);
  await assert.rejects(book.renderAsync("p", { n: 0 }), { name: "PromptRenderError", line: 1 });
});

test("an error is an object for other processes", () => {
  const error = JSON.parse(JSON.stringify(failure(() => greetings().render("greting")))) as Record<string, unknown>;
  assert.equal(error["type"], "PromptNotFoundError");
  assert.deepEqual(error["nearest"], ["greeting"]);
  assert.match(String(error["report"]), /^error\[CB101\]/);
});

test("every error class is an error with its own name", () => {
  const classes = Object.entries(cuebook).filter(([, value]) => typeof value === "function" && value.prototype instanceof CuebookError);
  assert.ok(classes.length >= 22);
  for (const [name, kind] of classes) {
    const error = new (kind as typeof CuebookError)("said", { code: "CB101", hint: "do" });
    assert.deepEqual([error.name, error.message, error.report], [name, "said", "error[CB101]: said\nhelp: do"]);
  }
});
