/**
 * Tests: the cases next to prompts in Vitest, Jest or another runner, and a model with prepared answers.
 *
 * @packageDocumentation
 */

import { Book } from "./book.js";
import { CuebookError } from "./errors.js";
import type { CaseResult } from "./types.js";

/** The functions of a test runner. Those of Vitest, Jest, Mocha and `node:test` fit. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => void): unknown;
}

/**
 * Makes a test of every case next to the prompts of a project. A failure shows what differs and where it came from.
 *
 * ```ts
 * import { describe, it } from "vitest";
 * import { testPrompts } from "cuebook/testing";
 *
 * testPrompts("my-prompts", { describe, it });
 * ```
 *
 * Without a runner, `describe` and `it` are those of the global object, as Jest has them. `targets` are ids or paths.
 */
export function testPrompts(project: string | Book<any>, runner: Runner = globalThis as unknown as Runner, targets: string[] = []): void {
  const { describe, it } = runner;
  if (typeof describe !== "function" || typeof it !== "function") {
    throw new TypeError("there is no test runner: pass its `describe` and `it`, as in testPrompts(project, { describe, it })");
  }
  const book = typeof project === "string" ? Book.open(project) : project;
  const files = book.testNow(targets);
  if (files.length === 0) {
    throw new Error(`no prompt of ${book.root} has cases: write them in \`tests.md\` next to a prompt`);
  }
  for (const file of files) {
    describe(`${file.prompt} (${file.file})`, () => {
      const { error } = file;
      if (error) {
        it("the file of cases can be read", () => {
          throw new CaseFailure(error.report);
        });
      }
      for (const one of file.cases ?? []) {
        it(one.case, () => {
          if (!one.passed) {
            throw new CaseFailure(failureOf(one));
          }
        });
      }
    });
  }
}

/** A case whose prompt does not render what it expects. */
export class CaseFailure extends Error {
  override readonly name = "CaseFailure";
}

const SIGNS: Record<string, string> = { gone: "-", new: "+" };

function failureOf(one: CaseResult): string {
  const lines: string[] = [];
  for (const failure of one.failures ?? []) {
    lines.push(`line ${failure.line}: ${failure.message}`);
    if (failure["origin"]) {
      lines.push(`  from ${failure["origin"]}`);
    }
    const error = failure["error"] as { code: string; message: string; hint?: string } | undefined;
    if (error) {
      lines.push(`  ${error.code}: ${error.message}`, ...(error.hint ? [`  help: ${error.hint}`] : []));
    }
    for (const line of (failure["diff"] ?? []) as { change: string; text: string; origin?: string }[]) {
      const origin = line.origin ? `  <- ${line.origin}` : "";
      lines.push(`  ${SIGNS[line.change] ?? " "} ${line.text}${origin}`.trimEnd());
    }
  }
  return lines.join("\n");
}

/** A model with prepared answers in the form of OpenAI's chat API. It keeps the bodies of the requests in `asked`. */
export class MockModel {
  readonly asked: any[] = [];
  readonly #answers: object[] = [];
  #count = 0;

  /** Adds an answer in text. */
  say(text: string): this {
    return this.#add({ role: "assistant", content: text }, "stop");
  }

  /** Adds a call of a tool. */
  call(name: string, values: object = {}): this {
    const call = { id: `call-${this.#count + 1}`, type: "function", function: { name, arguments: JSON.stringify(values) } };
    return this.#add({ role: "assistant", content: null, tool_calls: [call] }, "tool_calls");
  }

  #add(message: object, finish: string): this {
    this.#count += 1;
    this.#answers.push({ id: `mock-${this.#count}`, object: "chat.completion", choices: [{ index: 0, message, finish_reason: finish }] });
    return this;
  }

  /** Answers a request, for `rendered.converse(model.ask)`. */
  readonly ask = (body: unknown): any => {
    this.asked.push(body);
    const answer = this.#answers.shift();
    if (!answer) {
      throw new CuebookError("the mock model has no answer left", { code: "CB722", hint: "add one with `say` or `call`" });
    }
    return answer;
  };
}
