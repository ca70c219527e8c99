// The bodies of requests, in the types of the providers' clients. The package for WebAssembly has this file, too.

import type { DiagnosticFields } from "./errors.js";

/** The body of a request: an object that a provider's client takes unchanged. */
export type Wire<Body = Record<string, any>> = Body & {
  /** What the body leaves out, and why. Not enumerable, so that it is not sent. */
  readonly notes: DiagnosticFields[];
};

/** The body for `openai.chat.completions.create(body)`. */
export interface OpenAIBody {
  model: string;
  messages: any[];
  tools?: any[];
  response_format?: any;
  temperature?: number;
  max_tokens?: number;
  stream?: false;
}

/** The body for `openai.responses.create(body)`. */
export interface OpenAIResponsesBody {
  model: string;
  input: any[];
  tools?: any[];
  stream?: false;
}

/** The body for `anthropic.messages.create(body)`. */
export interface AnthropicBody {
  model: string;
  max_tokens: number;
  messages: any[];
  system?: any;
  tools?: any[];
  stream?: false;
}

/** The argument of `genai.models.generateContent(argument)`. */
export interface GoogleGenAIArguments {
  model: string;
  contents: any[];
  config: Record<string, any>;
}
