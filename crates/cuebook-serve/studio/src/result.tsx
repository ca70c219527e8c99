// The live result: a tab for each way to look at the rendered prompt.

import { computed, signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { call, command, type Failure } from "./api";
import { Form } from "./form";
import {
  cursor, failure, go, goToOrigin, lastGood, offsets, type Origin, place, result, say, type Span, TABS, type Tab, unsaved,
} from "./state";

const TITLES: Record<Tab, string> = {
  text: "Text", messages: "Messages", wire: "Wire", tokens: "Tokens", sections: "Sections", tools: "Tools", diff: "Diff", tests: "Tests",
  problems: "Problems",
};

/** The span that the pointer or the keyboard is on. */
const current = signal(-1);

/** An origin in a few words. */
export function described(origin: Origin): string {
  const where = origin.file ? `${origin.file}${origin.line ? `:${origin.line}` : ""}` : "";
  switch (origin.kind) {
    case "literal":
      return `author's text, ${where}`;
    case "value": {
      const names = (origin.variables ?? []).map((one) => `${one.path} (${one.layer})`).join(", ");
      return `${names || "computed"}, printed by ${origin.expression ?? "the template"} at ${where}`;
    }
    case "rich":
      return `the ${String(origin.input_kind ?? "")} of the input ${String(origin.input ?? "")}${where ? `, ${where}` : ""}`;
    case "hook":
      return `a hook${where ? `, ${where}` : ""}`;
    default:
      return `${origin.kind}${where ? `, ${where}` : ""}`;
  }
}

/** Files by the order in which they appear, so that each has its colour. */
const fileIndex = computed(() => {
  const index = new Map<string, number>();
  for (const { origin } of lastGood.value?.spans ?? []) if (origin.file && !index.has(origin.file)) index.set(origin.file, index.size);
  return index;
});

function classOf(span: Span): string {
  const { origin } = span;
  if (origin.kind === "literal") return `s literal f${(fileIndex.value.get(origin.file ?? "") ?? 0) % 6}`;
  return `s ${origin.kind}`;
}

function TextView() {
  const host = useRef<HTMLPreElement>(null);

  const built = useRef<typeof lastGood.value | undefined>(undefined);

  // The text, and in it what the place of the editor's cursor has produced.
  useSignalEffect(() => {
    const explanation = lastGood.value, where = cursor.value, element = host.current;
    if (!element) return;
    if (built.current !== explanation) {
      built.current = explanation;
      element.replaceChildren(...(explanation?.spans ?? []).map((span, at) => {
        const part = document.createElement("span");
        part.className = classOf(span);
        part.dataset.at = String(at);
        const text = explanation!.text.slice(offsets.value.unit(span.start), offsets.value.unit(span.end));
        // A rich input is named: the mark that stands for it in the text says nothing.
        part.textContent = span.origin.kind === "rich" ? `[${String(span.origin.input)}: ${String(span.origin.input_kind)}]` : text;
        return part;
      }));
      current.value = -1;
    }
    let first: Element | null = null;
    explanation?.spans.forEach(({ origin }, at) => {
      const hit = !!where && origin.file === where.file && origin.start !== undefined &&
        origin.start <= where.byte && where.byte <= (origin.end ?? origin.start);
      element.children[at].classList.toggle("from-cursor", hit);
      if (hit) first ??= element.children[at];
    });
    (first as Element | null)?.scrollIntoView({ block: "nearest" });
  });

  useSignalEffect(() => {
    const at = current.value;
    host.current?.querySelector(".current")?.classList.remove("current");
    if (at >= 0) host.current?.children[at]?.classList.add("current");
  });

  const at = (event: Event) => Number((event.target as HTMLElement).dataset?.at ?? -1);
  const follow = (index: number) => {
    const span = lastGood.value?.spans[index];
    if (span) goToOrigin(span.origin);
  };
  const move = (event: KeyboardEvent) => {
    const count = lastGood.value?.spans.length ?? 0;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && count > 0) {
      event.preventDefault();
      current.value = Math.min(count - 1, Math.max(0, current.value + step));
      host.current?.children[current.value]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") follow(current.value);
  };
  return (
    <pre class="text" ref={host} tabIndex={0} aria-label="Rendered text; arrow keys choose a part, Enter opens its source"
      onMouseOver={(event) => (current.value = at(event))} onClick={(event) => follow(at(event))} onKeyDown={move} />
  );
}

function OriginLine() {
  const span = lastGood.value?.spans[current.value];
  const variable = span?.origin.variables?.[0];
  const value = variable && lastGood.value?.variables.find((one) => one.name === variable.path.split(/[.[]/)[0]);
  return (
    <div class="foot origin" aria-live="polite">
      {span ? <><b class={`key ${span.origin.kind}`}>{span.origin.kind}</b> {described(span.origin)}
        {value?.declared ? ` · declared ${value.declared}` : ""}</> : <Legend />}
    </div>
  );
}

function Legend() {
  return (
    <>{[...fileIndex.value].slice(0, 6).map(([file, at]) => <span key={file} class={`legend f${at % 6}`} title={file}>{file.split("/").slice(-2).join("/")}</span>)}
      <span class="legend value">value</span></>
  );
}

function Json({ value }: { value: unknown }) {
  return <pre class="json" tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>;
}

export function FailureView({ failure }: { failure: Failure }) {
  return (
    <div class="failure" role="alert">
      <p><b>{failure.code ? `${failure.code}: ` : ""}</b>{failure.message}</p>
      {failure.file && (
        <button class="link" onClick={() => goToOrigin({ kind: "literal", file: failure.file, start: failure.range?.[0] ?? 0, end: failure.range?.[1] ?? 0 })}>
          {failure.file}{failure.line ? `:${failure.line}:${failure.column ?? 1}` : ""}
        </button>
      )}
      {failure.excerpt && <pre class="excerpt">{failure.excerpt}</pre>}
      {failure.hint && <p class="hint">help: {failure.hint}</p>}
    </div>
  );
}

/** A part of the answer, or its error. */
function Part({ value, children }: { value: unknown; children: (value: never) => ComponentChildren }) {
  if (value === undefined) return <p class="empty">Loading…</p>;
  const error = (value as { error?: Failure })?.error;
  return error ? <FailureView failure={error} /> : <>{children(value as never)}</>;
}

interface Message { role: string; content: { kind: string; value?: unknown }[] | string }

function Messages() {
  return (
    <Part value={result.value?.messages}>{(messages: Message[]) => (
      <ol class="messages">
        {messages.map((message, at) => (
          <li key={at} class={`message ${message.role}`}>
            <span class="role">{message.role}</span>
            {typeof message.content === "string" ? <pre>{message.content}</pre> : message.content.map((part, index) =>
              part.kind === "text" ? <pre key={index}>{String(part.value)}</pre> : <Media key={index} part={part} />)}
          </li>
        ))}
      </ol>
    )}</Part>
  );
}

function Media({ part }: { part: { kind: string; value?: unknown } }) {
  const source = typeof part.value === "string" ? part.value : "";
  // Only images that are part of the page's own data: the page asks no other server.
  if (part.kind === "image" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(source)) return <img src={source} alt="an image input" />;
  return <pre class="media">{part.kind}: {JSON.stringify(part.value)?.slice(0, 200)}</pre>;
}

const APIS = ["openai", "openai-responses", "anthropic", "gemini"];

function Wire() {
  return (
    <>
      <div class="tools">
        <label>Interface <select value={place.value.wire} onChange={(event) => go({ wire: event.currentTarget.value })}>
          <option value="">of the prompt's model</option>
          {APIS.map((api) => <option key={api}>{api}</option>)}
        </select></label>
      </div>
      <Part value={result.value?.wire}>{(wire: { path: string; body: unknown; notes: Failure[] }) => (
        <><p class="hint">POST {wire.path}</p>
          {wire.notes.map((note, at) => <p key={at} class="notice">{note.message}</p>)}
          <Json value={wire.body} /></>
      )}</Part>
    </>
  );
}

interface Ledger {
  total: number; exact: boolean; model?: string; tokenizer?: string; messages?: Record<string, unknown>[];
  contributors?: { tokens: number; label?: string; [detail: string]: unknown }[]; [detail: string]: unknown;
}

const plan = signal<{ key: string; document: Record<string, unknown> | null; error?: Failure }>({ key: "", document: null });

/** Cost and cache come from the command line, of the saved files. */
async function loadPlan() {
  const { prompt, values, language } = place.value, key = JSON.stringify([prompt, values, language]);
  if (plan.value.key === key) return;
  plan.value = { key, document: null };
  try {
    const { document } = await command<Record<string, unknown>>("tokens", [prompt], language ? { language } : {}, values);
    if (plan.value.key === key) plan.value = { key, document };
  } catch (error) {
    if (plan.value.key === key) plan.value = { key, document: null, error: { message: (error as Error).message } };
  }
}

function Tokens() {
  useSignalEffect(() => void (place.value.tab === "tokens" && loadPlan()));
  const cost = plan.value.document?.cost, cache = plan.value.document?.cache;
  return (
    <Part value={result.value?.tokens}>{(ledger: Ledger) => {
      const rows = (ledger.contributors ?? []).toSorted((a, b) => b.tokens - a.tokens);
      return (
        <>
          <p class="total"><b>{ledger.exact === false ? "about " : ""}{ledger.total.toLocaleString("en")}</b> tokens
            {ledger.model ? ` for ${ledger.model}` : ""}{ledger.tokenizer ? ` (${ledger.tokenizer})` : ""}</p>
          <table>
            <thead><tr><th scope="col">part</th><th scope="col">tokens</th><th scope="col">share</th></tr></thead>
            <tbody>{rows.map((row, at) => (
              <tr key={at}><td>{String(row.label ?? row.name ?? row.file ?? row.kind ?? "")}</td><td>{row.tokens.toLocaleString("en")}</td>
                <td><meter min={0} max={ledger.total || 1} value={row.tokens} aria-label={`${row.tokens} of ${ledger.total}`} /></td></tr>
            ))}</tbody>
          </table>
          {plan.value.error && <FailureView failure={plan.value.error} />}
          {cost !== undefined && <><h3>Cost of the saved prompt</h3><Json value={cost} /></>}
          {cache !== undefined && <><h3>What a cache can keep</h3><Json value={cache} /></>}
        </>
      );
    }}</Part>
  );
}

interface SectionRow { path: string[] | string; title?: string; state?: string; visibility?: string; depth?: number; tokens?: number; [detail: string]: unknown }

function Sections() {
  const sections = lastGood.value?.sections as SectionRow[] | { sections?: SectionRow[] } | undefined;
  const rows = Array.isArray(sections) ? sections : sections?.sections;
  if (!rows) return <p class="empty">This prompt is not a section tree.</p>;
  const total = Number((result.value?.tokens as Ledger | undefined)?.total ?? 0);
  const pathOf = (row: SectionRow) => (Array.isArray(row.path) ? row.path.join("/") : String(row.path).replaceAll(".", "/"));
  return (
    <>
      <div class="tools">
        <label class="budget">Budget <input type="range" min={0} max={4000} step={10} value={place.value.fit === "" ? 4000 : Number(place.value.fit)}
          aria-label="Token budget" onInput={(event) => go({ fit: event.currentTarget.value === "4000" ? "" : event.currentTarget.value })} />
          <output>{place.value.fit === "" ? "no limit" : `${place.value.fit} tokens`}</output></label>
        {total > 0 && <span class="kind">{total} tokens</span>}
      </div>
      <ul class="tree" role="list">
        {rows.map((row) => {
          const path = pathOf(row), depth = path.split("/").length - 1;
          const set = place.value.visibility[path] ?? "";
          return (
            <li key={path} style={{ paddingInlineStart: `${depth * 1.2}em` }}>
              <span class="name">{row.title ?? path}</span> <span class="kind">{String(row.state ?? row.visibility ?? "")}</span>
              <select aria-label={`Visibility of ${path}`} value={set} onChange={(event) => {
                const { [path]: _, ...others } = place.value.visibility, next = event.currentTarget.value;
                go({ visibility: next === "" ? others : { ...others, [path]: next } });
              }}>
                <option value="">as written</option><option value="full">full</option><option value="summary">summary</option>
              </select>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Tools() {
  const tools = lastGood.value?.tools ?? [];
  if (tools.length === 0) return <p class="empty">This prompt has no tools.</p>;
  return (
    <ul class="list">{tools.map((tool, at) => (
      <li key={at}><b>{String(tool.name)}</b> {String(tool.description ?? "")}
        <details><summary>Schema</summary><Json value={tool.parameters ?? tool.schema ?? tool} /></details></li>
    ))}</ul>
  );
}

/** What a command printed about the saved files, until something changes. */
function Command({ name, words, operands, options, empty, children }: {
  name: string; words: string; operands: string[]; options?: Record<string, string | boolean>; empty: string;
  children: (document: never, said: string) => ComponentChildren;
}) {
  const state = useRef(signal<{ document?: unknown; said?: string; error?: Failure; busy: boolean }>({ busy: false })).current;
  const run = async () => {
    state.value = { busy: true };
    try {
      const { document, said } = await command<unknown>(words, operands, options, words === "diff" ? place.value.values : undefined);
      state.value = { busy: false, document, said };
    } catch (error) {
      state.value = { busy: false, error: (error as { failure?: Failure }).failure ?? { message: (error as Error).message } };
    }
  };
  const { busy, document, said, error } = state.value;
  return (
    <>
      <div class="tools">
        <button class="act" disabled={busy} onClick={() => void run()}>{busy ? "Running…" : name}</button>
        {Object.keys(unsaved.value).length > 0 && <span class="kind">works on the saved files</span>}
      </div>
      {error ? <FailureView failure={error} /> : document === undefined ? <p class="empty">{empty}</p> : children(document as never, said ?? "")}
    </>
  );
}

function Diff() {
  const other = place.value.other, id = place.value.prompt;
  const operands = other ? [other, id] : [id];
  return (
    <>
      <div class="tools">
        <label>Compare with <input value={other} placeholder="the last commit, or an id, or REVISION:ID"
          onChange={(event) => go({ other: event.currentTarget.value })} /></label>
      </div>
      <Command name="Compare" words="diff" operands={operands} empty="Shows what a change does to text, tokens, tools and permissions.">
        {(document: unknown) => <DiffView document={document} />}
      </Command>
    </>
  );
}

function DiffView({ document }: { document: unknown }) {
  const lines: { kind: string; text: string; origin?: string }[] = [];
  const visit = (value: unknown) => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!value || typeof value !== "object") return;
    const object = value as Record<string, unknown>;
    const kind = object.change;
    if (typeof object.text === "string" && typeof kind === "string") {
      lines.push({ kind, text: object.text, origin: typeof object.origin === "string" ? object.origin : undefined });
    } else Object.values(object).forEach(visit);
  };
  visit(document);
  return (
    <>
      {lines.length > 0 && <pre class="diff" tabIndex={0}>{lines.map((line, at) => (
        <span key={at} class={line.kind}>{{ new: "+ ", gone: "- " }[line.kind] ?? "  "}{line.text}{line.origin ? `    ← ${line.origin}` : ""}{"\n"}</span>
      ))}</pre>}
      <details open={lines.length === 0}><summary>All differences</summary><Json value={document} /></details>
    </>
  );
}

interface Tests { passed: number; failed: number; files: { file: string; cases: { case: string; passed: boolean; failures: { message: string; origin?: string }[] }[] }[] }

function TestsTab() {
  return (
    <>
      <Command name="Run the test cases" words="test" operands={[place.value.prompt]} empty="Compares renders with the cases next to the prompt.">
        {(document: Tests) => (
          <>
            <p class="total"><b>{document.passed}</b> passed, <b>{document.failed}</b> failed</p>
            <ul class="list">{document.files?.flatMap((file) => file.cases.map((one) => (
              <li key={`${file.file} ${one.case}`} class={one.passed ? "good" : "bad"}>{one.passed ? "ok" : "failed"} · {one.case}
                {one.failures.map((fail, at) => <p key={at} class="why">{fail.message}{fail.origin ? ` ← ${fail.origin}` : ""}</p>)}</li>
            )))}</ul>
          </>
        )}
      </Command>
      <Command name="Attack every input" words="attack" operands={[place.value.prompt]} empty="Tries injection strings and checks that roles, messages and tools stay the same.">
        {(document: unknown, said: string) => <><p>{said}</p><Json value={document} /></>}
      </Command>
    </>
  );
}

const problems = signal<Failure[] | null>(null);

async function loadProblems() {
  try {
    const { document } = await call<{ document: Failure[] }>("command", { command: "check", arguments: [place.value.prompt], options: {} });
    problems.value = Array.isArray(document) ? document : [];
  } catch (error) {
    say((error as Error).message, "error");
  }
}

function Problems() {
  useSignalEffect(() => {
    result.value;
    if (place.value.tab === "problems" && place.value.prompt) void loadProblems();
  });
  const list = [...(failure.value ? [failure.value] : []), ...(result.value?.notes ?? []), ...(problems.value ?? [])];
  const seen = new Set<string>();
  const unique = list.filter((one) => {
    const key = `${one.code} ${one.message} ${one.file} ${one.line}`;
    return !seen.has(key) && seen.add(key);
  });
  if (unique.length === 0) return <p class="empty">No problems.</p>;
  return <ul class="list">{unique.map((one, at) => <li key={at}><FailureView failure={one} /></li>)}</ul>;
}

const VIEWS: Record<Tab, () => ComponentChildren> = {
  text: TextView, messages: Messages, wire: Wire, tokens: Tokens, sections: Sections, tools: Tools, diff: Diff, tests: TestsTab, problems: Problems,
};

export function ResultPane() {
  const { tab, prompt } = place.value;
  const View = VIEWS[tab];
  const stale = failure.value !== null && lastGood.value !== null;
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    go({ tab: next });
    queueMicrotask(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return (
    <section class="pane result" aria-label="Result">
      <div class="bar" role="tablist" aria-label="Ways to look at the result" onKeyDown={move}>
        {TABS.map((name) => (
          <button key={name} id={`tab-${name}`} role="tab" aria-selected={tab === name} aria-controls="panel" tabIndex={tab === name ? 0 : -1}
            onClick={() => go({ tab: name })}>{TITLES[name]}</button>
        ))}
      </div>
      <Form />
      {(result.value?.placeholders.length ?? 0) > 0 && !failure.value && (
        <p class="notice">Placeholders stand for {result.value!.placeholders.join(", ")}.</p>
      )}
      {result.value?.has_hooks && !place.value.hooks && <p class="notice">The hooks of this prompt did not run.</p>}
      {stale && <div class="notice bad" role="status"><b>Stale.</b> This is the last text without an error.</div>}
      {failure.value && tab !== "problems" && <FailureView failure={failure.value} />}
      <div class={`panel${stale ? " stale" : ""}`} role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} key={`${tab} ${prompt}`}><View /></div>
      {tab === "text" && <OriginLine />}
    </section>
  );
}
