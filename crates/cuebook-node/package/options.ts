// What a caller says about a render besides its variables, in the names of the engine. The package for WebAssembly has this file, too.

import { UsageError } from "./errors.js";
import type { Document, RenderOptions } from "./types.js";

const NAMES: Record<string, string> = {
  agent: "agent",
  model: "model",
  language: "language",
  session: "session",
  sessionId: "session_id",
  sessionState: "session_state",
  workspacePath: "workspace_path",
  strict: "strict",
  visibility: "visibility",
  overridesTag: "overrides_tag",
  fit: "fit",
  withoutHooks: "without_hooks",
  message: "message",
};

/** The context of options, with the names that the engine has. */
export function namedByEngine(options: RenderOptions, nearest: (wanted: string, names: string[]) => string[]): Document {
  const context: Document = {};
  for (const [name, value] of Object.entries(options)) {
    if (name === "allowUnknown" || value === undefined) {
      continue;
    }
    const known = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
    if (known === undefined) {
      const names = [...Object.keys(NAMES), "allowUnknown"];
      const [near] = nearest(name, names);
      const hint = near === undefined ? `they are ${names.join(", ")}` : `did you mean \`${near}\`?`;
      throw new UsageError(`the options have no \`${name}\``, { code: "CB407", hint });
    }
    context[known] = value;
  }
  return context;
}

/** Refuses an id or a path that is no text, which a program without types can pass. */
export function refuseOthers(what: "id" | "path", given: unknown): void {
  if (typeof given !== "string") {
    const kind = given === null ? "null" : typeof given;
    throw new UsageError(`the ${what} of a prompt must be a text, and not ${kind}`, { code: "CB407", hint: `pass the ${what} first` });
  }
}
