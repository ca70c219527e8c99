// Types of values, prompts and documents.

/** The values of variables by name. Text, numbers, booleans, null, lists, objects, Maps, Sets, Dates and typed arrays can be printed. */
export type Variables = Readonly<Record<string, unknown>>;

/** What is known about a prompt: the types of its variables and of its outputs. `cuebook stubs --lang ts` writes it. */
export interface PromptTypes {
  input: object;
  output: unknown;
}

/** Prompts by id. */
export type PromptMap = { [id: string]: PromptTypes };

/** The map of a project without types: every id, with any variables. */
export interface AnyPrompts {
  [id: string]: { input: Variables; output: any };
}

/** The ids of a map. */
export type IdOf<P> = keyof P & string;

type InputOf<P, Id extends keyof P> = P[Id] extends { input: infer Input } ? Input : Variables;

/** The outputs of a prompt. */
export type OutputOf<P, Id extends keyof P> = P[Id] extends { output: infer Output } ? Output : any;

/** The arguments after an id: variables, which need not be given if all of them are optional, and options. */
export type RenderArguments<P, Id extends keyof P, Options> =
  {} extends InputOf<P, Id>
    ? [variables?: InputOf<P, Id> | undefined, options?: Options]
    : [variables: InputOf<P, Id>, options?: Options];

/** Who renders a prompt: an agent of the program. */
export interface AgentContext {
  id?: string;
  name?: string;
  prompt_id?: string;
  model?: string;
  language?: string;
  variables?: Variables;
  [more: string]: unknown;
}

/** What a caller says about a render besides its variables. */
export interface Context {
  /** The agent that the prompt is for. */
  agent?: AgentContext;
  /** Another model than the prompt's own. */
  model?: string;
  /** The language of the text, such as `de`. */
  language?: string;
  session?: Record<string, unknown>;
  sessionId?: string;
  sessionState?: Record<string, unknown>;
  /** The folder that hooks work in. */
  workspacePath?: string;
  /** Refuse values that look like role markers in every input. */
  strict?: boolean;
  /** Sections of a tree by path, such as `{"rules.tone": "summary"}`. */
  visibility?: Record<string, "full" | "summary">;
  overridesTag?: string;
  /** The most tokens that a section tree may have. */
  fit?: number;
  /** Do not run hooks and providers. */
  withoutHooks?: boolean;
  /** The user's message, for a prompt that has one. */
  message?: string;
}

/** The options of a render. */
export interface RenderOptions extends Context {
  /** Ignore variables that the prompt does not have, instead of refusing them. */
  allowUnknown?: boolean;
}

/** A message of a conversation, as `cuebook render --as messages` prints it. */
export interface Message {
  role: string;
  /** Its parts: texts, pictures and other media. */
  content: { kind: string; value: any; [more: string]: any }[];
  [more: string]: any;
}

/** A tool that a model may call. */
export interface ToolDefinition {
  name: string;
  description?: string;
  [more: string]: any;
}

/** Where a part of a text came from. */
export interface Origin {
  /** `literal`, `value`, `rich`, `hook` or `frame`. */
  kind: "literal" | "value" | "rich" | "hook" | "frame";
  /** The author's file. */
  file?: string;
  /** The line in the author's file, from 1. */
  line?: number;
  /** The variables whose values it shows. */
  variables?: { path: string; layer?: string; [more: string]: unknown }[];
  [more: string]: unknown;
}

/** A part of a text with one origin. Offsets are those of `String`: `text.slice(span.start, span.end)` is its text. */
export interface Span {
  start: number;
  end: number;
  text: string;
  kind: Origin["kind"];
  /** The origin in a few words: a file and line, or a variable and its layer. */
  label: string;
  /** Everything about the origin. */
  origin: Origin;
  /** The section of a tree that it is in. */
  section: string | null;
}

/** A part of a found text with one origin. */
export interface Piece {
  start: number;
  end: number;
  text: string;
  label: string;
  origin: Origin;
  /** The author's place. */
  source?: { file: string; line: number; column: number; excerpt: string } | null;
  section?: string | null;
  pack_id?: string | null;
  signature?: string | null;
}

/** A place in a text, and where its characters came from. */
export interface Found {
  start: number;
  end: number;
  line: number;
  column: number;
  text: string;
  pieces: Piece[];
  /** The origins in a few words. */
  label: string;
}

/** Author's text (`literal`) or a value (`interp`). */
export interface Segment {
  kind: "literal" | "interp";
  text: string;
  source: string | null;
  strict: boolean;
}

/** The tokens of a request. */
export interface Tokens {
  total: number;
  /** Whether the count is that of the model, and no estimate. */
  exact: boolean;
  model: string | null;
  /** Why the count is an estimate, if it is one. */
  estimates: string[];
  [more: string]: any;
}

/** What a provider's response says. */
export interface Reply {
  kind: "text" | "tool_calls" | "structured" | "refusal" | "media";
  /** The text, the list of calls, the outputs, or the media. */
  value: any;
  thinking: string | null;
  /** Why the model stopped, in the provider's words. */
  finish: string | null;
  model: string | null;
}

/** One line of `book.list()`. */
export interface Listing {
  id: string;
  name: string | null;
  type: string | null;
  dialect: string | null;
  version: string | null;
  tags: string[];
  description: string | null;
  /** The chosen place; null while there is a conflict. */
  source: string | null;
  pack_id: string | null;
  conflict: boolean;
  [more: string]: unknown;
}

/** The outcome of a test case. */
export interface CaseResult {
  case: string;
  passed: boolean;
  failures?: { line: number; message: string; [more: string]: any }[];
  [more: string]: unknown;
}

/** The outcomes of a file of cases: its `cases`, or the `error` that it has. */
export interface CaseFileResult {
  prompt: string;
  file: string;
  cases?: CaseResult[];
  error?: { code: string; message: string; report: string; [more: string]: unknown };
}

/** A document that the command line prints with `--json`. */
export type Document = Record<string, any>;
