/**
 * Cuebook: a prompt engine in which every rendered character knows where it came from.
 *
 * @packageDocumentation
 */

import { native } from "./native.js";

export { Book, Report, type ActOptions, type BatchOptions, type BookOptions, type HookContext, type Rows } from "./book.js";
export type { AnthropicBody, GoogleGenAIArguments, OpenAIBody, OpenAIResponsesBody, Wire } from "./bodies.js";
export * from "./errors.js";
export { Rendered, wires, type ConverseOptions, type Conversation, type ToolFunction } from "./rendered.js";
export { Run, RunResult, type ResumeOptions, type RunEvent, type RunOptions, type ThreadOptions } from "./runs.js";
export type { ArrowTable } from "./tables.js";
export type * from "./types.js";

/** The version of the package. */
export const version: string = native.version();
