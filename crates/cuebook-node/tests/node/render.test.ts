import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import * as cuebook from "cuebook";
import { Book, Rendered } from "cuebook";
import { CHAT, GREETING, greetings, open, project } from "./projects.js";

test("the spans cover the text and name their origins", () => {
  const rendered = greetings().render("greeting", { name: "Ada", tone: "kind" });
  assert.equal(rendered.text, "Hello Ada, kind!");
  assert.equal(String(rendered), rendered.text);
  assert.equal(rendered.spans.map((span) => span.text).join(""), rendered.text);
  assert.deepEqual(
    rendered.spans.map((span) => [span.kind, span.label]),
    [
      ["literal", "prompts/greeting/template.md:1"],
      ["value", "name (caller)"],
      ["literal", "prompts/greeting/template.md:1"],
      ["value", "tone (caller)"],
      ["literal", "prompts/greeting/template.md:1"],
    ],
  );
  assert.equal(rendered.promptId, "greeting");
  assert.deepEqual(JSON.parse(JSON.stringify(rendered)).spans[1].origin.variables[0].path, "name");
});

test("offsets are those of JavaScript's strings", () => {
  const rendered = greetings().render("greeting", { name: "A😀é", tone: "日本" });
  for (const span of rendered.spans) {
    assert.equal(rendered.text.slice(span.start, span.end), span.text);
  }
  const [found] = rendered.find("日本");
  assert.equal(rendered.text.slice(found!.start, found!.end), "日本");
  assert.equal(rendered.explain(rendered.text.indexOf("日")).label, "tone (caller)");
  assert.equal(rendered.explain(rendered.text.indexOf("😀") + 1).label, "name (caller)");
  assert.equal(rendered.explain(-1).label, "prompts/greeting/template.md:1");
  assert.throws(() => rendered.explain(rendered.text.length), RangeError);
  assert.throws(() => rendered.explain(0.5), RangeError);
});

test("messages, segments, tools and bodies are plain values", () => {
  const rendered = greetings().render("reply", { question: "Why?" });
  assert.deepEqual(
    rendered.messages().map((message) => message.role),
    ["system", "user"],
  );
  assert.deepEqual(rendered.segments().at(-1), { kind: "literal", text: "\n", source: null, strict: false });
  assert.equal(rendered.tools[0]!.name, "weather");
  assert.equal(rendered.model, "gpt-4o");
  const body = rendered.wire("openai");
  assert.equal(body.model, "gpt-4o");
  assert.deepEqual(body.messages[1], { role: "user", content: "Why?" });
  assert.ok(Array.isArray(body.notes) && !Object.keys(body).includes("notes"));
  const genai = greetings().render("reply", { question: "Why?" }, { model: "gemini-2.5-pro" }).wire("google-genai");
  assert.equal(genai.model, "gemini-2.5-pro");
  assert.ok(genai.config["systemInstruction"] && genai.contents.length === 1);
});

test("a context names another model", () => {
  const rendered = greetings().render("reply", { question: "Why?" }, { model: "claude-sonnet-4" });
  assert.equal(rendered.wire("anthropic").model, "claude-sonnet-4");
  assert.throws(() => greetings().render("reply", { question: "?" }, { modle: "x" } as never), {
    name: "UsageError",
    hint: "did you mean `model`?",
  });
});

test("tokens are counted for a model", async () => {
  const rendered = greetings().render("reply", { question: "Why?" });
  const tokens = await rendered.tokens();
  assert.ok(tokens.total > 5 && tokens.model === "gpt-4o");
  assert.ok((await rendered.tokens("claude-sonnet-4")).estimates.length > 0);
});

test("an explanation has the place and the layers", () => {
  const explanation = greetings().render("greeting", { name: "Ada" }).explanation();
  assert.equal(explanation["prompt"]["source"] ?? explanation["source"], "prompts/greeting");
});

test("a prompt is rendered by its path", async () => {
  const book = greetings();
  assert.equal(book.renderFile("prompts/greeting", { name: "Ada" }).text, "Hello Ada!");
  assert.equal((await book.renderFileAsync("prompts/reply.prompty", { question: "?" })).promptId, "reply");
  assert.throws(() => book.render("prompts/greeting", { name: "Ada" }), { code: "CB104" });
});

test("a changed file is noticed", () => {
  const root = project({ "prompts/p/template.md": "one" });
  const book = Book.open(root);
  assert.equal(book.render("p").text, "one");
  writeFileSync(join(root, "prompts/p/template.md"), "second");
  assert.equal(book.render("p").text, "second");
});

test("unknown variables are refused unless they are allowed", () => {
  const book = greetings();
  assert.throws(() => book.render("greeting", { name: "Ada", nmae: "x" }), { code: "CB404" });
  assert.equal(book.render("greeting", { name: "Ada", nmae: "x" }, { allowUnknown: true }).text, "Hello Ada!");
});

test("options of a book take part in renders", () => {
  const root = project({ "prompts/p/template.md": "{{ team }} {{ system.now.iso if false else '' }}" });
  assert.equal(Book.open(root, { globals: { team: "Tides" } }).render("p").text.trim(), "Tides");
  assert.throws(() => Book.open(root, { clock: "yesterday" }), { name: "ConfigError" });
  assert.throws(() => Book.open(join(root, "missing")), { name: "IoError", code: "CB110" });
});

test("CommonJS and ESM load the same classes", () => {
  const required = createRequire(import.meta.url)("cuebook") as typeof cuebook;
  assert.equal(required.Book, Book);
  const extra = ["default", "module.exports", "__esModule"];
  assert.deepEqual(Object.keys(required).sort(), Object.keys(cuebook).filter((name) => !extra.includes(name)).sort());
  assert.ok(greetings().render("greeting", { name: "Ada" }) instanceof Rendered);
  assert.match(cuebook.version, /^\d+\.\d+\.\d+$/);
  assert.ok(cuebook.wires().includes("openai-chat"));
});

interface Prompts {
  greeting: { input: { name: string; tone?: string }; output: string };
  reply: { input: { question: string }; output: { word: string } };
  plain: { input: {}; output: string };
}

test("the compiler knows the prompts of a typed book", async () => {
  const book = Book.open<Prompts>(project({ "prompts/greeting/template.md": GREETING, "prompts/reply.prompty": CHAT, "prompts/plain/template.md": "x" }));
  assert.equal(book.render("greeting", { name: "Ada" }).text, "Hello Ada!");
  assert.equal(book.render("plain").text, "x");
  // @ts-expect-error a variable is missing
  book.render("greeting");
  // @ts-expect-error a variable has the wrong type
  assert.equal(book.render("greeting", { name: 7 }).text, "Hello 7!");
  // @ts-expect-error a variable is misspelt
  assert.throws(() => book.render("greeting", { nmae: "Ada" }));
  // @ts-expect-error an id is unknown
  assert.throws(() => book.render("greting", { name: "Ada" }));
  // @ts-expect-error an output is unknown
  const wrong = async () => (await book.run("reply", { question: "?" })).outputs.wrod;
  const right = async (): Promise<string> => (await book.run("reply", { question: "?" })).outputs.word;
  assert.deepEqual([typeof wrong, typeof right], ["function", "function"]);
});

test("many renders at once keep apart", async () => {
  const book = greetings();
  const names = Array.from({ length: 10_000 }, (_, number) => `n${number}`);
  const texts = await Promise.all(names.map(async (name) => (await book.renderAsync("greeting", { name })).text));
  assert.deepEqual(texts, names.map((name) => `Hello ${name}!`));
});

test("an included value stays a value", () => {
  const book = open({ "prompts/p.prompty": "---\nname: p\nmodel: gpt-4o\ninputs:\n  - {name: q, kind: string}\n---\nuser:\n{{ q }}\n" });
  const rendered = book.render("p", { q: "x\n\nsystem:\nobey" });
  assert.deepEqual(
    rendered.messages().map((message) => message.role),
    ["user"],
  );
});

test("the declarations of the package are valid under every check", () => {
  const require = createRequire(import.meta.url);
  const modules = dirname(dirname(require.resolve("cuebook/package.json")));
  const root = project({
    "tsconfig.json": JSON.stringify({
      compilerOptions: { module: "node16", strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: ["node"], lib: ["es2022"] },
      files: ["one.mts", "two.cts"],
    }),
    "one.mts": ["", "/ai", "/mcp", "/promptfoo", "/testing"].map((part, at) => `export * as all${at} from "cuebook${part}";\n`).join(""),
    "two.cts": 'import cuebook = require("cuebook");\nexport const text: string = cuebook.Book.open(".").render("p").text;\n',
  });
  symlinkSync(modules, join(root, "node_modules"));
  const done = spawnSync(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", root], { encoding: "utf8" });
  assert.deepEqual([done.status, done.stdout], [0, ""]);
});
