// The service with Next.js of the chapter: a real build, a real server, and a request.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { GREETING } from "./projects.js";

const tests = dirname(dirname(fileURLToPath(import.meta.url)));
/** A folder with the packages of Next.js and ours. */
const root = join(dirname(tests), "next");
const next = join(root, "node_modules/next/dist/bin/next");
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };

test("the route of Next.js answers after a real build", async () => {
  for (const old of ["app", ".next", "prompts"]) rmSync(join(root, old), { recursive: true, force: true });
  cpSync(join(tests, "next"), root, { recursive: true });
  mkdirSync(join(root, "prompts/greeting"), { recursive: true });
  writeFileSync(join(root, "prompts/greeting/template.md"), GREETING);
  writeFileSync(join(root, "package.json"), '{"private": true}');
  execFileSync(process.execPath, [next, "build"], { cwd: root, env, encoding: "utf8", stdio: "pipe" });
  const server = spawn(process.execPath, [next, "start", "--port", "0", "--hostname", "127.0.0.1"], { cwd: root, env });
  try {
    let printed = "";
    const address = await new Promise<string>((resolve, reject) => {
      server.stdout.on("data", (piece) => {
        printed += piece;
        const [found] = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(printed) ?? [];
        if (found && /ready/i.test(printed)) resolve(found);
      });
      server.stderr.on("data", (piece) => (printed += piece));
      server.on("exit", () => reject(new Error(printed)));
    });
    const post = (body: object) => fetch(`${address}/greeting`, { method: "POST", body: JSON.stringify(body) });
    assert.equal(await (await post({ name: "Bo" })).text(), '{"text":"Hello Bo!"}');
    assert.equal((await post({ nmae: "Bo" })).status, 500);
  } finally {
    server.removeAllListeners("exit");
    server.kill();
  }
});
