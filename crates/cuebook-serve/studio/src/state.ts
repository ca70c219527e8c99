// The state of the page, as signals. What a link can restore is in `place`.

import { computed, effect, signal } from "@preact/signals";
import { call, CallError, callLive, type Failure } from "./api";
import { Offsets } from "./offsets";

export type View = "prompts" | "decide" | "threads";
export const TABS = ["text", "messages", "wire", "tokens", "sections", "tools", "diff", "tests", "problems"] as const;
export type Tab = (typeof TABS)[number];

export interface Place {
  view: View;
  prompt: string;
  tab: Tab;
  file: string;
  values: Record<string, unknown>;
  language: string;
  wire: string;
  model: string;
  fit: string;
  visibility: Record<string, string>;
  hooks: boolean;
  thread: string;
  /** The turn of the thread whose request is shown. */
  turn: string;
  /** The thread that it is compared with. */
  against: string;
  /** What the prompt is compared with. */
  other: string;
}

const EMPTY: Place = {
  view: "prompts", prompt: "", tab: "text", file: "", values: {}, language: "", wire: "", model: "", fit: "", visibility: {}, hooks: false,
  thread: "", turn: "", against: "", other: "",
};

export const place = signal<Place>(fromHash());

/** Changes a part of the place. */
export function go(change: Partial<Place>) {
  place.value = { ...place.value, ...change };
}

/** Another prompt has other files and values. */
export function openPrompt(prompt: string) {
  if (prompt !== place.value.prompt) drop();
  go({ view: "prompts", prompt, file: "", values: {}, language: "", visibility: {}, fit: "" });
}

function fromHash(): Place {
  const hash = new URLSearchParams(location.hash.slice(1));
  const next: Record<string, unknown> = { ...EMPTY };
  for (const [key, empty] of Object.entries(EMPTY)) {
    const text = hash.get(key);
    if (text === null) continue;
    if (typeof empty === "string") next[key] = text;
    else {
      try {
        const value = JSON.parse(text);
        if (typeof value === typeof empty && value !== null) next[key] = value;
      } catch { /* A damaged link opens what is left of it. */ }
    }
  }
  if (!TABS.includes(next.tab as Tab)) next.tab = "text";
  if (!["prompts", "decide", "threads"].includes(next.view as string)) next.view = "prompts";
  return next as unknown as Place;
}

/** The longest value that a link holds, as JSON: browsers cut or refuse long addresses. */
const LONGEST_IN_LINK = 16_000;

/** The values that a link does not hold because they are too long, such as files. */
export const leftOut = (values: Record<string, unknown>) =>
  Object.entries(values).filter(([, value]) => (JSON.stringify(value) ?? "").length > LONGEST_IN_LINK);

export function hashOf(value: Place): string {
  const hash = new URLSearchParams();
  const long = new Set(leftOut(value.values).map(([name]) => name));
  const values = Object.fromEntries(Object.entries(value.values).filter(([name]) => !long.has(name)));
  for (const [key, empty] of Object.entries(EMPTY)) {
    const now = ({ ...value, values } as unknown as Record<string, unknown>)[key];
    const text = typeof now === "string" ? now : JSON.stringify(now);
    if (text !== (typeof empty === "string" ? empty : JSON.stringify(empty))) hash.set(key, text);
  }
  return hash.toString();
}

export function followAddress() {
  let written = location.hash.slice(1), later: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const hash = hashOf(place.value);
    clearTimeout(later);
    if (hash === written) return;
    const was = new URLSearchParams(written), is = new URLSearchParams(hash);
    // Another prompt, view or thread is a step back in the browser; values are not.
    const steps = ["view", "prompt", "thread", "turn"].some((key) => was.get(key) !== is.get(key));
    const write = () => {
      written = hash;
      history[steps ? "pushState" : "replaceState"](null, "", `#${hash}`);
    };
    // Browsers refuse more than 20 changes of the address a second, and a slider makes more.
    if (steps) write();
    else later = setTimeout(write, 100);
  });
  addEventListener("popstate", () => {
    clearTimeout(later);
    written = location.hash.slice(1);
    const next = fromHash(), { prompt, values } = place.peek();
    if (next.prompt === prompt) next.values = { ...Object.fromEntries(leftOut(values)), ...next.values };
    place.value = next;
  });
}

export interface Listing {
  id: string; name: string; type: string; dialect: string; source: string | null; pack_id: string | null; conflict: boolean;
  description?: string; tags?: string[];
}

export const project = signal<{ root: string; name: string; version: string } | null>(null);
export const prompts = signal<Listing[] | null>(null);
export const message = signal<{ text: string; kind: "error" | "note" } | null>(null);

export function say(text: string, kind: "error" | "note" = "note") {
  message.value = { text, kind };
}

export async function loadLibrary() {
  try {
    project.value ??= await call("project");
    prompts.value = await call<Listing[]>("prompts");
  } catch (error) {
    say((error as Error).message, "error");
  }
}

// ---- Files -----------------------------------------------------------------------------------------------------------------

export interface OpenFile {
  /** The text on disk when it was read or saved. */
  saved: string;
  hash: string | null;
  readOnly: boolean;
  text: string;
}

export const files = signal<Record<string, OpenFile>>({});
/** Files whose text on disk differs from the one that the editor started from. */
export const conflicts = signal<Record<string, { text: string | null; hash: string | null }>>({});

function drop() {
  files.value = Object.fromEntries(Object.entries(files.value).filter(([, file]) => file.text !== file.saved));
}

export async function openFile(name: string): Promise<OpenFile | null> {
  const known = files.value[name];
  if (known) return known;
  try {
    const read = await call<{ text: string; hash: string | null; read_only?: boolean }>("file", { file: name });
    const file = { saved: read.text, hash: read.hash, readOnly: read.read_only === true, text: read.text };
    files.value = { ...files.value, [name]: file };
    return file;
  } catch (error) {
    say((error as Error).message, "error");
    return null;
  }
}

export function edit(name: string, text: string) {
  const file = files.value[name];
  if (file && file.text !== text) files.value = { ...files.value, [name]: { ...file, text } };
}

export const unsaved = computed(() =>
  Object.fromEntries(Object.entries(files.value).filter(([, file]) => file.text !== file.saved).map(([name, file]) => [name, file.text])),
);

/** Files that are being saved. */
const saving = new Set<string>();

export async function save(name: string) {
  const file = files.value[name];
  if (!file || file.readOnly) return;
  saving.add(name);
  try {
    const result = await call<{ hash?: string; conflict?: { text: string | null; hash: string | null } }>(
      "save", { file: name, text: file.text, hash: file.hash });
    if (result.conflict) {
      conflicts.value = { ...conflicts.value, [name]: result.conflict };
      say(`${name} was changed by another program; choose which text to keep`, "error");
      return;
    }
    files.value = { ...files.value, [name]: { ...files.value[name], saved: file.text, hash: result.hash ?? null } };
    say(`saved ${name}`);
    void loadLibrary();
  } catch (error) {
    say((error as Error).message, "error");
  } finally {
    saving.delete(name);
  }
}

/** Looks whether another program has changed a file that is open. A text without edits follows it; one with edits is a conflict. */
export async function refreshFiles() {
  const names = Object.entries(files.value).filter(([, file]) => !file.readOnly).map(([name]) => name);
  if (names.length === 0) return;
  let hashes: Record<string, string | null>;
  try {
    hashes = await call("hashes", { files: names });
  } catch {
    return; // The next call says it.
  }
  for (const name of names) {
    const known = files.value[name], now = hashes[name];
    if (!known || saving.has(name) || now === known.hash || (conflicts.value[name] && conflicts.value[name].hash === now)) continue;
    try {
      const read = now === null ? { text: null, hash: null } : await call<{ text: string; hash: string | null }>("file", { file: name });
      const file = files.value[name];
      if (!file || saving.has(name) || file.hash === read.hash) continue;
      if (file.text !== file.saved) conflicts.value = { ...conflicts.value, [name]: read };
      else if (read.text !== null) files.value = { ...files.value, [name]: { ...file, saved: read.text, text: read.text, hash: read.hash } };
    } catch { /* It is being written; the next look reads it. */ }
  }
}

/** Ends a conflict: with the text of the editor, or with the text on disk. */
export function settle(name: string, keep: "mine" | "theirs") {
  const conflict = conflicts.value[name];
  const { [name]: _, ...others } = conflicts.value;
  conflicts.value = others;
  const file = files.value[name];
  if (!file || !conflict) return;
  const saved = conflict.text ?? "";
  files.value = { ...files.value, [name]: { ...file, saved, hash: conflict.hash, text: keep === "mine" ? file.text : saved } };
  if (keep === "mine") void save(name);
}

// ---- The live result ---------------------------------------------------------------------------------------------------------

export interface Origin {
  kind: string; file?: string; start?: number; end?: number; line?: number; column?: number; expression?: string;
  variables?: { path: string; layer: string }[]; [detail: string]: unknown;
}
export interface Span { start: number; end: number; origin: Origin }
export interface VariableOf { name: string; layer: string | null; value: unknown; declared: string | null; used: boolean }
export interface Explanation {
  text: string; spans: Span[]; tools: Record<string, unknown>[]; variables: VariableOf[];
  prompt: { id: string; source: string; files: string[]; reason: string }; sections?: Record<string, unknown>;
}
export interface Declared {
  name: string; type: string; description?: string; default?: unknown; enumValues?: unknown[]; [detail: string]: unknown;
}
export interface Definition {
  id: string; dialect: string; description?: string; languages: string[]; hooks: string[];
  variables: { required: Declared[]; optional: Declared[]; custom: Declared[] };
  template_file?: string; names?: { files: string[]; variables: string[] }; model?: { id?: string } | null; [detail: string]: unknown;
}
export interface Result {
  definition: Definition; has_hooks: boolean; placeholders: string[]; explanation?: Explanation; error?: Failure; notes?: Failure[];
  messages?: unknown; wire?: unknown; tokens?: unknown;
}

export const result = signal<Result | null>(null);
/** The last result that could be rendered, while the text has an error. */
export const lastGood = signal<Explanation | null>(null);
export const failure = signal<Failure | null>(null);
/** Counts the results, so that parts that follow the result know when to look again. */
export const rendered = signal(0);
export const offsets = computed(() => new Offsets(lastGood.value?.text ?? ""));
/** How long the last render took, from the change to the answer, in milliseconds. */
export const took = signal(0);

const WANTED: Partial<Record<Tab, string>> = { messages: "messages", wire: "wire", tokens: "tokens", sections: "tokens" };
let running: AbortController | null = null;

/** What the server needs to render what the page shows. */
export function renderRequest(want: string[]) {
  const { prompt, values, language, wire, model, fit, visibility, hooks } = place.value;
  return { id: prompt, values, language, wire, model, visibility, hooks, texts: unsaved.value, fit: fit === "" ? undefined : Number(fit), want };
}

export function followPrompt() {
  let known: { key: string; library: unknown } = { key: "", library: null };
  effect(() => {
    const { prompt, view, tab } = place.value;
    const library = prompts.value;
    if (view !== "prompts" || !prompt) return;
    const request = renderRequest(WANTED[tab] ? [WANTED[tab]!] : []);
    const key = JSON.stringify([request, Object.values(files.value).map((file) => file.hash)]);
    if (known.key === key && known.library === library) return;
    known = { key, library };
    void render(request);
  });
}

async function render(request: { id: string; [key: string]: unknown }) {
  running?.abort();
  const mine = (running = new AbortController());
  const began = performance.now();
  try {
    const next = await callLive<Result>("render", request, mine.signal);
    if (mine.signal.aborted) return;
    // The text comes first; what else shows the result follows.
    if (next.explanation) lastGood.value = next.explanation;
    result.value = next;
    failure.value = next.error ?? null;
    if (!next.explanation && lastGood.value?.prompt.id !== request.id) lastGood.value = null;
  } catch (error) {
    if (mine.signal.aborted) return;
    failure.value = error instanceof CallError ? error.failure : { message: String(error) };
    if (lastGood.value?.prompt.id !== request.id) { lastGood.value = null; result.value = null; }
  }
  took.value = performance.now() - began;
  rendered.value++;
}

/** What the cursor of the editor is in: a file and a byte. */
export const cursor = signal<{ file: string; byte: number } | null>(null);
/** A place that the editor shows next: bytes of a file. */
export const target = signal<{ file: string; start: number; end: number } | null>(null);

export function goToOrigin(origin: Origin) {
  if (!origin.file || origin.start === undefined) return;
  go({ view: "prompts", file: origin.file });
  target.value = { file: origin.file, start: origin.start, end: origin.end ?? origin.start };
}
