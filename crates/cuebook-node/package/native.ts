// The native half of the package, and how its threads reach this one.

import { existsSync } from "node:fs";
import { join } from "node:path";

/** The prompts of a project, as the native half holds them. */
export interface NativeBook {
  readonly _native: never;
}

/** A batch of a table, as the native half holds it. */
export interface NativeTable {
  append(buffer: number, bytes: Uint8Array): void;
  describe(description: string): void;
}

interface Host {
  open(options: string): NativeBook;
  render(
    book: NativeBook,
    object: object,
    number: number,
    prompt: string,
    variables: string | undefined,
    context: string | undefined,
    isPath: boolean,
    allowUnknown: boolean,
  ): string;
  renderLater(book: NativeBook, number: number, values: string): void;
  adopt(object: object, number: number): string;
  start(book: NativeBook, number: number, call: string, values: string): void;
  renderTable(book: NativeBook, number: number, table: NativeTable, values: string): void;
  performNow(book: NativeBook, call: string, values: string): string;
  run(book: NativeBook, number: number, call: string, values: string): void;
  tokens(render: number, number: number, model: string | undefined): void;
  converse(render: number, number: number, values: string): void;
  answer(call: number, answer: string): void;
  cancel(number: number): void;
  read(number: number, what: string, argument?: string): string;
  readReply(number: number, api: string | undefined, response: string): string;
  count(): number;
  close(): void;
}

interface Native {
  Host: new (receive: (kind: number, number: number, text: string) => void, callNow: (text: string) => string) => Host;
  NativeTable: new () => NativeTable;
  version(): string;
  nearest(wanted: string, names: string[]): string[];
  wires(): string[];
}

/** The folder of the compiled parts: the addon and the command. */
const folder = join(__dirname, "..", "native");

/** The command `cuebook` of this package. It also starts sandboxed hooks. */
export const command = join(folder, process.platform === "win32" ? "cuebook.exe" : "cuebook");

function load(): Native {
  const file = join(folder, "cuebook.node");
  if (!existsSync(file)) {
    throw new Error(
      `cuebook has no compiled part for ${process.platform}-${process.arch}: ${file} is missing. ` +
        "Build the package on this kind of machine, or install one that was.",
    );
  }
  // A constant in a bundle would be searched at build time.
  return require(file) as Native;
}

export const native = load();

// As in `port.rs`.
const DONE = 0;
const FAILED = 1;
const CALL = 2;
const EVENT = 3;

/** A caller that waits. */
interface Waiting {
  done(text: string): void;
  failed(text: string): void;
  event?(text: string): void;
}

const waiting = new Map<number, Waiting>();
let last = 0;

/** A number for a render or a call. No number is used twice. */
export function nextNumber(): number {
  return ++last;
}

// The function of the native half does not keep the event loop alive, because it exists for as long as the package does. This timer does,
// while something is waited for.
let keepAlive: NodeJS.Timeout | undefined;

function wait(number: number, who: Waiting): void {
  if (waiting.size === 0) {
    keepAlive ??= setInterval(() => {}, 0x7fffffff);
    keepAlive.ref();
  }
  waiting.set(number, who);
}

function forget(number: number): void {
  waiting.delete(number);
  if (waiting.size === 0) {
    keepAlive?.unref();
  }
}

/** Functions of the program by number, for the native half. */
const functions = new Map<number, (...values: unknown[]) => unknown>();

/** Gives a function a number. */
export function register(callable: (...values: never[]) => unknown): number {
  const number = nextNumber();
  functions.set(number, callable as (...values: unknown[]) => unknown);
  return number;
}

/** Takes the number of a function back. */
export function unregister(number: number): void {
  functions.delete(number);
}

/** Exceptions of functions, until the error that each leads to is made. */
const causes = new Map<number, unknown>();
/** More than this many exceptions that led to no error are forgotten. */
const MOST_CAUSES = 1000;

function keepCause(cause: unknown): number {
  const number = nextNumber();
  causes.set(number, cause);
  if (causes.size > MOST_CAUSES) {
    causes.delete(causes.keys().next().value as number);
  }
  return number;
}

/** The exception of a number, once. */
export function takeCause(number: number): unknown {
  const cause = causes.get(number);
  causes.delete(number);
  return cause;
}

interface Call {
  function: number;
  what: string;
  now: boolean;
  arguments: unknown[];
}

function raised(error: unknown): string {
  const words = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return JSON.stringify({ raised: words, cause: keepCause(error) });
}

function returned(call: Call, value: unknown): string {
  const { toJson } = require("./values.js") as typeof import("./values.js");
  try {
    return `{"value":${value === undefined ? "null" : toJson(value, `what ${call.what} returns`)}}`;
  } catch (error) {
    return raised(error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Calls a function at once, for a render in this thread. */
function callNow(text: string): string {
  const call = JSON.parse(text) as Call;
  try {
    const value = functions.get(call.function)!(...call.arguments);
    if (isPromise(value)) {
      // Nothing waits for it, and its failure has no other reader.
      value.then(undefined, () => {});
      throw new TypeError(`${call.what} returned a promise, which \`render\` does not wait for: use \`await book.renderAsync(...)\``);
    }
    return returned(call, value);
  } catch (error) {
    return raised(error);
  }
}

async function callLater(number: number, text: string): Promise<void> {
  const call = JSON.parse(text) as Call;
  let answer: string;
  try {
    answer = returned(call, await functions.get(call.function)!(...call.arguments));
  } catch (error) {
    answer = raised(error);
  }
  host.answer(number, answer);
}

function receive(kind: number, number: number, text: string): void {
  if (kind === CALL) {
    void callLater(number, text);
    return;
  }
  const who = waiting.get(number);
  if (kind === EVENT) {
    who?.event?.(text);
    return;
  }
  forget(number);
  if (kind === DONE) {
    who?.done(text);
  } else if (kind === FAILED) {
    who?.failed(text);
  }
}

export const host = new native.Host(receive, callNow);
// A run that goes on while the process ends could not write its log.
process.once("exit", () => host.close());

/** Makes a call in another thread. `begin` starts it under the number that it gets. */
export function call<T>(begin: (number: number) => void, options: { signal?: AbortSignal | undefined; event?: (text: string) => void } = {}): Promise<T> {
  const { fromNative } = require("./failures.js") as typeof import("./failures.js");
  const { signal, event } = options;
  return new Promise<T>((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const number = nextNumber();
    const stop = (): void => host.cancel(number);
    const end = (): void => signal?.removeEventListener("abort", stop);
    const who: Waiting = {
      done(text) {
        end();
        resolve(JSON.parse(text) as T);
      },
      failed(text) {
        end();
        reject(signal?.aborted ? (signal.reason as Error) : fromNative(JSON.parse(text)));
      },
    };
    if (event) {
      who.event = event;
    }
    wait(number, who);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      begin(number);
    } catch (error) {
      forget(number);
      end();
      reject(error as Error);
    }
  });
}
