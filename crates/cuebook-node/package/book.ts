// A book: the prompts of a project.

import { statSync } from "node:fs";
import { userInfo } from "node:os";
import { resolve } from "node:path";

import { contextToJson, splitContext } from "./context.js";
import { type CuebookError, InvokerError, IoError, type Candidate, type DiagnosticFields, type VariableProblem } from "./errors.js";
import { fromNative, thrown, type NativeError } from "./failures.js";
import { refuseOthers } from "./options.js";
import { call, command, host, native, nextNumber, register, unregister, type NativeBook } from "./native.js";
import { Rendered, type ToolFunction } from "./rendered.js";
import { Run, type ResumeOptions, type RunOptions, type RunResult } from "./runs.js";
import { batchesOf, handOver, type ArrowTable } from "./tables.js";
import { toJson, variablesToJson } from "./values.js";
import type {
  AnyPrompts,
  CaseFileResult,
  Document,
  IdOf,
  Listing,
  Message,
  OutputOf,
  RenderArguments,
  RenderOptions,
  Variables,
} from "./types.js";

/** The options of `Book.open`. */
export interface BookOptions {
  /** Environment variables that prompts may read. */
  env?: Iterable<string>;
  /** Values that every template finds. */
  globals?: Variables;
  /** The folder of your keys and items, instead of the usual one. */
  user?: string;
  /** A fixed time, such as `2026-02-20T15:30:00+09:00[Asia/Tokyo]`. */
  clock?: string;
}

/** What a hook knows of a render. */
export interface HookContext {
  promptId?: string;
  namespace?: string;
  workspacePath: string;
  session: Record<string, unknown>;
}

type Maybe<T> = T | Promise<T>;

/** The findings of a check. `String(report)` is what the command line prints. */
export class Report extends Array<DiagnosticFields> {
  /** How many prompts were checked. */
  prompts = 0;
  text = "";

  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** The findings that are errors. */
  get errors(): DiagnosticFields[] {
    return this.filter((finding) => (finding.severity ?? "error") === "error");
  }

  override toString(): string {
    return this.text;
  }
}

interface Registered {
  kind: string;
  name: string;
  number: number;
}

/**
 * The prompts of a project. It notices when files change.
 *
 * `Book.open<Prompts>(path)` with the `Prompts` that `cuebook stubs --lang ts` writes knows every id with its variables and outputs.
 */
export class Book<P = AnyPrompts> {
  /** The project's folder. */
  readonly root: string;
  readonly #options: Document;
  #functions: Registered[] = [];
  readonly #tools = new Map<string, ToolFunction>();
  #native: NativeBook;

  private constructor(path: string, options: BookOptions) {
    this.root = resolve(path);
    if (!statSync(this.root, { throwIfNoEntry: false })?.isDirectory()) {
      const message = `the project ${this.root} is not a directory`;
      throw new IoError(message, { code: "CB110", file: this.root, hint: "pass the folder that holds the prompts" });
    }
    this.#options = {
      root: this.root,
      env: [...(options.env ?? [])],
      globals: options.globals,
      user: options.user,
      clock: options.clock,
      launcher: command,
    };
    this.#native = this.#open();
  }

  /** Opens a project. */
  static open<P = AnyPrompts>(path = ".", options: BookOptions = {}): Book<P> {
    return new Book<P>(path, options);
  }

  #open(): NativeBook {
    try {
      return host.open(toJson({ ...this.#options, functions: this.#functions }, "options"));
    } catch (error) {
      throw thrown(error);
    }
  }

  // Rendering

  /**
   * Renders a prompt, given by its id. A variable that the prompt does not have is an error, unless `allowUnknown` is set.
   *
   * It does not wait: for a prompt with hooks in Python, or with asynchronous functions, use `renderAsync`.
   */
  render<Id extends IdOf<P>>(id: Id, ...rest: RenderArguments<P, Id, RenderOptions>): Rendered {
    return this.#render(id, rest[0] as Variables | undefined, rest[1], false);
  }

  /** Renders the prompt of a file or folder, whose path is relative to the project. Never pass it a path from a request. */
  renderFile(path: string, variables?: Variables, options?: RenderOptions): Rendered {
    refuseOthers("path", path);
    return this.#render(resolve(this.root, path), variables, options, true);
  }

  #render(prompt: string, variables: Variables | undefined, options: RenderOptions | undefined, isPath: boolean): Rendered {
    refuseOthers(isPath ? "path" : "id", prompt);
    const values = variablesToJson(variables);
    const context = options && contextToJson(options);
    const number = nextNumber();
    const tools = this.#tools.size > 0 ? new Map(this.#tools) : undefined;
    try {
      return new Rendered(number, tools, (rendered) =>
        host.render(this.#native, rendered, number, prompt, values, context, isPath, options?.allowUnknown ?? false),
      );
    } catch (error) {
      throw thrown(error);
    }
  }

  /** Like `render`, in another thread: hooks in Python and asynchronous functions may take their time. */
  renderAsync<Id extends IdOf<P>>(id: Id, ...rest: RenderArguments<P, Id, RenderOptions>): Promise<Rendered> {
    return this.#renderAsync(id, rest[0] as Variables | undefined, rest[1], false);
  }

  /** Like `renderFile`, in another thread. */
  renderFileAsync(path: string, variables?: Variables, options?: RenderOptions): Promise<Rendered> {
    return this.#renderAsync(resolve(this.root, path), variables, options, true);
  }

  async #renderAsync(prompt: string, variables: Variables | undefined, options: RenderOptions | undefined, isPath: boolean): Promise<Rendered> {
    refuseOthers(isPath ? "path" : "id", prompt);
    const values = this.#values(prompt, variables, options, { isPath, allowUnknown: options?.allowUnknown });
    let number = 0;
    await call((given) => host.renderLater(this.#native, (number = given), values));
    const tools = this.#tools.size > 0 ? new Map(this.#tools) : undefined;
    return new Rendered(number, tools, (rendered) => host.adopt(rendered, number));
  }

  /**
   * Renders a prompt once for each row, in other threads. Files are looked at once, and all cores are used.
   *
   * `rows` are objects, or a table of the package `apache-arrow`, whose columns are the variables. The texts are in the order of the rows. The
   * first error rejects the promise, unless `errors: "return"` puts errors into the list.
   */
  renderBatch<Id extends IdOf<P>>(id: Id, rows: Rows<P, Id>, options?: BatchOptions & { errors?: "throw" }): Promise<string[]>;
  renderBatch<Id extends IdOf<P>>(id: Id, rows: Rows<P, Id>, options: BatchOptions & { errors: "return" }): Promise<(string | CuebookError)[]>;
  async renderBatch<Id extends IdOf<P>>(
    id: Id,
    rows: Rows<P, Id>,
    options: BatchOptions & { errors?: "throw" | "return" } = {},
  ): Promise<(string | CuebookError)[]> {
    const { errors = "throw", threads, signal, ...more } = options;
    const all: (string | CuebookError)[] = [];
    const head = this.#values(id, undefined, more, { allowUnknown: more.allowUnknown, threads }).slice(0, -1);
    const add = async (part: Promise<(string | NativeError)[]>): Promise<void> => {
      const done = await part;
      signal?.throwIfAborted();
      for (const one of done) {
        const text = typeof one === "string" ? one : fromNative(one);
        if (errors === "throw" && typeof text !== "string") {
          text.details["row"] = all.length;
          throw text;
        }
        all.push(text);
      }
    };
    const batches = isTable(rows) ? batchesOf(rows) : undefined;
    for (const batch of batches ?? []) {
      const table = await handOver(batch);
      for (let first = 0; first < batch.rows; first += MOST_ROWS) {
        const values = `${head},"first":${first},"count":${MOST_ROWS}}`;
        await add(call((number) => host.renderTable(this.#native, number, table, values), { signal }));
      }
    }
    if (!batches) {
      for (const part of parts(isTable(rows) ? rowsOf(rows) : (rows as Iterable<Variables>))) {
        await add(this.#call("renderRows", () => `${head},"rows":[${part.join(",")}]}`, signal));
      }
    }
    return all;
  }

  /** Problems with variables for a prompt: missing ones and wrong types. */
  validate<Id extends IdOf<P>>(id: Id, variables?: Variables, options?: RenderOptions): Promise<VariableProblem[]> {
    return this.#call("validate", () => this.#values(id, variables, options));
  }

  // Finding

  /** Every prompt by id, or those of a type or with a tag. */
  list(filter: { type?: string; tag?: string } = {}): Promise<Listing[]> {
    return this.#call("list", () => JSON.stringify(filter));
  }

  /** The definition of a prompt: metadata, variables, permissions, limits. */
  show(id: IdOf<P>): Promise<Document> {
    return this.#call("show", () => JSON.stringify({ prompt: id }));
  }

  /** The definition of the prompt in a file or folder. */
  showFile(path: string): Promise<Document> {
    return this.#call("show", () => JSON.stringify({ prompt: resolve(this.root, path), isPath: true }));
  }

  /** Every place that offers an id. */
  candidates(id: string): Promise<Candidate[]> {
    return this.#call("candidates", () => JSON.stringify({ prompt: id }));
  }

  /** Records which place is meant by an id. */
  resolve(id: string, source: string): Promise<Document> {
    return this.#call("resolve", () => JSON.stringify({ prompt: id, source }));
  }

  // Checking

  /** Checks prompts (ids or paths), or the whole project. */
  async check(...targets: string[]): Promise<Report> {
    const found = await this.#call<{ findings: DiagnosticFields[]; prompts: number; report: string }>("check", () =>
      JSON.stringify({ targets }),
    );
    const report = new Report();
    report.push(...found.findings);
    report.prompts = found.prompts;
    report.text = found.report;
    return report;
  }

  /** The files of cases that exist for prompts. */
  caseFiles(...targets: string[]): Promise<{ prompt: string; file: string }[]> {
    return this.#call("caseFiles", () => JSON.stringify({ targets }));
  }

  /** Runs the cases next to prompts: for each file its `cases`, or the `error` that it has. */
  test(...targets: string[]): Promise<CaseFileResult[]> {
    return this.#call("test", () => JSON.stringify({ targets }));
  }

  /**
   * Like `test`, but it waits: a test runner has to know its tests before they run.
   *
   * @internal
   */
  testNow(targets: string[]): CaseFileResult[] {
    try {
      return JSON.parse(host.performNow(this.#native, "test", JSON.stringify({ targets }))) as CaseFileResult[];
    } catch (error) {
      throw thrown(error);
    }
  }

  /** Tries injection strings in every input, and reports whether roles, messages and tools stay the same. */
  attack(id: IdOf<P>, variables?: Variables, options?: RenderOptions): Promise<Document & { breaches: Document[] }> {
    return this.#call("attack", () => this.#values(id, variables, options));
  }

  /** Compares two prompts: ids, paths, or sources of candidates. */
  diff(before: string, after: string, variables?: Variables, options?: RenderOptions): Promise<Document & { same: boolean }> {
    return this.#call("diff", () => this.#values("", variables, options, { before, after }));
  }

  /**
   * A prompt in another dialect (`template`, `prompty`, `sections`, `directive`): `files`, and a `report` of what is lost. With `strict`, a
   * loss is an error. Nothing is written.
   */
  convert(
    id: IdOf<P>,
    to: string,
    options: { name?: string; category?: string; strict?: boolean } = {},
  ): Promise<Document & { files: { path: string; text: string }[]; lossless: boolean }> {
    return this.#call("convert", () => JSON.stringify({ prompt: id, to, ...options }));
  }

  /** The TypeScript module with the types of the prompts, as `cuebook stubs --lang ts` writes it; with `zod`, also schemas. */
  stubs(options: { zod?: boolean } = {}): Promise<string> {
    return this.#call("stubs", () => JSON.stringify(options));
  }

  /** The messages of a text: a line such as `user:` begins one. The text counts as an author's. */
  parseMessages(text: string): Promise<Message[]> {
    return this.#call("parseMessages", () => toJson({ text }, "text"));
  }

  // Items

  /** Runs a tool, or returns the instructions of a directive or the text of knowledge. Every item is verified first. */
  execute(itemType: string, itemId: string, parameters: Variables = {}, options: ActOptions & { dryRun?: boolean } = {}): Promise<Document> {
    const { signal, dryRun = false, ...more } = options;
    return this.#act("execute", { item_type: itemType, item_id: itemId, parameters, dry_run: dryRun, ...more }, signal);
  }

  /** Searches items. `scope` is a type, optionally with a folder: `tool.rye.core.*`. */
  search(query = "", options: ActOptions & { scope?: string } = {}): Promise<Document> {
    const { signal, scope = "directive", ...more } = options;
    return this.#act("search", { query, scope, ...more }, signal);
  }

  /** Reads an item's file; with `destination: "project"`, also copies it. */
  load(itemType: string, itemId: string, options: ActOptions & { destination?: string } = {}): Promise<Document> {
    const { signal, ...more } = options;
    return this.#act("load", { item_type: itemType, item_id: itemId, ...more }, signal);
  }

  /** Checks items and signs their files with your key. The id may be a pattern. */
  sign(itemType: string, itemId: string, options: { source?: string } = {}): Promise<Document> {
    return this.#act("sign", { item_type: itemType, item_id: itemId, source: options.source ?? "project" });
  }

  /** Makes your key, with which `sign` signs, and returns its fingerprint. A key that you have is kept unless `replace` is set. */
  generateKey(options: { owner?: string; replace?: boolean } = {}): Promise<string> {
    return this.#call("generateKey", () => JSON.stringify({ owner: options.owner ?? userInfo().username, replace: options.replace }));
  }

  /** Verifies an item's signature. */
  verify(itemType: string, itemId: string): Promise<Document> {
    return this.#call("verify", () => JSON.stringify({ itemType, itemId }));
  }

  #act(action: string, values: Document, signal?: AbortSignal): Promise<Document> {
    return this.#call("act", () => toJson({ action, arguments: { project_path: this.root, ...values } }, "arguments"), signal);
  }

  // Running

  /** Starts a run of a prompt. Iterate over it for its events; its `result()` is the end. */
  start<Id extends IdOf<P>>(id: Id, ...rest: RenderArguments<P, Id, RenderOptions & RunOptions>): Run<OutputOf<P, Id>> {
    const { signal, replay, record, model, provider, limits, store, unfenced, tools, allow, skills, ...options } = rest[1] ?? {};
    const values = this.#values(id, rest[0] as Variables | undefined, options, {
      ...{ model, provider, limits, store, unfenced, tools, allow, skills },
      ...paths({ replay, record }),
    });
    return new Run<OutputOf<P, Id>>(this.#native, "run", values, signal);
  }

  /** Runs a prompt until it ends. */
  run<Id extends IdOf<P>>(id: Id, ...rest: RenderArguments<P, Id, RenderOptions & RunOptions>): Promise<RunResult<OutputOf<P, Id>>> {
    return settled(() => this.start(id, ...rest).result());
  }

  /** Takes a thread up again, from its log. */
  resume<Output = any>(threadId: string, options: ResumeOptions = {}): Run<Output> {
    const { signal, replay, record, ...more } = options;
    const values = JSON.stringify({ thread: threadId, ...more, ...paths({ replay, record }) });
    return new Run<Output>(this.#native, "resume", values, signal);
  }

  /** The threads of the project, newest first. */
  threads(options: { prompt?: string; most?: number; store?: string } = {}): Promise<Document[]> {
    return this.#call("threads", () => JSON.stringify(options));
  }

  /** The log of a thread. */
  events(threadId: string, options: { store?: string } = {}): Promise<Document[]> {
    return this.#call("events", () => JSON.stringify({ thread: threadId, ...options }));
  }

  /** Stops a thread that any process runs, and those below it. */
  cancel(threadId: string, options: { takeOver?: boolean; store?: string } = {}): Promise<Document> {
    return this.#call("cancelThread", () => JSON.stringify({ thread: threadId, ...options }));
  }

  // Functions of the program

  /** Changes the variables before a prompt is rendered. */
  preRender(id: IdOf<P>, hook: (variables: Record<string, any>, context: HookContext) => Maybe<Record<string, unknown>>): this {
    return this.#registers("preRender", id, hook);
  }

  /** Changes the text after a prompt was rendered. */
  postRender(id: IdOf<P>, hook: (text: string, variables: Record<string, any>, context: HookContext) => Maybe<string>): this {
    return this.#registers("postRender", id, hook);
  }

  /** Gives the variables of a namespace. */
  provider(namespace: string, provide: (context: HookContext) => Maybe<Record<string, unknown>>): this {
    return this.#registers("provider", namespace, provide);
  }

  /** Registers a template engine for `.prompty` files that name it. */
  engine(key: string, render: (template: string, variables: Record<string, any>) => Maybe<string>): this {
    return this.#registers("engine", key, render);
  }

  /** Registers a filter for Jinja2 templates: `{{ value | shout }}`. Arguments that are given by name come last, as one object. */
  filter(name: string, filter: (value: any, ...values: any[]) => unknown): this {
    return this.#registers("filter", name, filter);
  }

  /** Registers a test for Jinja2 templates: `{% if value is short %}`. */
  templateTest(name: string, test: (value: any, ...values: any[]) => Maybe<boolean>): this {
    return this.#registers("test", name, test);
  }

  /** Registers a function for Jinja2 templates: `{{ greeting(name) }}`. */
  function(name: string, callable: (...values: any[]) => unknown): this {
    return this.#registers("function", name, callable);
  }

  /** Registers the function behind a tool, for `Rendered.converse`. It gets one object with the arguments. */
  tool(name: string, tool: ToolFunction): this {
    this.#tools.set(name, tool);
    return this;
  }

  /** Calls a registered tool, and returns the text that a model gets. */
  async callTool(name: string, values: Variables = {}): Promise<string> {
    const tool = this.#tools.get(name);
    if (!tool) {
      const [near] = native.nearest(name, [...this.#tools.keys()]);
      const hint = near === undefined ? `the tools are ${[...this.#tools.keys()].join(", ") || "none"}` : `did you mean \`${near}\`?`;
      throw new InvokerError(`no function is registered for the tool \`${name}\``, { code: "CB730", hint });
    }
    const answer = await tool(values);
    return typeof answer === "string" ? answer : toJson(answer ?? null, `what the tool \`${name}\` returns`);
  }

  #registers(kind: string, name: string, callable: (...values: never[]) => unknown): this {
    const known = this.#functions.filter((one) => one.kind === kind && one.name === name);
    const functions = this.#functions;
    this.#functions = [...functions.filter((one) => !known.includes(one)), { kind, name, number: register(callable) }];
    try {
      this.#native = this.#open();
    } catch (error) {
      this.#functions = functions;
      throw error;
    }
    known.forEach((one) => unregister(one.number));
    return this;
  }

  #values(prompt: string, variables: Variables | undefined, options: RenderOptions | undefined, more: Document = {}): string {
    const head = JSON.stringify({ prompt, context: options && splitContext(options), ...more });
    return `${head.slice(0, -1)},"variables":${variablesToJson(variables) ?? "{}"}}`;
  }

  #call<T>(what: string, values: () => string, signal?: AbortSignal): Promise<T> {
    return settled(() => {
      const text = values();
      return call<T>((number) => host.start(this.#native, number, what, text), { signal });
    });
  }
}

/** What `renderBatch` takes: objects, or a table. */
export type Rows<P, Id extends keyof P> = Iterable<P[Id] extends { input: infer Input } ? Input : Variables> | ArrowTable;

/** The options of `renderBatch`. */
export interface BatchOptions extends RenderOptions {
  /** How many threads render at the same time; by default one for each core. */
  threads?: number;
  /** Stops the batch. */
  signal?: AbortSignal;
}

function isTable(rows: object): rows is ArrowTable {
  return typeof (rows as Partial<ArrowTable>).getChildAt === "function" && typeof (rows as Partial<ArrowTable>).numRows === "number";
}

/** The rows of a table with a type that the native half does not know. */
function* rowsOf(table: ArrowTable): Generator<Variables> {
  const columns = table.schema.fields.map((field, index) => [field.name, table.getChildAt(index)] as const);
  for (let row = 0; row < table.numRows; row++) {
    yield Object.fromEntries(columns.map(([name, column]) => [name, column?.get(row)]));
  }
}

/** How many rows are sent to the other threads at once. */
const MOST_ROWS = 4096;

/** Rows as JSON, some at a time. */
function* parts(rows: Iterable<Variables>): Generator<string[]> {
  let part: string[] = [];
  for (const row of rows) {
    part.push(variablesToJson(row) ?? "{}");
    if (part.length === MOST_ROWS) {
      yield part;
      part = [];
    }
  }
  if (part.length > 0) {
    yield part;
  }
}

/** The options of calls that work on items. */
export interface ActOptions {
  /** Stops the call. */
  signal?: AbortSignal;
  [more: string]: unknown;
}

/** A problem with a call rejects its promise, and is not an exception. */
async function settled<T>(begin: () => Promise<T>): Promise<T> {
  return begin();
}

function paths(given: Record<string, string | undefined>): Document {
  return Object.fromEntries(Object.entries(given).map(([name, path]) => [name, path === undefined ? undefined : resolve(path)]));
}
