// Routes of services: a client that goes away, and bundles.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { test } from "node:test";

import { buildSync } from "esbuild";
import express from "express";
import { Book, type Run } from "cuebook";
import { serveModel } from "./model.js";
import { GREETING, project } from "./projects.js";

const PROMPT = "---\nname: answer\nmodel: small\ninputs:\n  - {name: question, kind: string}\n---\nuser:\n{{ question }}\n";
const require = createRequire(import.meta.url);
const modules = dirname(dirname(require.resolve("cuebook/package.json")));

/** Resolves when the model is asked, which never answers. */
let nextAsked: () => void = () => {};
await serveModel("silent", "small", () => nextAsked());
const book = Book.open(project({ "prompts/answer.prompty": PROMPT }));
const silent = { provider: "silent" };

test("a client of Express that goes away stops the run", async () => {
  let run: Run | undefined;
  const app = express();
  app.get("/answer", async (request, response) => {
    run = book.start("answer", { question: String(request.query["question"]) }, silent);
    response.on("close", () => run!.cancel());
    await pipeline(Readable.from(run.text()), response).catch(() => {});
  });
  const server = app.listen(0);
  const client = new AbortController();
  const wasAsked = new Promise<void>((resolve) => (nextAsked = resolve));
  const answer = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/answer?question=Why`, { signal: client.signal });
  await wasAsked;
  client.abort();
  await assert.rejects(answer, { name: "AbortError" });
  assert.equal((await run!.result()).status, "cancelled");
  server.close();
});

test("a request of Next.js that is aborted stops the run", async () => {
  const client = new AbortController();
  const request = new Request("http://localhost/answer", { signal: client.signal });
  const wasAsked = new Promise<void>((resolve) => (nextAsked = resolve));
  const run = book.start("answer", { question: "Why?" }, { ...silent, signal: request.signal });
  await wasAsked;
  client.abort();
  assert.equal((await run.result()).status, "cancelled");
});

test("a bundle works if it leaves the package out", () => {
  const root = project({
    "prompts/greeting/template.md": GREETING,
    "app/greeting/route.ts": `import { Book } from "cuebook";
const book = Book.open(process.env.CUEBOOK_ROOT!);
export async function POST(request: Request): Promise<Response> {
  const rendered = await book.renderAsync("greeting", await request.json());
  return Response.json({ text: rendered.text });
}
`,
    "call.mjs": `import route from "./route.cjs";
const response = await route.POST(new Request("http://localhost/", { method: "POST", body: '{"name": "Bo"}' }));
console.log(JSON.stringify(await response.json()));
`,
  });
  symlinkSync(modules, join(root, "node_modules"));
  const bundle = (external: string[]): void => {
    const { errors } = buildSync({
      absWorkingDir: root,
      entryPoints: ["app/greeting/route.ts"],
      outfile: "route.cjs",
      bundle: true,
      platform: "node",
      format: "cjs",
      external,
      logLevel: "silent",
    });
    assert.deepEqual(errors, []);
  };
  const env = { ...process.env, CUEBOOK_ROOT: root };
  bundle(["cuebook"]);
  assert.equal(execFileSync(process.execPath, ["call.mjs"], { cwd: root, env, encoding: "utf8" }), '{"text":"Hello Bo!"}\n');
  bundle([]);
  const { status, stderr } = spawnSync(process.execPath, ["call.mjs"], { cwd: root, env, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /cuebook has no compiled part/);
});
