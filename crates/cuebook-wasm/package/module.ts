// The module of WebAssembly: calls cross as texts in its memory.

import * as errors from "./errors.js";
import type { Document } from "./types.js";

interface Exports {
  memory: WebAssembly.Memory;
  cuebook_start(): void;
  cuebook_input(bytes: number): number;
  cuebook_call(bytes: number): number;
  cuebook_output(): number;
  cuebook_output_bytes(): number;
}

// As `cuebook_call` returns them.
const DONE = 0;
const FAILED = 1;

type ErrorClass = new (message: string, details?: errors.ErrorDetails, options?: ErrorOptions & { report?: string }) => errors.CuebookError;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A compiled module, and the instance that answers its calls. A trap ends an instance; the next call has a new one. */
export class Module {
  /** How many instances there were. Books have to be opened again in a new one. */
  generation = 0;
  readonly #compiled: WebAssembly.Module;
  #secret: string | undefined;
  #exports: Exports | undefined;
  #memory = new Uint8Array(0);

  constructor(compiled: WebAssembly.Module) {
    this.#compiled = compiled;
  }

  /** What the names of rich inputs are made from. Some runtimes have no random bytes before the first request. */
  get secret(): string {
    return (this.#secret ??= crypto.randomUUID());
  }

  /** Begins an instance unless there is one. It returns what the module says about itself. */
  start(): Document {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return JSON.parse(this.#ask(JSON.stringify({ call: "start", zone }))!) as Document;
  }

  /** Makes a call and returns its answer; undefined, if the render that it asks about is not kept any more. */
  call(request: string): string | undefined {
    this.ready();
    return this.#ask(request);
  }

  /** The bytes of the memory that the instance has. */
  get bytes(): number {
    return this.#exports?.memory.buffer.byteLength ?? 0;
  }

  /** Has an instance. */
  ready(): void {
    if (this.#exports === undefined) {
      this.start();
    }
  }

  #instance(): Exports {
    if (this.#exports === undefined) {
      this.#exports = new WebAssembly.Instance(this.#compiled, {}).exports as unknown as Exports;
      this.#exports.cuebook_start();
      this.generation += 1;
    }
    return this.#exports;
  }

  #ask(request: string): string | undefined {
    const exports = this.#instance();
    let status: number;
    try {
      // A character of UTF-16 has at most three bytes.
      const most = request.length * 3;
      const at = exports.cuebook_input(most) >>> 0;
      const { written } = encoder.encodeInto(request, this.#bytes(exports, at, most));
      status = exports.cuebook_call(written);
    } catch (error) {
      // First of all: where the stack is used up, a call would fail here, and leave the broken instance in use.
      this.#exports = undefined;
      throw this.#broken(exports, error);
    }
    const answer = this.#output(exports);
    if (status === FAILED) {
      throw made(answer);
    }
    return status === DONE ? answer : undefined;
  }

  #bytes(exports: Exports, at: number, count: number): Uint8Array {
    // The memory has another buffer once it has grown.
    if (this.#memory.buffer !== exports.memory.buffer) {
      this.#memory = new Uint8Array(exports.memory.buffer);
    }
    return this.#memory.subarray(at, at + count);
  }

  #output(exports: Exports): string {
    return decoder.decode(this.#bytes(exports, exports.cuebook_output() >>> 0, exports.cuebook_output_bytes() >>> 0));
  }

  /** The error for a call that broke the instance. */
  #broken(exports: Exports, error: unknown): errors.CuebookError {
    const said = error instanceof Error ? error.message : String(error);
    // What engines say when the stack is used up, either theirs or that of the module, which ends at address 0.
    if (error instanceof RangeError || /recursion|stack|out of bounds/i.test(said)) {
      const details = { code: "CB505", hint: "nest fewer macros, includes and brackets" };
      return new errors.LimitError("the template nests too deeply for this runtime", details, { cause: error });
    }
    let words = "";
    try {
      words = this.#output(exports);
    } catch {
      // There is no memory left to read from.
    }
    const why = words.startsWith("panicked") ? words : said;
    return new errors.LimitError(`the module stopped: ${why}`, { hint: "render less at once, because it may have no memory left" }, { cause: error });
  }
}

/** The error of a failed call. */
function made(answer: string): errors.CuebookError {
  const { error, report } = JSON.parse(answer) as { error: errors.ErrorDetails & { type?: string }; report: string };
  const kind = (errors as unknown as Record<string, ErrorClass | undefined>)[error.type ?? ""] ?? errors.CuebookError;
  return new kind(error.message ?? "", error, { report: report.trimEnd() });
}
