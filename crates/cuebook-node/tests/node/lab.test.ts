import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { GREETING, open } from "./projects.js";

const CASES = `## polite

\`\`\`yaml inputs
name: Ada
\`\`\`

\`\`\`text expected
Hello Ada!
\`\`\`

## wrong

\`\`\`yaml inputs
name: Bo
\`\`\`

\`\`\`text expected
Hello Ada!
\`\`\`
`;

const two = open({
  "prompts/greeting/template.md": GREETING,
  "prompts/greeting/tests.md": CASES,
  "prompts/farewell/template.md": "Bye {{ name }}!\n",
});

test("list, show and candidates", async () => {
  const ids = (await two.list()).map((prompt) => prompt.id);
  assert.ok(["greeting", "farewell", "general_system"].every((id) => ids.includes(id)));
  assert.deepEqual((await two.list({ type: "planning" })).map((prompt) => prompt.id), ["planning_task_decomposition"]);
  assert.equal((await two.show("coding_system"))["extends"], "general_system");
  assert.equal((await two.showFile("prompts/greeting"))["id"], "greeting");
  assert.equal((await two.candidates("greeting"))[0]!.source, "prompts/greeting");
  await assert.rejects(two.show("nothing"), { name: "PromptNotFoundError" });
});

test("a check reports findings with places", async () => {
  const report = await open({ "prompts/p/template.md": "{{ name | uper }}\n" }).check("p");
  assert.deepEqual(report.errors.map((one) => [one.severity, one.file, one.line]), [["error", "prompts/p/template.md", 1]]);
  assert.ok(String(report).includes("prompts/p/template.md:1") && report.prompts === 1);
});

test("cases next to prompts run", async () => {
  const [file] = await two.test("greeting");
  assert.deepEqual(file!.cases!.map((one) => [one.case, one.passed]), [["polite", true], ["wrong", false]]);
  const diff = file!.cases![1]!.failures![0]!["diff"] as { change: string }[];
  assert.deepEqual(new Set(diff.map((line) => line.change)), new Set(["gone", "new"]));
  assert.deepEqual(await two.caseFiles(), [{ prompt: "greeting", file: "prompts/greeting/tests.md" }]);
});

test("attacks do not change the structure", async () => {
  const attack = await two.attack("greeting");
  assert.deepEqual(attack.breaches, []);
  assert.ok(attack["inputs"]);
});

test("two prompts are compared", async () => {
  assert.equal((await two.diff("greeting", "farewell", { name: "Ada" })).same, false);
  assert.equal((await two.diff("greeting", "greeting", { name: "Ada" })).same, true);
});

test("a prompt is converted", async () => {
  const made = await two.convert("greeting", "prompty");
  assert.equal(made.files[0]!.path, "greeting.prompty");
  assert.ok(made.files[0]!.text.includes("Hello {{ name }}"));
  await assert.rejects(two.convert("greeting", "promty"), { name: "UsageError", hint: "did you mean `prompty`?" });
  const code = 'VARIABLES = {"custom": [{"name": "tone", "type": "string", "default": "calm"}]}\n\n\ndef pre_render(variables, context):\n    return variables\n';
  const lossy = open({ "prompts/p/prompt.py": code, "prompts/p/template.md": "{{ tone }}" });
  assert.equal((await lossy.convert("p", "prompty")).lossless, false);
  await assert.rejects(lossy.convert("p", "prompty", { strict: true }), { name: "PromptReadError" });
});

test("messages of a text are parsed", async () => {
  assert.deepEqual((await two.parseMessages("system:\nBe kind.\n\nuser:\nHello")).map((message) => message.role), ["system", "user"]);
});

const TOOL = `version: 1.0.0
category: team
tool_type: shell
executor_id: rye/core/primitives/subprocess
description: Says how warm it is
config: {command: echo, args: ["11.5"]}
`;

test("items are signed, verified, found and run", async () => {
  const team = open({ ".ai/tools/team/thermometer.yaml": TOOL });
  await team.generateKey({ owner: "ann" });
  assert.equal((await team.execute("tool", "team/thermometer"))["status"], "error");
  await assert.rejects(team.verify("tool", "team/thermometer"), { name: "IntegrityError" });
  assert.equal((await team.sign("tool", "team/thermometer"))["status"], "signed");
  assert.equal((await team.verify("tool", "team/thermometer"))["status"], "verified");
  const answer = await team.execute("tool", "team/thermometer");
  assert.deepEqual([answer["status"], answer["type"], answer["item_id"]], ["success", "tool", "team/thermometer"]);
  assert.match(JSON.stringify(answer["data"]), /11\.5/);
  assert.equal((await team.search("thermometer", { scope: "tool" }))["results"][0].id, "team/thermometer");
  assert.match((await team.load("tool", "team/thermometer"))["content"], /11\.5/);
  const path = join(team.root, ".ai/tools/team/thermometer.yaml");
  writeFileSync(path, readFileSync(path, "utf8").replace("11.5", "99"));
  await assert.rejects(team.verify("tool", "team/thermometer"), { name: "IntegrityError", code: "CB221" });
  await assert.rejects(team.verify("tol", "team/thermometer"), { name: "UsageError", hint: "did you mean `tool`?" });
  await assert.rejects(team.verify("tool", "team/none"), { name: "ItemNotFoundError" });
});
