import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { testPrompts } from "cuebook/testing";
import { GREETING, project } from "./projects.js";

const require = createRequire(import.meta.url);
const modules = dirname(dirname(require.resolve("cuebook/package.json")));

function section(name: string, input: string, expected: string): string {
  return `## ${name}\n\n\`\`\`yaml inputs\nname: ${input}\n\`\`\`\n\n\`\`\`text expected\n${expected}\n\`\`\`\n\n`;
}

function files(): string {
  const cases = section("polite", "Ada", "Hello Ada!") + section("wrong", "Bo", "Hello Ada!");
  const root = project({ "prompts/greeting/template.md": GREETING, "prompts/greeting/tests.md": cases });
  symlinkSync(modules, join(root, "node_modules"));
  return root;
}

test("Vitest runs the cases next to prompts", () => {
  const root = files();
  writeFileSync(join(root, "prompts.test.mjs"), 'import { describe, it } from "vitest";\nimport { testPrompts } from "cuebook/testing";\ntestPrompts(".", { describe, it });\n');
  const done = spawnSync(process.execPath, [join(modules, "vitest/vitest.mjs"), "run", "--root", root, "--reporter", "verbose"], { encoding: "utf8", cwd: root, env: { ...process.env, NO_COLOR: "1" } });
  const said = done.stdout + done.stderr;
  assert.equal(done.status, 1, said);
  assert.match(said, /greeting.*polite/);
  assert.match(said, /1 failed \| 1 passed/);
  assert.match(said, /\+ Hello Bo!\s+<- /);
});

test("Jest runs the cases next to prompts", () => {
  const root = files();
  // It takes the functions of the global object.
  writeFileSync(join(root, "prompts.test.js"), 'const { testPrompts } = require("cuebook/testing");\ntestPrompts(".");\n');
  writeFileSync(join(root, "package.json"), "{}");
  const words = [join(modules, "jest/bin/jest.js"), "--rootDir", root, "--verbose", "--ci", "--runInBand", "--no-cache"];
  const done = spawnSync(process.execPath, words, { encoding: "utf8", cwd: root, env: { ...process.env, NO_COLOR: "1" } });
  const said = done.stdout + done.stderr;
  assert.equal(done.status, 1, said);
  assert.match(said, /✓ polite/);
  assert.match(said, /✕ wrong/);
  assert.match(said, /\+ Hello Bo!\s+<- /);
  assert.match(said, /1 failed, 1 passed/);
});

test("cases are tests of a runner with the functions of Jest", () => {
  const found: string[] = [];
  const failed: string[] = [];
  const runner = {
    describe(name: string, body: () => void) {
      found.push(name);
      body();
    },
    it(name: string, body: () => void) {
      found.push(name);
      try {
        body();
      } catch (error) {
        failed.push(name, (error as Error).message);
      }
    },
  };
  Object.assign(globalThis, runner);
  testPrompts(files());
  assert.deepEqual(found, ["greeting (prompts/greeting/tests.md)", "polite", "wrong"]);
  assert.equal(failed[0], "wrong");
  assert.match(failed[1]!, /- Hello Ada!/);
  assert.throws(() => testPrompts(project({ "prompts/p/template.md": "x" })), /has cases/);
  assert.throws(() => testPrompts(files(), {} as never), TypeError);
});
