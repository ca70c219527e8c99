/**
 * promptfoo: prompts of a project as its prompt functions, and runs of prompts as its provider.
 *
 * @packageDocumentation
 */

import { Book } from "./book.js";
import { CuebookError } from "./errors.js";
import type { RunOptions } from "./runs.js";
import type { RenderOptions } from "./types.js";

/** What promptfoo gives a prompt function. */
export interface PromptFunctionContext {
  vars: Record<string, unknown>;
  provider?: { id?: string; label?: string };
}

/**
 * A prompt function for promptfoo: the messages of a prompt with the variables of a test.
 *
 * ```js
 * // prompts.mjs; in promptfooconfig.yaml: prompts: [file://prompts.mjs:support]
 * import { promptFunction } from "cuebook/promptfoo";
 * export const support = promptFunction("my-prompts", "support");
 * ```
 */
export function promptFunction(
  project: string | Book<any>,
  id: string,
  options: RenderOptions = {},
): (context: PromptFunctionContext) => Promise<{ role: string; content: any }[]> {
  const book = typeof project === "string" ? Book.open(project) : project;
  // Tests share variables that not every prompt has.
  return async ({ vars }) => (await book.renderAsync(id, vars, { allowUnknown: true, ...options })).chat().messages;
}

/** The configuration of the provider. */
export interface ProviderConfig extends Omit<RunOptions, "signal"> {
  /** The project's folder; by default the current one. */
  project?: string;
  /** The id of the prompt. */
  prompt: string;
}

/** What promptfoo gets. */
export interface ProviderResponse {
  output?: any;
  error?: string;
  cost?: number;
  tokenUsage?: { total: number; prompt: number; completion: number };
  metadata?: Record<string, unknown>;
}

/**
 * A provider for promptfoo that runs a prompt, with its tools and limits. What promptfoo renders is not used: the variables of a test are those of
 * the prompt.
 *
 * ```yaml
 * providers:
 *   - id: package:cuebook/promptfoo:CuebookProvider
 *     config: { project: my-prompts, prompt: support, provider: openai }
 * ```
 */
export class CuebookProvider {
  readonly #config: ProviderConfig;
  readonly #id: string;
  readonly #book: Book<any>;

  constructor(options: { id?: string; config: ProviderConfig }) {
    if (typeof options?.config?.prompt !== "string") {
      throw new TypeError("the configuration of the provider has no `prompt`: name the id of a prompt");
    }
    this.#config = options.config;
    this.#id = options.id ?? `cuebook:${options.config.prompt}`;
    this.#book = Book.open(options.config.project ?? ".");
  }

  id(): string {
    return this.#id;
  }

  async callApi(_prompt: string, context?: { vars?: Record<string, unknown> }, more?: { abortSignal?: AbortSignal }): Promise<ProviderResponse> {
    const { project: _, prompt, ...options } = this.#config;
    try {
      const signal = more?.abortSignal ? { signal: more.abortSignal } : {};
      const done = await this.#book.run(prompt, context?.vars ?? {}, { ...options, ...signal });
      const { cost } = done;
      const count = (name: string): number => Number(cost[name] ?? 0);
      const [input, output] = [count("input_tokens"), count("output_tokens")];
      return {
        ...(done.error ? { error: done.error.report } : { output: done.outputs ?? done.result }),
        cost: Number(cost["spend"] ?? 0),
        tokenUsage: { total: input + output, prompt: input, completion: output },
        metadata: { threadId: done.threadId, status: done.status, turns: cost["turns"] },
      };
    } catch (error) {
      return { error: error instanceof CuebookError ? error.report : String(error) };
    }
  }
}

export default CuebookProvider;
