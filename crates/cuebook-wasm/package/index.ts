/**
 * Cuebook's render path as a module of WebAssembly: for browsers, edge runtimes and Node.
 *
 * @packageDocumentation
 */

import { Book, type BookOptions, type Files } from "./book.js";
import { Module } from "./module.js";
import type { AnyPrompts, Document } from "./types.js";

export { Book, type BookOptions, type Files } from "./book.js";
export type { AnthropicBody, GoogleGenAIArguments, OpenAIBody, OpenAIResponsesBody, Wire } from "./bodies.js";
export * from "./errors.js";
export { Rendered } from "./rendered.js";
export type * from "./types.js";

/** The engine: it opens books. */
export class Engine {
  /** The version of the module. */
  readonly version: string;
  /** The names of the interfaces that `wire` knows. */
  readonly wires: readonly string[];
  readonly #module: Module;

  /** An engine of a compiled module. It does not wait, so that it can be made where a program begins. */
  constructor(compiled: object) {
    this.#module = new Module(compiled as WebAssembly.Module);
    const { version, wires } = this.#module.start() as Document & { version: string; wires: string[] };
    this.version = version;
    this.wires = wires;
  }

  /** The bytes of the module's memory, which grows to what renders need at once. */
  get memoryBytes(): number {
    return this.#module.bytes;
  }

  /** Opens a book of files in memory. */
  open<P = AnyPrompts>(files: Files, options?: BookOptions): Book<P> {
    return new Book<P>(this.#module, files, options);
  }
}

/**
 * Loads the engine: from a compiled `WebAssembly.Module`, from the bytes of one, or from a `Response` with them. Without any, the package
 * loads its own file `cuebook.wasm`.
 */
export async function load(source?: object | Promise<object>): Promise<Engine> {
  const given = await (source ?? own());
  if (given instanceof WebAssembly.Module) {
    return new Engine(given);
  }
  const bytes = typeof (given as Response).arrayBuffer === "function" ? await (given as Response).arrayBuffer() : given;
  return new Engine(await WebAssembly.compile(bytes as BufferSource));
}

async function own(): Promise<object> {
  const file = new URL("../cuebook.wasm", import.meta.url);
  if (file.protocol !== "file:") {
    return fetch(file);
  }
  // A bundle for another runtime must not look for it.
  const files = "node:fs/promises";
  const { readFile } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ files)) as { readFile(file: URL): Promise<Uint8Array> };
  return readFile(file);
}
