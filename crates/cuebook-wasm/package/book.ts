// A book whose files are texts in memory.

import { IoError, UsageError } from "./errors.js";
import type { Module } from "./module.js";
import { namedByEngine, refuseOthers } from "./options.js";
import { Rendered } from "./rendered.js";
import type { AnyPrompts, Document, IdOf, Listing, RenderArguments, RenderOptions, Variables } from "./types.js";
import { toJson, variablesToJson } from "./values.js";

/** The texts of files by their paths in the project: `prompts/greeting/template.md`. */
export type Files = Readonly<Record<string, string>> | Iterable<readonly [path: string, text: string]>;

/** The options of `engine.open`. */
export interface BookOptions {
  /** Values that every template finds. */
  globals?: Variables;
  /** A fixed time, such as `2026-02-20T15:30:00+09:00[Asia/Tokyo]`. */
  clock?: string;
}

let books = 0;
let renders = 0;

/** The prompts of files in memory. They do not change: open another book for other files. */
export class Book<P = AnyPrompts> {
  readonly #module: Module;
  readonly #number = ++books;
  readonly #paths: string[];
  /** The call that opens the book; undefined once it is closed. */
  #opening: string | undefined;
  #generation = -1;

  /** @internal */
  constructor(module: Module, files: Files, options: BookOptions = {}) {
    this.#module = module;
    const { globals, clock, ...unknown } = options;
    const [name] = Object.keys(unknown);
    if (name !== undefined) {
      throw new UsageError(`the options of a book have no \`${name}\``, { code: "CB407", hint: "they are `globals` and `clock`" });
    }
    const all = texts(files);
    this.#paths = Object.keys(all).map(plain);
    this.#opening = toJson({ call: "open", book: this.#number, files: all, globals, clock }, "files");
    this.#open();
  }

  /** Opens the book in the module, if this instance of it does not have it. */
  #open(): void {
    if (this.#opening === undefined) {
      throw new UsageError("the book is closed", { code: "CB407", hint: "open another one" });
    }
    this.#module.ready();
    if (this.#generation !== this.#module.generation) {
      this.#module.call(this.#opening);
      this.#generation = this.#module.generation;
    }
  }

  #call(request: string): string {
    this.#open();
    return this.#module.call(request)!;
  }

  /** Renders a prompt, given by its id. A variable that the prompt does not have is an error, unless `allowUnknown` is set. */
  render<Id extends IdOf<P>>(id: Id, ...rest: RenderArguments<P, Id, RenderOptions>): Rendered {
    return this.#render(id, rest[0] as Variables | undefined, rest[1], false);
  }

  /** Renders the prompt of a file or folder, by its path in the project. Never pass it a path from a request. */
  renderFile(path: string, variables?: Variables, options?: RenderOptions): Rendered {
    return this.#render(path, variables, options, true);
  }

  #render(prompt: string, variables: Variables | undefined, options: RenderOptions | undefined, isPath: boolean): Rendered {
    this.#find(prompt, isPath);
    const number = ++renders;
    let request = `{"call":"render","book":${this.#number},"number":${number},"now":${Date.now()},"secret":"${this.#module.secret}","prompt":${JSON.stringify(prompt)}`;
    const values = variablesToJson(variables);
    if (values !== undefined) {
      request += `,"variables":${values}`;
    }
    if (options !== undefined) {
      request += `,"context":${toJson(namedByEngine(options, (wanted, names) => this.#nearest(wanted, names)), "options")}`;
      request += options.allowUnknown ? ',"allowUnknown":true' : "";
    }
    request += isPath ? ',"isPath":true}' : "}";
    const again = (): string => this.#call(request);
    return new Rendered(this.#module, number, again(), again);
  }

  /** Refuses what no prompt can have: an id that is no text, or a path that leads to nothing. */
  #find(prompt: string, isPath: boolean): void {
    refuseOthers(isPath ? "path" : "id", prompt);
    const path = plain(prompt);
    if (isPath && !this.#paths.some((known) => known === path || known.startsWith(`${path}/`))) {
      const [near] = this.#nearest(path, this.#paths);
      const hint = near === undefined ? "paths are those of the files that the book was opened with" : `did you mean \`${near}\`?`;
      throw new IoError(`the book has no file or folder ${path}`, { code: "CB110", file: path, hint });
    }
  }

  #nearest(wanted: string, names: string[]): string[] {
    return JSON.parse(this.#call(JSON.stringify({ call: "nearest", wanted, names }))) as string[];
  }

  /** Every prompt by id, or those of a type or with a tag. */
  list(filter: { type?: string; tag?: string } = {}): Listing[] {
    return JSON.parse(this.#call(JSON.stringify({ call: "list", book: this.#number, ...filter }))) as Listing[];
  }

  /** The definition of a prompt: metadata, variables, permissions, limits. */
  show(id: IdOf<P>): Document {
    this.#find(id, false);
    return JSON.parse(this.#call(JSON.stringify({ call: "show", book: this.#number, prompt: id }))) as Document;
  }

  /** The definition of the prompt in a file or folder. */
  showFile(path: string): Document {
    this.#find(path, true);
    return JSON.parse(this.#call(JSON.stringify({ call: "show", book: this.#number, prompt: path, isPath: true }))) as Document;
  }

  /** Frees the files and prompts of the book in the module. */
  close(): void {
    if (this.#generation === this.#module.generation) {
      this.#module.call(JSON.stringify({ call: "close", book: this.#number }));
    }
    this.#opening = undefined;
  }
}

/** A path without what leads to the project. */
function plain(path: string): string {
  return path.replace(/^(\.?\/)+|\/+$/g, "");
}

function texts(files: Files): Record<string, string> {
  if (typeof files !== "object" || files === null) {
    throw new UsageError("the files are not an object", { code: "CB407", hint: 'pass texts by path: {"prompts/greeting/template.md": "Hello!"}' });
  }
  const all = Symbol.iterator in files ? Object.fromEntries(files as Iterable<readonly [string, string]>) : (files as Record<string, string>);
  for (const [path, text] of Object.entries(all)) {
    if (typeof text !== "string") {
      throw new UsageError(`the file ${path} is a ${typeof text}, and not a text`, { code: "CB407", hint: "decode bytes with `TextDecoder`" });
    }
    if (path === "" || path.split("/").some((part) => part === "..")) {
      throw new IoError(`the path \`${path}\` is not in the project`, { code: "CB110", file: path, hint: "use paths such as prompts/greeting/template.md" });
    }
  }
  return all;
}
