// Runs of prompts: threads of a model and its tools.

import type { CuebookError } from "./errors.js";
import { fromNative, type NativeError } from "./failures.js";
import { call, host, type NativeBook } from "./native.js";
import type { Document } from "./types.js";

/** Something that happened in a run: an `event` of the log, further `text` or `thinking`, a `pulse`, or a `retry`. */
export type RunEvent =
  | { threadId: string; kind: "event"; data: { seq: number; event: string; [more: string]: any } }
  | { threadId: string; kind: "text" | "thinking"; data: string }
  | { threadId: string; kind: "pulse"; data: { cost: Document; doing: string } }
  | { threadId: string; kind: "retry"; data: { attempt: number; pause: number; why: string } };

/** Where threads are, and who answers. */
export interface ThreadOptions {
  /** The provider: the name of a file in `.ai/config/providers`. */
  provider?: string;
  /** Plays recorded replies back instead of calling a provider. */
  replay?: string;
  /** Records the replies in this file. */
  record?: string;
  /** Where the logs are: a file, or the address of a database. */
  store?: string;
  /** Run tools without the sandbox. */
  unfenced?: boolean;
  /** Another model than the prompt's own. */
  model?: string;
  /** Replaces limits, such as `{ turns: 4 }`. */
  limits?: Record<string, number>;
  /** Stops the run. */
  signal?: AbortSignal;
}

/** The options of `book.run` and `book.start`, beside those of a render. */
export interface RunOptions extends ThreadOptions {
  /** Items behind the prompt's tools, by the names of the tools. */
  tools?: Record<string, string>;
  /** Patterns of items that the run may execute. */
  allow?: string[];
  /** Ids of skills that the model can open. */
  skills?: string[];
}

/** The options of `book.resume`. */
export interface ResumeOptions extends ThreadOptions {
  /** Make calls of tools again whose end is unknown. */
  allowAgain?: boolean;
  /** Take the thread over from a process that runs it. */
  takeOver?: boolean;
}

/** How a run ended. */
export class RunResult<Output = any> {
  readonly threadId: string;
  readonly status: "completed" | "error" | "cancelled" | "suspended" | "interrupted" | "running";
  /** The model's last answer. */
  readonly result: any;
  /** The outputs that the prompt declares. */
  readonly outputs: Output;
  readonly cost: Document;
  readonly error: CuebookError | null;

  /** @internal */
  constructor(answer: Answer) {
    this.threadId = answer.threadId;
    this.status = answer.status;
    this.result = answer["result"];
    this.outputs = answer["outputs"] as Output;
    this.cost = (answer["cost"] as Document | undefined) ?? {};
    this.error = answer.error ? fromNative(answer.error) : null;
  }

  /** Throws the error of the run, if it has one. */
  check(): this {
    if (this.error) {
      throw this.error;
    }
    return this;
  }
}

interface Answer {
  threadId: string;
  status: RunResult["status"];
  error: NativeError | null;
  [more: string]: unknown;
}

/** A run. Iterate over it for its events; `result()` waits for its end. */
export class Run<Output = any> implements AsyncIterable<RunEvent> {
  readonly #result: Promise<RunResult<Output>>;
  #number = 0;
  #threadId: string | undefined;
  #running = true;
  /** Events that were not iterated over yet, and who waits for the next one. */
  #events: RunEvent[] = [];
  #next: (() => void) | undefined;

  /** @internal */
  constructor(book: NativeBook, what: "run" | "resume", values: string, signal: AbortSignal | undefined) {
    const begin = (number: number): void => {
      this.#number = number;
      host.run(book, number, what, values);
    };
    const event = (text: string): void => {
      const event = JSON.parse(text) as RunEvent;
      this.#threadId ??= event.threadId;
      this.#events.push(event);
      this.#next?.();
    };
    // A run that is stopped ends with a result that says so, and is no exception.
    this.#result = call<Answer>(begin, { event })
      .then((answer) => {
        this.#threadId = answer.threadId;
        return new RunResult<Output>(answer);
      })
      .finally(() => {
        this.#running = false;
        signal?.removeEventListener("abort", this.#stop);
        this.#next?.();
      });
    // Without a reader of the result, its failure is that of the iteration.
    this.#result.catch(() => {});
    if (signal?.aborted) {
      this.cancel();
    }
    signal?.addEventListener("abort", this.#stop, { once: true });
  }

  readonly #stop = (): void => this.cancel();

  /** The id of the thread; undefined until its first event. */
  get threadId(): string | undefined {
    return this.#threadId;
  }

  /** Whether it has not ended. */
  get running(): boolean {
    return this.#running;
  }

  /** Stops the run. `result()` resolves once it has stopped. */
  cancel(): void {
    host.cancel(this.#number);
  }

  /** Waits for the end. */
  result(): Promise<RunResult<Output>> {
    return this.#result;
  }

  /** The events, as they happen. Leaving the loop early stops the run. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, void> {
    let ended = false;
    try {
      for (;;) {
        const events = this.#events;
        this.#events = [];
        yield* events;
        if (this.#events.length > 0) {
          continue;
        }
        if (!this.#running) {
          break;
        }
        await new Promise<void>((resolve) => (this.#next = resolve));
        this.#next = undefined;
      }
      ended = true;
    } finally {
      if (!ended) {
        this.cancel();
      }
    }
    await this.#result;
  }

  /** Further pieces of the answer, as they arrive. */
  async *text(): AsyncGenerator<string, void, void> {
    for await (const event of this) {
      if (event.kind === "text") {
        yield event.data;
      }
    }
  }
}

