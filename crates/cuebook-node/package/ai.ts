/**
 * The AI SDK: what `generateText` and `streamText` take, made from a rendered prompt.
 *
 * @packageDocumentation
 */

import type { Rendered, ToolFunction } from "./rendered.js";

/** The functions of the package `ai` that are needed: pass all of it, as in `import * as ai from "ai"`. */
export interface AiSdk {
  jsonSchema(schema: any): any;
  tool(definition: any): any;
  Output: { object(options: { schema: any }): any };
}

/** The options of `aiSdk`. */
export interface AiSdkOptions {
  /** Functions behind tools, besides those of the book. A tool without one is left to the caller. */
  tools?: Record<string, ToolFunction>;
}

/** What `generateText` and `streamText` take besides the model. */
export interface AiSdkArguments {
  messages: any[];
  system?: string;
  tools?: any;
  /** For `output`, if the prompt declares outputs. */
  output?: any;
  temperature?: number;
  maxOutputTokens?: number;
  topP?: number;
  seed?: number;
  stopSequences?: string[];
  frequencyPenalty?: number;
  presencePenalty?: number;
}

/**
 * What `generateText` and `streamText` of the AI SDK take besides the model.
 *
 * ```ts
 * import * as ai from "ai";
 * import { aiSdk } from "cuebook/ai";
 *
 * const { text } = await ai.generateText({ model, ...aiSdk(rendered, ai) });
 * ```
 */
export function aiSdk(rendered: Rendered, ai: AiSdk, options: AiSdkOptions = {}): AiSdkArguments {
  const body = rendered.chat() as Record<string, any> & { messages: ChatMessage[] };
  const first = body.messages.findIndex((message) => !isSystem(message));
  const system = first < 0 ? body.messages : body.messages.slice(0, first);
  const made: AiSdkArguments = { messages: messages(body.messages.slice(system.length)) };
  if (system.length > 0) {
    made.system = system.map((message) => textOf(message.content)).join("\n\n");
  }
  if (body["tools"]) {
    made.tools = tools(body["tools"] as ChatTool[], ai, new Map([...rendered.functions, ...Object.entries(options.tools ?? {})]));
  }
  const schema: unknown = body["response_format"]?.json_schema?.schema;
  if (schema) {
    made.output = ai.Output.object({ schema: ai.jsonSchema(schema) });
  }
  for (const [name, ours] of Object.entries(SETTINGS)) {
    if (body[name] !== undefined) {
      Object.assign(made, { [ours]: name === "stop" && typeof body[name] === "string" ? [body[name]] : body[name] });
    }
  }
  return made;
}

/** Settings of a request, and how the AI SDK calls them. */
const SETTINGS = {
  temperature: "temperature",
  max_tokens: "maxOutputTokens",
  max_completion_tokens: "maxOutputTokens",
  top_p: "topP",
  seed: "seed",
  stop: "stopSequences",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "presencePenalty",
} as const;

interface ChatMessage {
  role: string;
  content: string | Record<string, any>[] | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

interface ChatTool {
  type: string;
  function?: { name: string; description?: string; parameters?: object };
}

function isSystem(message: ChatMessage): boolean {
  return message.role === "system" || message.role === "developer";
}

function textOf(content: ChatMessage["content"]): string {
  return typeof content === "string" ? content : (content ?? []).map((part) => String(part["text"] ?? "")).join("");
}

function messages(all: ChatMessage[]): object[] {
  const toolNames = new Map<string, string>();
  return all.map((message) => {
    if (isSystem(message)) {
      return { role: "system", content: textOf(message.content) };
    }
    if (message.role === "tool") {
      const id = message.tool_call_id ?? "";
      const output = { type: "text", value: textOf(message.content) };
      return { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: toolNames.get(id) ?? "", output }] };
    }
    const content: object[] = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? []).map(part);
    for (const call of message.tool_calls ?? []) {
      toolNames.set(call.id, call.function.name);
      content.push({ type: "tool-call", toolCallId: call.id, toolName: call.function.name, input: JSON.parse(call.function.arguments) });
    }
    return { role: message.role, content: typeof message.content === "string" && content.length === 1 ? message.content : content };
  });
}

function part(given: Record<string, any>): object {
  switch (given["type"]) {
    case "image_url":
      return { type: "image", image: given["image_url"].url };
    case "input_audio":
      return { type: "file", data: given["input_audio"].data, mediaType: `audio/${given["input_audio"].format === "mp3" ? "mpeg" : given["input_audio"].format}` };
    case "file": {
      const { file_data, filename } = given["file"] as { file_data: string; filename?: string };
      const [, mediaType = "application/octet-stream", data = file_data] = /^data:([^;,]+);base64,(.*)$/s.exec(file_data) ?? [];
      return { type: "file", data, mediaType, ...(filename === undefined ? {} : { filename }) };
    }
    default:
      return given;
  }
}

function tools(given: ChatTool[], ai: AiSdk, functions: ReadonlyMap<string, ToolFunction>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const { function: declared } of given) {
    if (declared) {
      const execute = functions.get(declared.name);
      made[declared.name] = ai.tool({
        description: declared.description,
        inputSchema: ai.jsonSchema(declared.parameters ?? { type: "object", properties: {} }),
        ...(execute ? { execute: async (values: unknown) => execute(values) } : {}),
      });
    }
  }
  return made;
}
