import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { type Book, CuebookError, load, type Rendered } from "cuebook-wasm";

interface Render {
  prompt: string;
  variables: Record<string, unknown>;
  context: { language?: string; model?: string; strict?: boolean };
  expected: Record<string, unknown>;
}

interface Project {
  files: Record<string, string>;
  renders: Render[];
  list: unknown[];
}

interface Cases {
  clock: string;
  workspace: string;
  projects: Project[];
}

const { clock, workspace, projects } = JSON.parse(readFileSync(new URL("../cases.json", import.meta.url), "utf8")) as Cases;
const engine = await load();

/** Names of rich inputs with the same digits in all renders, and without the name of the system. */
function steady(value: unknown): unknown {
  const text = JSON.stringify(value).replace(/__PROMPTY_THREAD_[0-9a-f]{16}_/g, "__PROMPTY_THREAD_0000000000000000_");
  return JSON.parse(text, (key, inner: unknown) => (key === "os" || key === "os_info" ? undefined : inner)) as unknown;
}

function said(question: () => unknown): unknown {
  try {
    return question();
  } catch (error) {
    assert.ok(error instanceof CuebookError, String(error));
    const { message, ...details } = error.details as Record<string, unknown>;
    return { error: { message, ...details }, report: error.report };
  }
}

function shown(rendered: Rendered): Record<string, unknown> {
  const wires = engine.wires.map((name) => {
    const body = (): unknown => {
      const wire = rendered.wire(name);
      return { body: wire, notes: wire.notes };
    };
    return [name, said(body)];
  });
  const spans = rendered.spans.map(({ start, end, origin, label, section }) => ({ start, end, origin, label, section }));
  const found = ({ label: _, ...place }: { label: string }): unknown => place;
  const read = ["promptId", "model", "segments", "tools", "notes"] as const;
  return {
    text: rendered.text,
    wires: Object.fromEntries(wires),
    spans,
    messages: said(() => rendered.messages()),
    ...Object.fromEntries(read.map((what) => [what, said(() => (what === "segments" ? rendered.segments() : rendered[what]))])),
    explanation: rendered.explanation(),
    find: said(() => rendered.find("ing").map(found)),
    ...Object.fromEntries([0, 7].filter((at) => at < rendered.text.length).map((at) => [`explain ${at}`, found(rendered.explain(at))])),
  };
}

function made(book: Book, { prompt, variables, context }: Render): unknown {
  return said(() => shown(book.render(prompt, variables, { ...context, workspacePath: workspace })));
}

for (const [number, project] of projects.entries()) {
  test(`the prompts of project ${number} render as the engine renders them`, () => {
    const book = engine.open(project.files, { clock });
    for (const render of project.renders) {
      const { expected } = render;
      for (const at of Object.keys(expected).filter((key) => key.startsWith("explain "))) {
        if (Number(at.split(" ")[1]) >= String(expected["text"]).length) {
          delete expected[at];
        }
      }
      assert.deepEqual(steady(made(book, render)), steady(expected), `${render.prompt} ${JSON.stringify(render.context)}`);
    }
    assert.deepEqual(steady(book.list()), project.list);
  });
}

test("the cases have renders and errors of many kinds", () => {
  const renders = projects.flatMap((project) => project.renders);
  const codes = new Set(renders.map(({ expected }) => (expected["error"] as { code: string } | undefined)?.code));
  assert.ok(renders.filter(({ expected }) => "text" in expected).length >= 50);
  assert.ok(codes.size >= 10, [...codes].join(" "));
});
