import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { version } from "cuebook";
import { greetings } from "./projects.js";

const require = createRequire(import.meta.url);
const manifest = require.resolve("cuebook/package.json");
const bin = (require(manifest) as { bin: { cuebook: string } }).bin.cuebook;

/** Runs the command as `npx cuebook` does. */
function command(...words: string[]) {
  return spawnSync(process.execPath, [join(dirname(manifest), bin), ...words], { encoding: "utf8" });
}

test("the package has the command line", () => {
  const { root } = greetings();
  const done = command("render", "greeting", "--root", root, "--var", "name=Ada");
  assert.deepEqual([done.status, done.stdout, done.stderr], [0, "Hello Ada!", ""]);
  assert.equal(command("render", "greting", "--root", root).status, 1);
  assert.equal(command("--nonsense").status, 2);
  assert.match(command("--version").stdout, new RegExp(version.replaceAll(".", "\\.")));
});
