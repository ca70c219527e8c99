// What a caller says about a render besides its variables.

import { native } from "./native.js";
import { namedByEngine } from "./options.js";
import { toJson } from "./values.js";
import type { Document, RenderOptions } from "./types.js";

/** The context of options, with the names that the engine has. */
export function splitContext(options: RenderOptions): Document {
  return namedByEngine(options, native.nearest);
}

/** The context of options as JSON. */
export function contextToJson(options: RenderOptions): string {
  return toJson(splitContext(options), "context");
}
