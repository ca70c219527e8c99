// A rendered prompt: its text, and where every character came from.

import type { AnthropicBody, GoogleGenAIArguments, OpenAIBody, OpenAIResponsesBody, Wire } from "./bodies.js";
import type { DiagnosticFields } from "./errors.js";
import type { Module } from "./module.js";
import type { Document, Found, Message, Reply, Segment, Span, ToolDefinition } from "./types.js";
import { toJson } from "./values.js";

const GENAI = "google-genai";

function wireName(api: string | undefined): string | undefined {
  return api === GENAI ? "gemini" : api;
}

/** A rendered prompt. */
export class Rendered {
  /** The text. */
  readonly text: string;
  readonly #module: Module;
  readonly #number: number;
  readonly #again: () => string;
  #spans: Span[] | undefined;

  /** @internal */
  constructor(module: Module, number: number, text: string, again: () => string) {
    this.#module = module;
    this.#number = number;
    this.text = text;
    this.#again = again;
  }

  #ask<T>(request: Document): T {
    const text = toJson({ ...request, number: this.#number }, "response");
    let answer = this.#module.call(text);
    if (answer === undefined) {
      // The module keeps only the latest renders. The same call with the same time and number gives the same render.
      this.#again();
      answer = this.#module.call(text);
    }
    return JSON.parse(answer!) as T;
  }

  #read<T>(what: string, argument?: string): T {
    return this.#ask({ call: "read", what, argument });
  }

  toString(): string {
    return this.text;
  }

  /** The text and its origins, for other processes. */
  toJSON(): Document {
    return { promptId: this.promptId, text: this.text, spans: this.spans };
  }

  /** The id of the prompt. */
  get promptId(): string {
    return this.#read("promptId");
  }

  /** The model that is asked. */
  get model(): string | null {
    return this.#read("model");
  }

  /** The parts of the text, in order, each with its origin. */
  get spans(): readonly Span[] {
    return (this.#spans ??= this.#read<Omit<Span, "text" | "kind">[]>("spans").map((span) => ({
      start: span.start,
      end: span.end,
      text: this.text.slice(span.start, span.end),
      kind: span.origin.kind,
      label: span.label,
      origin: span.origin,
      section: span.section,
    })));
  }

  /** The tools that the model may call. */
  get tools(): ToolDefinition[] {
    return this.#read("tools");
  }

  /** What is worth knowing about the render. */
  get notes(): DiagnosticFields[] {
    return this.#read("notes");
  }

  /** The messages of the conversation. */
  messages(): Message[] {
    return this.#read("messages");
  }

  /** Author's text and values, in order. */
  segments(): Segment[] {
    return this.#read("segments");
  }

  /**
   * The body of a request for `openai`, `anthropic`, `gemini` or another interface; by default the prompt's own. `google-genai` is the body
   * for `gemini` in the form of that client: the argument of `genai.models.generateContent`.
   */
  wire(api: "openai"): Wire<OpenAIBody>;
  wire(api: "openai-responses"): Wire<OpenAIResponsesBody>;
  wire(api: "anthropic"): Wire<AnthropicBody>;
  wire(api: "google-genai"): Wire<GoogleGenAIArguments>;
  wire(api?: string): Wire;
  wire(api?: string): Wire {
    const { body, notes } = this.#read<{ body: Document; notes: DiagnosticFields[] }>("wire", wireName(api));
    const made = api === GENAI ? this.#genai(body) : body;
    return Object.defineProperty(made, "notes", { value: notes }) as Wire;
  }

  #genai(body: Document): Document {
    // The client has one object for what the interface has in several places.
    const { model: _, contents, generationConfig, ...config } = body;
    return { model: this.model, contents, config: { ...(generationConfig as object | undefined), ...config } };
  }

  /** Which file was chosen and why, and every variable with its value and layer. */
  explanation(): Document {
    return this.#read("explanation");
  }

  /** Where the character at an offset came from. A negative offset counts from the end. */
  explain(offset: number): Found {
    const at = offset < 0 ? offset + this.text.length : offset;
    if (!Number.isInteger(at) || at < 0 || at >= this.text.length) {
      throw new RangeError(`the text has ${this.text.length} characters, and none at ${offset}`);
    }
    return found(this.#read("explain", String(at)));
  }

  /** Where every occurrence of a text came from. A text that does not occur is an error. */
  find(text: string): Found[] {
    return this.#read<Found[]>("find", text).map(found);
  }

  /** What a provider's response says: its text, its outputs, or the tools that it calls. */
  readReply(response: unknown, api?: string): Reply {
    return this.#ask({ call: "reply", response, api: wireName(api) });
  }
}

function found(one: Found): Found {
  const labels = new Set(one.pieces.map((piece) => piece.label));
  return { ...one, label: [...labels].join(", ") };
}
