/**
 * MCP's TypeScript SDK: reach the server of the command line with a client, or offer prompts in a server of your program.
 *
 * @packageDocumentation
 */

import type { Book } from "./book.js";
import { CuebookError, UsageError } from "./errors.js";
import { command } from "./native.js";
import type { Message } from "./types.js";

/** What `StdioClientTransport` takes. */
export interface ServerCommand {
  command: string;
  args: string[];
}

/**
 * The command that serves a project, for `new StdioClientTransport(mcpCommand("my-prompts"))`. `allow` names the tools that a client may run.
 */
export function mcpCommand(project: string, options: { allow?: string[] } = {}): ServerCommand {
  return { command, args: ["mcp", "--root", project, ...(options.allow ?? []).flatMap((pattern) => ["--allow", pattern])] };
}

/** The schemas of requests: pass all of `import * as types from "@modelcontextprotocol/sdk/types.js"`. */
export interface McpTypes {
  ListPromptsRequestSchema: any;
  GetPromptRequestSchema: any;
}

/** A server: `new Server(info, { capabilities: { prompts: {} } })`, or the `server` of an `McpServer`. */
export interface McpLowLevelServer {
  setRequestHandler(schema: any, handler: any): void;
}

/** Offers the prompts of a book, all of them or those of some ids, in a server of your program. */
export function servePrompts(server: McpLowLevelServer, types: McpTypes, book: Book<any>, ids?: string[]): void {
  const offered = (id: string): boolean => ids?.includes(id) ?? true;
  server.setRequestHandler(types.ListPromptsRequestSchema, async () => {
    const listed = (await book.list()).filter((prompt) => offered(prompt.id) && !prompt.conflict && prompt.source !== null);
    return { prompts: await Promise.all(listed.map((prompt) => describe(book, prompt.id, prompt.description ?? prompt.name))) };
  });
  server.setRequestHandler(types.GetPromptRequestSchema, async (request: { params: { name: string; arguments?: Record<string, string> } }) => {
    const { name, arguments: values } = request.params;
    if (!offered(name)) {
      throw new UsageError(`the server does not offer the prompt \`${name}\``, { code: "CB407", hint: "`prompts/list` has those that it offers" });
    }
    try {
      const rendered = await book.renderAsync(name, values ?? {});
      return { messages: rendered.messages().flatMap(message) };
    } catch (error) {
      // A client sees the message of an error and nothing else.
      throw error instanceof CuebookError ? new Error(error.report) : error;
    }
  });
}

async function describe(book: Book<any>, id: string, description: string | null): Promise<object> {
  const { variables } = await book.show(id);
  const listed = (kind: string, required: boolean): object[] =>
    ((variables?.[kind] as { name: string; description?: string }[] | undefined) ?? []).map((variable) => ({
      name: variable.name,
      ...(variable.description ? { description: variable.description } : {}),
      required,
    }));
  return {
    name: id,
    ...(description ? { description } : {}),
    arguments: [...listed("required", true), ...listed("optional", false), ...listed("custom", false)],
  };
}

/** The messages of MCP for one of ours: it knows users and assistants only, and one part for each message. */
function message(given: Message): object[] {
  const role = given.role === "assistant" ? "assistant" : "user";
  return given.content.map((part) => {
    if (part.kind !== "text") {
      const hint = "serve the project with the command: `mcpCommand`";
      throw new UsageError(`\`servePrompts\` sends text only, and the prompt has a part of the kind \`${part.kind}\``, { code: "CB407", hint });
    }
    return { role, content: { type: "text", text: part.value } };
  });
}
