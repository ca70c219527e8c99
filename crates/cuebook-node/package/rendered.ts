// A rendered prompt: its text, and where every character came from.

import { call, host, native, register, unregister } from "./native.js";
import { UsageError, type DiagnosticFields } from "./errors.js";
import { thrown } from "./failures.js";
import { toJson } from "./values.js";
import type { AnthropicBody, GoogleGenAIArguments, OpenAIBody, OpenAIResponsesBody, Wire } from "./bodies.js";
import type { Document, Found, Message, Reply, Segment, Span, Tokens, ToolDefinition } from "./types.js";

/** A function behind a tool. It gets one object with the arguments. */
export type ToolFunction = (values: any) => unknown;

/** The options of `Rendered.converse`. */
export interface ConverseOptions {
  /** The interface: `openai` by default, or that of the prompt's provider. */
  api?: string;
  /** Functions behind tools, besides those of the book. */
  tools?: Record<string, ToolFunction>;
  /** The most requests. */
  mostTurns?: number;
  /** Stops the conversation before its next request. */
  signal?: AbortSignal;
}

/** The end of a conversation. */
export interface Conversation {
  /** The model's last answer: a text, or the outputs of the prompt. */
  result: any;
  /** How many requests there were. */
  turns: number;
  messages: Message[];
}

const GENAI = "google-genai";

function wireName(api: string | undefined): string | undefined {
  return api === GENAI ? "gemini" : api;
}

/** A rendered prompt. */
export class Rendered {
  /** The text. */
  readonly text: string;
  /** @internal */
  readonly number: number;
  readonly #tools: ReadonlyMap<string, ToolFunction> | undefined;
  #spans: Span[] | undefined;

  /** @internal */
  constructor(number: number, tools: ReadonlyMap<string, ToolFunction> | undefined, render: (rendered: Rendered) => string) {
    this.number = number;
    this.#tools = tools;
    this.text = render(this);
  }

  #read<T>(what: string, argument?: string): T {
    try {
      return JSON.parse(host.read(this.number, what, argument)) as T;
    } catch (error) {
      throw thrown(error);
    }
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

  /**
   * The body for OpenAI's chat API, whichever model is asked.
   *
   * @internal
   */
  chat(): OpenAIBody {
    return this.#read("chat");
  }

  /**
   * The functions of the book behind tools.
   *
   * @internal
   */
  get functions(): ReadonlyMap<string, ToolFunction> {
    return this.#tools ?? new Map();
  }

  /** The tokens of the request, counted for a model; by default the prompt's own. */
  tokens(model?: string): Promise<Tokens> {
    return call<Tokens>((number) => host.tokens(this.number, number, model));
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
    try {
      return JSON.parse(host.readReply(this.number, wireName(api), toJson(response, "response"))) as Reply;
    } catch (error) {
      throw thrown(error);
    }
  }

  /**
   * Asks a model until it answers, and runs the functions behind the tools that it calls.
   *
   * `ask` gets the body of a request and returns the response: `(body) => openai.chat.completions.create(body)`. The tools are those of the
   * book (`book.tool`) and the given ones. A model learns of an exception of a tool, and the conversation goes on.
   */
  async converse(ask: (body: any) => unknown, options: ConverseOptions = {}): Promise<Conversation> {
    const { api, mostTurns = 10, signal } = options;
    if (api === GENAI) {
      throw new UsageError("`converse` has no interface `google-genai`", { code: "CB407", hint: "use `gemini`, whose bodies are plain" });
    }
    const asked = async (body: unknown): Promise<unknown> => {
      signal?.throwIfAborted();
      return ask(body);
    };
    const all = new Map([...(this.#tools ?? []), ...Object.entries(options.tools ?? {})]);
    const numbers = { ask: register(asked), tools: {} as Record<string, number> };
    for (const [name, tool] of all) {
      numbers.tools[name] = register(tool);
    }
    try {
      const values = JSON.stringify({ api, mostTurns, ...numbers });
      return await call<Conversation>((number) => host.converse(this.number, number, values));
    } catch (error) {
      // What `ask` threw is worth more than the words for it.
      signal?.throwIfAborted();
      throw error instanceof Error && error.cause instanceof Error && isOfAsk(error) ? error.cause : error;
    } finally {
      [numbers.ask, ...Object.values(numbers.tools)].forEach(unregister);
    }
  }
}

/** Whether an error says that the function that asks failed. */
function isOfAsk(error: Error): boolean {
  return (error as { code?: string }).code === "CB722";
}

/** The names of the interfaces that `wire` knows. */
export function wires(): string[] {
  return native.wires();
}

function found(one: Found): Found {
  const labels = new Set(one.pieces.map((piece) => piece.label));
  return { ...one, label: [...labels].join(", ") };
}
