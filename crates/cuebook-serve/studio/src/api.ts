// Calls of the server. Each is a POST request with the token from the address.

import type { FromLine, ToLine } from "./line";
import { Slot } from "./slot";

export interface Failure {
  message: string;
  code?: string;
  file?: string;
  line?: number;
  column?: number;
  range?: [number, number];
  excerpt?: string;
  hint?: string;
  [detail: string]: unknown;
}

export class CallError extends Error {
  constructor(readonly failure: Failure, readonly status: number) {
    super(failure.message);
  }
}

const KEY = "cuebook-token";

/** Takes the token out of the address, so that it is not copied by accident, and keeps it for this tab. */
export function takeToken(): boolean {
  const hash = new URLSearchParams(location.hash.slice(1));
  const token = hash.get("token");
  if (token) {
    sessionStorage.setItem(KEY, token);
    hash.delete("token");
    history.replaceState(null, "", `#${hash}`);
  }
  return token !== null || sessionStorage.getItem(KEY) !== null;
}

export const token = () => sessionStorage.getItem(KEY) ?? "";

export async function call<T>(name: string, argument: unknown = {}, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token()}`, "Content-Type": "application/json" },
      body: JSON.stringify(argument),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CallError({ message: "the studio does not answer; is `cuebook studio` still running?" }, 0);
  }
  const document = await response.json();
  if (!response.ok) {
    throw new CallError(document.error ?? { message: `the server answered ${response.status}` }, response.status);
  }
  return document as T;
}

interface Asked { id: number; text: string; done: (document: unknown) => void; failed: (error: CallError) => void; lost: () => void }

/**
 * A web socket for what is asked at every key, and for calls that wait. Its answers arrive some milliseconds sooner than those of `call`,
 * and a call that waits takes none of the six connections that a browser opens to the server for all tabs. A worker has it (`line.ts`).
 */
class Live {
  private worker: Worker | null = null;
  private slot: Slot | null = null;
  private state: "closed" | "opening" | "open" = "closed";
  private opened: Promise<boolean> = Promise.resolve(false);
  private settle: (isOpen: boolean) => void = () => {};
  private last = 0;
  private sent = new Map<number, Asked>();
  /** Of the calls at every key, the server works on one at a time. One that has not been sent when another comes is dropped for that one. */
  private key: number | null = null;
  private next: Asked | null = null;

  /** Whether a call would be sent now. Opens the socket if there is none. */
  isOpen(): boolean {
    if (this.state === "closed") this.open();
    return this.state === "open";
  }

  /** Waits until calls can be sent; false if they cannot. */
  async ready(): Promise<boolean> {
    return this.isOpen() || this.opened;
  }

  ask<T>(name: string, argument: unknown, at: "key" | "once", lost: () => void): Promise<T> {
    return new Promise<T>((done, failed) => {
      const id = ++this.last, text = JSON.stringify({ id, call: name, arguments: argument });
      const asked = { id, text, done: done as (document: unknown) => void, failed, lost };
      if (at === "once") return this.send(asked);
      this.next?.lost();
      this.next = asked;
      this.sendKey();
      // In the frame that shows the key.
      requestAnimationFrame(() => this.look());
    });
  }

  private sendKey() {
    if (this.key !== null || !this.next) return;
    this.key = this.next.id;
    this.send(this.next);
    this.next = null;
  }

  private send(asked: Asked) {
    this.sent.set(asked.id, asked);
    this.post({ text: asked.text });
  }

  private post(message: ToLine) {
    this.worker?.postMessage(message);
  }

  private open() {
    this.state = "opening";
    this.opened = new Promise((done) => (this.settle = done));
    if (!this.worker) {
      this.worker = new Worker("/line.js");
      this.worker.onmessage = ({ data }: MessageEvent<FromLine>) => this.hear(data);
      this.worker.onerror = () => {
        this.worker = null;
        this.closed();
      };
      if (crossOriginIsolated) this.slot = new Slot();
    }
    this.post({ url: `ws://${location.host}/api/live`, protocols: ["cuebook", token()], buffer: this.slot?.buffer ?? null });
  }

  private hear(message: FromLine) {
    this.look();
    if (message.event === "open") {
      this.state = "open";
      this.settle(true);
    } else if (message.event === "closed") this.closed();
    else if (message.text !== undefined) this.receive(message.text);
  }

  /** Takes the answer out of the slot, if there is one. */
  private look() {
    const answer = this.slot?.take();
    if (answer) this.receive(answer);
  }

  private receive(answer: string) {
    const { id, document, error } = JSON.parse(answer);
    const asked = this.sent.get(id);
    this.sent.delete(id);
    if (id === this.key) {
      this.key = null;
      this.sendKey();
    }
    if (error) asked?.failed(new CallError(error, 422));
    else asked?.done(document);
  }

  private closed() {
    const left = [...this.sent.values(), this.next];
    this.sent.clear();
    this.key = this.next = null;
    this.state = "closed";
    this.settle(false);
    for (const asked of left) asked?.lost();
  }
}

const live = new Live();

/** A call that the user waits for at every key. */
export function callLive<T>(name: string, argument: unknown, signal: AbortSignal): Promise<T> {
  if (!live.isOpen()) return call<T>(name, argument, signal);
  return new Promise<T>((done, failed) => {
    // The socket broke, or a newer call has taken its place.
    const lost = () => void call<T>(name, argument, signal).then(done, failed);
    live.ask<T>(name, argument, "key", lost).then(done, failed);
  });
}

/** A call whose answer can take many seconds. */
export async function callWaiting<T>(name: string, argument: unknown, signal?: AbortSignal): Promise<T> {
  if (!(await live.ready())) return call<T>(name, argument, signal);
  return new Promise<T>((done, failed) => {
    const lost = () => void call<T>(name, argument, signal).then(done, failed);
    signal?.addEventListener("abort", () => failed(signal.reason));
    live.ask<T>(name, argument, "once", lost).then(done, failed);
  });
}

export interface CommandResult<T> {
  code: number;
  document: T;
  said: string;
}

/** Runs a command of the command line with `--json`. */
export async function command<T>(
  words: string,
  operands: string[] = [],
  options: Record<string, string | number | boolean | string[]> = {},
  values?: Record<string, unknown>,
): Promise<CommandResult<T>> {
  const given = values === undefined ? options : { ...options, vars: "-" };
  const result = await call<CommandResult<T>>("command", { command: words, arguments: operands, options: given, values });
  // A command that reports its steps prints its result last.
  if (Array.isArray(result.document) && /^(run|thread (resume|fork))$/.test(words)) result.document = result.document.at(-1);
  const error = (result.document as { status?: string; error?: Failure } | null)?.error;
  if (result.code !== 0 && error && typeof error === "object" && "message" in error) throw new CallError(error, 422);
  return result;
}
