// Values of JavaScript as JSON texts, which is how they reach the engine. The package for WebAssembly has this file, too.

import { PromptValidationError } from "./errors.js";
import type { Variables } from "./types.js";

/** How deep values may be nested. Deeper ones, and those that contain themselves, are refused. */
const DEEPEST = 100;

/** What the engine cannot print, or a sign that the value has parts that `JSON.stringify` would write in another way. */
const enum Kind {
  Plain,
  Special,
}

/** Variables as the text of an object. An undefined one is as if it were not given. */
export function variablesToJson(variables: Variables | undefined): string | undefined {
  if (variables === undefined || variables === null) {
    return undefined;
  }
  if (typeof variables !== "object" || Array.isArray(variables)) {
    refuse("the variables are not an object", "pass an object with one entry for each variable");
  }
  let kind = Kind.Plain;
  for (const name in variables) {
    kind |= look(variables[name], name, 0);
  }
  return kind === Kind.Plain ? JSON.stringify(variables) : write(variables);
}

/** A value as JSON. Errors call it by a name. */
export function toJson(value: unknown, name: string): string {
  return look(value, name, 0) === Kind.Plain ? JSON.stringify(value) : write(value);
}

/** Looks for what the engine cannot print. The way to a value is only put together for an error. */
function look(value: unknown, way: string, depth: number): Kind {
  switch (typeof value) {
    case "string":
      if (!isWellFormed(value)) {
        refuse(`the value of \`${way}\` is not valid Unicode: it has half of a surrogate pair`, "use `toWellFormed()` before you pass it");
      }
      return Kind.Plain;
    case "number":
      if (!Number.isFinite(value)) {
        refuse(`the value of \`${way}\` is ${value}, which is not a number`, "pass a finite number, or null");
      }
      return Kind.Plain;
    case "boolean":
    case "undefined":
      return Kind.Plain;
    case "bigint":
      return Kind.Special;
    case "object":
      return value === null ? Kind.Plain : lookInside(value, way, depth);
    default:
      refuse(`the value of \`${way}\` is a ${typeof value}, which no template can print`, PRINTABLE);
  }
}

const PRINTABLE = "pass text, a number, a boolean, null, a list, an object, a Map, a Set or a Date";

function lookInside(value: object, way: string, depth: number): Kind {
  if (depth >= DEEPEST) {
    refuse(`the value of \`${way}\` is nested more than ${DEEPEST} levels deep`, "pass a value that does not contain itself");
  }
  if (Array.isArray(value)) {
    let kind = Kind.Plain;
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      // Few items are refused, so that their way is rarely needed.
      kind |= typeof item === "string" && isWellFormed(item) ? Kind.Plain : look(item, `${way}[${index}]`, depth + 1);
    }
    return kind;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const simpler = simplify(value, way);
    if (simpler !== value) {
      look(simpler, way, depth + 1);
      return Kind.Special;
    }
  }
  let kind = Kind.Plain;
  for (const key in value) {
    if (!isWellFormed(key)) {
      refuse(`the value of \`${way}\` has a key that is not valid Unicode`, "use text for the keys of an object");
    }
    kind |= look((value as Record<string, unknown>)[key], `${way}.${key}`, depth + 1);
  }
  return kind;
}

/** A simpler value that means the same; the value itself if it is an object of a class, whose fields are read. */
function simplify(value: object, way: string): unknown {
  const json = (value as { toJSON?: unknown }).toJSON;
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    refuse(`the value of \`${way}\` is an invalid date`, "pass a date that exists");
  }
  if (value instanceof ArrayBuffer || value instanceof DataView || value instanceof Uint8Array) {
    refuse(`the value of \`${way}\` is bytes, which no template can print`, "decode them with `TextDecoder` before you pass them");
  }
  if (typeof json === "function") {
    return json.call(value, "") as unknown;
  }
  if (ArrayBuffer.isView(value)) {
    return Array.from(value as unknown as ArrayLike<unknown>);
  }
  if (value instanceof Map) {
    const object: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (const [key, item] of value as Map<unknown, unknown>) {
      if (typeof key !== "string") {
        refuse(`the value of \`${way}\` has the key ${String(key)}, which is not a text`, "use text for the keys of a Map");
      }
      object[key] = item;
    }
    return object;
  }
  if (value instanceof Set) {
    return [...(value as Set<unknown>)];
  }
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return value.valueOf();
  }
  if (typeof (value as { then?: unknown }).then === "function") {
    refuse(`the value of \`${way}\` is a promise`, "pass what it resolves to: `await` it");
  }
  return value;
}

/** The JSON of a value that has parts of other classes, or integers of any size. It was looked at before. */
function write(value: unknown): string {
  switch (typeof value) {
    case "bigint":
      // One of more than 64 bits becomes a text of its digits, because the engine would lose some of them.
      return value >= -(2n ** 63n) && value < 2n ** 64n ? value.toString() : `"${value}"`;
    case "undefined":
      return "null";
    case "object":
      break;
    default:
      return JSON.stringify(value);
  }
  if (value === null) {
    return "null";
  }
  if (Array.isArray(value)) {
    return `[${value.map(write).join(",")}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const simpler = simplify(value, "");
    if (simpler !== value) {
      return write(simpler);
    }
  }
  const members: string[] = [];
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item !== undefined) {
      members.push(`${JSON.stringify(key)}:${write(item)}`);
    }
  }
  return `{${members.join(",")}}`;
}

function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}

function refuse(message: string, hint: string): never {
  throw new PromptValidationError(message, { code: "CB407", hint });
}
