// The adapters with the real packages of others. A server of this process answers for the providers.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as McpServer } from "@modelcontextprotocol/sdk/server/index.js";
import * as mcpTypes from "@modelcontextprotocol/sdk/types.js";
import * as ai from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import OpenAI from "openai";

import { aiSdk } from "cuebook/ai";
import { mcpCommand, servePrompts } from "cuebook/mcp";
import { CuebookProvider, promptFunction } from "cuebook/promptfoo";
import { MockModel } from "cuebook/testing";
import { CHAT, GREETING, greetings, open } from "./projects.js";

let server: Server;
let address: string;
/** Bodies by path, as the clients sent them. */
const sent: { path: string; body: any }[] = [];

const RESPONSES: [RegExp, (body: any) => object][] = [
  [/chat\/completions/, () => new MockModel().say("Grey.").ask({})],
  [
    /v1\/messages/,
    () => ({ id: "m1", type: "message", role: "assistant", model: "c", content: [{ type: "text", text: "Grey." }], stop_reason: "end_turn", usage: { input_tokens: 1, output_tokens: 1 } }),
  ],
  [/generateContent/, () => ({ candidates: [{ content: { role: "model", parts: [{ text: "Grey." }] }, finishReason: "STOP" }] })],
];

before(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(parts).toString());
      sent.push({ path: request.url!, body });
      const answer = RESPONSES.find(([path]) => path.test(request.url!))![1](body);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

const question = { question: "And in Oslo?" };

test("openai takes a body unchanged, and its response is read", async () => {
  const client = new OpenAI({ apiKey: "none", baseURL: `${address}/v1` });
  const rendered = greetings().render("reply", question);
  const body = rendered.wire("openai");
  const response = await client.chat.completions.create(body);
  assert.deepEqual(sent.at(-1)!.body, JSON.parse(JSON.stringify(body)));
  assert.deepEqual([rendered.readReply(response).kind, rendered.readReply(response).value], ["text", "Grey."]);
  const done = await rendered.converse((body) => client.chat.completions.create(body));
  assert.equal(done.result, "Grey.");
});

test("@anthropic-ai/sdk takes a body unchanged, and its response is read", async () => {
  const client = new Anthropic({ apiKey: "none", baseURL: address });
  const rendered = greetings().render("reply", question, { model: "claude-sonnet-4" });
  const body = rendered.wire("anthropic");
  const response = await client.messages.create(body);
  assert.deepEqual(sent.at(-1)!.body, JSON.parse(JSON.stringify(body)));
  assert.equal(rendered.readReply(response, "anthropic").value, "Grey.");
});

test("@google/genai takes an argument unchanged, and its response is read", async () => {
  const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: address } });
  const rendered = greetings().render("reply", question, { model: "gemini-2.5-pro" });
  const response = await client.models.generateContent(rendered.wire("google-genai"));
  const { path, body } = sent.at(-1)!;
  const wire = rendered.wire("gemini");
  assert.match(path, /models\/gemini-2.5-pro:generateContent/);
  assert.deepEqual(body.contents, wire["contents"]);
  assert.deepEqual(body.systemInstruction.parts, wire["systemInstruction"].parts);
  assert.equal(body.tools[0].functionDeclarations[0].name, "weather");
  assert.equal(rendered.readReply(response, "google-genai").value, "Grey.");
});

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const stop = { unified: "stop" as const, raw: "stop" };

test("the AI SDK generates text, and runs the functions behind tools", async () => {
  const book = greetings();
  const cities: string[] = [];
  book.tool("weather", ({ city }: { city: string }) => {
    cities.push(city);
    return { sky: "grey" };
  });
  let turn = 0;
  const model = new MockLanguageModelV3({
    doGenerate: async () =>
      turn++ === 0
        ? {
            content: [{ type: "tool-call", toolCallId: "c1", toolName: "weather", input: '{"city":"Oslo"}' }],
            finishReason: { unified: "tool-calls", raw: "tool_calls" },
            usage,
            warnings: [],
          }
        : { content: [{ type: "text", text: "Grey." }], finishReason: stop, usage, warnings: [] },
  });
  const done = await ai.generateText({ model, ...aiSdk(book.render("reply", question), ai), stopWhen: ai.stepCountIs(3) });
  assert.deepEqual([done.text, cities], ["Grey.", ["Oslo"]]);
  const [first] = model.doGenerateCalls;
  assert.deepEqual(JSON.parse(JSON.stringify(first!.prompt)), [
    { role: "system", content: "You are kind." },
    { role: "user", content: [{ type: "text", text: "And in Oslo?" }] },
  ]);
  assert.equal(first!.tools![0]!.name, "weather");
});

test("the AI SDK streams text", async () => {
  const model = new MockLanguageModelV3({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "Gr" },
          { type: "text-delta", id: "1", delta: "ey." },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: stop, usage },
        ],
      }),
    }),
  });
  const pieces: string[] = [];
  for await (const piece of ai.streamText({ model, ...aiSdk(greetings().render("reply", question), ai) }).textStream) {
    pieces.push(piece);
  }
  assert.deepEqual(pieces, ["Gr", "ey."]);
});

test("the AI SDK returns the outputs of a prompt", async () => {
  const outputs = "outputs:\n  - {name: word, kind: string}\n---\nsystem:";
  // Neither a model nor a provider is named: the program chooses them.
  const text = CHAT.replace("---\nsystem:", outputs).replace("model:\n  id: gpt-4o\n  provider: openai\n", "");
  const rendered = open({ "prompts/judge.prompty": text.replace("name: reply", "name: judge") }).render("judge", question);
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({ content: [{ type: "text", text: '{"word": "yes"}' }], finishReason: stop, usage, warnings: [] }),
  });
  const done = await ai.generateText({ model, ...aiSdk(rendered, ai) });
  assert.deepEqual(done.output, { word: "yes" });
  const format = model.doGenerateCalls[0]!.responseFormat;
  assert.ok(format?.type === "json" && Object.keys(format.schema!.properties!).includes("word"));
});

test("the AI SDK takes conversations with tools", async () => {
  const text = `---
name: talk
model: gpt-4o
inputs:
  - name: talk
    kind: thread
---
system:
Be kind.

{{ talk }}
`;
  const book = open({ "prompts/talk.prompty": text });
  const talk = [
    { role: "user", content: "Weather?" },
    { role: "assistant", content: "", tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }] },
    { role: "tool", tool_call_id: "c1", content: "grey" },
    { role: "user", content: "Thanks." },
  ];
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({ content: [{ type: "text", text: "Welcome." }], finishReason: stop, usage, warnings: [] }),
  });
  await ai.generateText({ model, ...aiSdk(book.render("talk", { talk }), ai) });
  const roles = model.doGenerateCalls[0]!.prompt.map((message) => message.role);
  assert.equal(roles[0], "system");
  assert.equal(roles.at(-1), "user");
});

test("MCP's client reaches the server of the package", async () => {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ ...mcpCommand(greetings().root), env: { ...process.env } as Record<string, string>, stderr: "ignore" }));
  const { prompts } = await client.listPrompts();
  assert.ok(prompts.some((prompt) => prompt.name === "greeting"));
  const got = await client.getPrompt({ name: "greeting", arguments: { name: "Ada" } });
  assert.equal((got.messages[0]!.content as { text: string }).text, "Hello Ada!");
  await client.close();
});

test("MCP's server offers the prompts of a book", async () => {
  const code = 'VARIABLES = {"required": [{"name": "name", "type": "string", "description": "Who"}]}\n';
  const book = open({ "prompts/greeting/template.md": GREETING, "prompts/greeting/prompt.py": code, "prompts/reply.prompty": CHAT });
  const mcp = new McpServer({ name: "ours", version: "1" }, { capabilities: { prompts: {} } });
  servePrompts(mcp, mcpTypes, book, ["greeting", "reply"]);
  const client = new Client({ name: "test", version: "1" });
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([mcp.connect(one), client.connect(other)]);
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name).sort(), ["greeting", "reply"]);
  assert.deepEqual(prompts.find((prompt) => prompt.name === "greeting")!.arguments![0], { name: "name", description: "Who", required: true });
  const got = await client.getPrompt({ name: "reply", arguments: { question: "Why?" } });
  assert.deepEqual(got.messages.map((message) => (message.content as { text: string }).text), ["You are kind.", "Why?"]);
  await assert.rejects(client.getPrompt({ name: "greeting", arguments: {} }), /CB401/);
  await assert.rejects(client.getPrompt({ name: "general_system", arguments: {} }), /does not offer/);
  await client.close();
});

test("promptfoo's prompt function returns messages", async () => {
  const prompt = promptFunction(greetings().root, "reply");
  assert.deepEqual(await prompt({ vars: { question: "Why?", other: 1 } }), [
    { role: "system", content: "You are kind." },
    { role: "user", content: "Why?" },
  ]);
});

test("promptfoo's provider reports errors as it wants them", async () => {
  const provider = new CuebookProvider({ config: { project: greetings().root, prompt: "reply", provider: "none" } });
  assert.equal(provider.id(), "cuebook:reply");
  const { error } = await provider.callApi("ignored", { vars: { question: "Why?" } });
  assert.match(error!, /^error\[CB\d+\]/);
  assert.throws(() => new CuebookProvider({ config: {} as never }), TypeError);
});
