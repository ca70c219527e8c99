import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { CuebookError, Engine, LimitError, load, type Rendered } from "cuebook-wasm";

// The types of Node do not have it.
const { Module, CompileError } = (globalThis as unknown as { WebAssembly: { Module: new (bytes: Uint8Array) => object; CompileError: ErrorConstructor } }).WebAssembly;
const file = new URL(import.meta.resolve("cuebook-wasm/cuebook.wasm"));
const compiled = new Module(readFileSync(file));
const engine = new Engine(compiled);
const greeting = { "prompts/greeting/template.md": "Hello {{ name }}!" };

test("the engine is loaded from its file, bytes, a response, or a compiled module", async () => {
  const bytes = readFileSync(file);
  for (const source of [undefined, bytes, Promise.resolve(bytes), compiled, new Response(bytes)]) {
    assert.equal((await load(source)).open(greeting).render("greeting", { name: "Ada" }).text, "Hello Ada!");
  }
  await assert.rejects(load(new Uint8Array(4)), CompileError);
  assert.match(engine.version, /^\d+\.\d+\.\d+$/);
});

test("work without an end stops by its fuel", () => {
  const book = engine.open({ "prompts/endless/template.md": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", ...greeting });
  assert.throws(() => book.render("endless"), { name: "LimitError", code: "CB504" });
  assert.equal(book.render("greeting", { name: "Ada" }).text, "Hello Ada!");
});

test("deep nesting of every kind is an error, and the next call works", () => {
  const deep = 20_000;
  const shapes: [string, string][] = [
    ["brackets", `{{ ${"(".repeat(deep)}1${")".repeat(deep)} }}`],
    ["lists", `{{ ${"[".repeat(deep)}${"]".repeat(deep)} }}`],
    ["signs", `{{ ${"not ".repeat(deep)}true }}`],
    ["blocks", "{% if true %}".repeat(deep) + "{% endif %}".repeat(deep)],
    ["sums", `{{ 1${" + 1".repeat(deep)} }}`],
    ["filters", `{{ 'x'${"|upper".repeat(deep)} }}`],
    ["macros", "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}"],
    ["includes", "{% include 'includes/template.md' %}"],
    ["loops", "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}"],
    ["calls", "{% macro f(n) %}{% call f(n) %}{{ caller() }}{% endcall %}{% endmacro %}{{ f(0) }}"],
  ];
  const book = engine.open({ ...Object.fromEntries(shapes.map(([name, text]) => [`prompts/${name}/template.md`, text])), ...greeting });
  for (const [name] of shapes) {
    try {
      book.render(name);
    } catch (error) {
      assert.ok(error instanceof CuebookError && error.code !== undefined, `${name}: ${String(error)}`);
    }
    assert.equal(book.render("greeting", { name }).text, `Hello ${name}!`);
  }
  assert.throws(() => book.render("brackets"), { name: "LimitError" });
  assert.throws(() => book.render("macros"), { name: "LimitError" });
});

test("a deep stack of the caller is an error, and the next call works", () => {
  const book = engine.open(greeting);
  let failed: unknown;
  const dig = (): void => {
    try {
      book.render("greeting", { name: "Ada" });
      dig();
    } catch (error) {
      failed ??= error;
    }
  };
  dig();
  assert.ok(failed instanceof LimitError || failed instanceof RangeError, String(failed));
  assert.equal(book.render("greeting", { name: "Ada" }).text, "Hello Ada!");
});

test("a render answers after the module forgot it, with the same names of rich inputs", () => {
  const prompt = "---\nname: p\ninputs:\n  - {name: talk, kind: thread}\n---\nsystem:\nBe kind.\n\n{{ talk }}\n";
  const book = engine.open({ "prompts/p.prompty": prompt, ...greeting });
  const talk = [{ role: "user", content: "Hello" }];
  const renders: Rendered[] = Array.from({ length: 40 }, () => book.render("p", { talk }));
  assert.equal(new Set(renders.map((rendered) => rendered.text)).size, 40);
  for (const rendered of renders) {
    assert.equal(rendered.spans.map((span) => span.text).join(""), rendered.text);
    assert.deepEqual(
      rendered.messages().map((message) => message.role),
      ["system", "user"],
    );
  }
});

test("many renders do not grow the memory", () => {
  const book = engine.open({ "prompts/greeting/template.md": `Hello {{ name }}! ${"Some more text. ".repeat(400)}` });
  const render = (count: number): void => {
    for (let number = 0; number < count; number++) {
      book.render("greeting", { name: `n${number}` });
    }
  };
  render(1000);
  const before = engine.memoryBytes;
  render(10_000);
  assert.equal(engine.memoryBytes, before);
});

test("a closed book frees its files, and other books stay", () => {
  const text = "x".repeat(100_000);
  const first = engine.open(greeting);
  const cycle = (): void => {
    const book = engine.open({ "prompts/large/template.md": text, ...greeting });
    assert.equal(book.render("greeting", { name: "Ada" }).text, "Hello Ada!");
    book.close();
    assert.throws(() => book.render("greeting", { name: "Ada" }), { name: "UsageError" });
  };
  for (let count = 0; count < 5; count++) cycle();
  const before = engine.memoryBytes;
  for (let count = 0; count < 30; count++) cycle();
  assert.equal(engine.memoryBytes, before);
  assert.equal(first.render("greeting", { name: "Bo" }).text, "Hello Bo!");
});

test("a wrong call says what is wrong", () => {
  const book = engine.open(greeting);
  assert.throws(() => book.render("greting"), { name: "PromptNotFoundError", code: "CB101", hint: "did you mean `greeting`?" });
  assert.throws(() => book.render("greeting", { name: 1n << 70n, more: () => 1 } as never), { code: "CB407" });
  assert.throws(() => book.render("greeting", { name: "Ada" }, { modle: "x" } as never), { name: "UsageError", hint: "did you mean `model`?" });
  for (const id of [undefined, null, 7]) {
    assert.throws(() => book.render(id as never), { name: "UsageError", code: "CB407" });
    assert.throws(() => book.showFile(id as never), { name: "UsageError", code: "CB407" });
  }
  assert.throws(() => book.renderFile("prompts/greting/template.md"), { name: "IoError", code: "CB110", hint: "did you mean `prompts/greeting/template.md`?" });
  assert.throws(() => engine.open(greeting, { clok: "" } as never), { name: "UsageError", hint: /clock/ });
  const hooked = engine.open({ "prompts/p/prompt.py": "def pre_render(variables, context):\n    return {}\n", "prompts/p/template.md": "Hi" });
  assert.throws(() => hooked.render("p"), { name: "PromptHookError", hint: /withoutHooks/ });
  assert.equal(hooked.render("p", {}, { withoutHooks: true }).text, "Hi");
  assert.throws(() => engine.open({ "a.md": new Uint8Array(1) } as never), { name: "UsageError", hint: /TextDecoder/ });
  assert.throws(() => engine.open({ "../a.md": "" }), { name: "IoError", code: "CB110" });
  assert.throws(() => engine.open(undefined as never), { name: "UsageError" });
  assert.throws(() => engine.open({}, { clock: "yesterday" }), { name: "ConfigError" });
  assert.throws(() => new Engine({}), TypeError);
  assert.equal(engine.open({}).list().some((one) => one.id === "general_system"), true);
  assert.equal(engine.open(new Map([["/prompts/a/template.md", "{{ team }}"]]), { globals: { team: "Tides" } }).render("a").text, "Tides");
  assert.equal(engine.open({ "prompts/a.prompty": "---\nname: a\n---\nuser:\nHi\n" }).renderFile("prompts/a.prompty").promptId, "a");
  assert.equal(engine.open(greeting).show("greeting")["id"], "greeting");
  assert.equal(engine.open(greeting).showFile("prompts/greeting")["id"], "greeting");
});
