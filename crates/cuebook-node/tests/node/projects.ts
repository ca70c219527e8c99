// Projects for the tests, each in a temporary folder. Nothing of the machine takes part: keys and settings are those of an empty home.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { Book } from "cuebook";

const base = mkdtempSync(join(tmpdir(), "cuebook-node-"));
process.on("exit", () => rmSync(base, { recursive: true, force: true }));

export const home = join(base, "home");
mkdirSync(home);
for (const name of ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]) {
  process.env[name] = home;
}
for (const name of Object.keys(process.env)) {
  if (name.startsWith("CUEBOOK_") || name === "USER_SPACE") {
    delete process.env[name];
  }
}

let count = 0;

/** Writes files and returns their folder. */
export function project(files: Record<string, string>): string {
  const root = join(base, `project-${++count}`);
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return root;
}

/** A book of files. */
export function open(files: Record<string, string>): Book {
  return Book.open(project(files));
}

export const GREETING = "Hello {{ name }}{% if tone %}, {{ tone }}{% endif %}!\n";
export const CHAT = `---
name: reply
model:
  id: gpt-4o
  provider: openai
inputs:
  - name: question
    kind: string
tools:
  - name: weather
    kind: function
    description: The weather in a city.
    parameters:
      - name: city
        kind: string
---
system:
You are kind.

user:
{{ question }}
`;

/** A book with a greeting and a conversation. */
export function greetings(): Book {
  return open({ "prompts/greeting/template.md": GREETING, "prompts/reply.prompty": CHAT });
}
