// The live result: a tab for each way to look at the rendered prompt.

import { computed, effect, signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, command, type Failure } from "./api";
import { Form } from "./form";
import { count, FailureView, Json } from "./parts";
import {
  cursor, failure, go, goToOrigin, lastGood, offsets, type Origin, place, rendered, renderRequest, result, say, type Span, TABS, type Tab, unsaved,
} from "./state";

const TITLES: Record<Tab, string> = {
  text: "Text", messages: "Messages", wire: "Wire", tokens: "Tokens", sections: "Sections", tools: "Tools", diff: "Diff", tests: "Tests",
  problems: "Problems",
};

/** The span that the pointer or the keyboard is on. */
const current = signal(-1);
/** The spans that the selected text touches. */
const selected = signal<number[]>([]);

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
      return `the hook ${String(origin.function ?? "")} of ${String(origin.prompt ?? "a prompt")}`;
    case "frame":
      return `the engine (${String(origin.name ?? "")})`;
    case "message":
      return "the caller's message";
    case "model":
      return `the model ${String(origin.model ?? "")}`;
    case "tool":
      return `a result of the tool ${String(origin.name ?? "")}`;
    case "reminder":
      return "a reminder by Cuebook";
    case "earlier":
      return `the thread ${String(origin.thread_id ?? "before")}`;
    case "unknown":
      return `unknown: ${String(origin.why ?? "the log keeps no spans")}`;
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
  const shown = useRef<string[]>([]);

  const build = () => {
    const explanation = lastGood.value, element = host.current;
    if (element && built.current !== explanation) {
      built.current = explanation;
      const parts = (explanation?.spans ?? []).map((span) => {
        const text = explanation!.text.slice(offsets.value.unit(span.start), offsets.value.unit(span.end));
        // A rich input is named: the mark that stands for it in the text says nothing.
        return `${classOf(span)}\n${span.origin.kind === "rich" ? `[${String(span.origin.input)}: ${String(span.origin.input_kind)}]` : text}`;
      });
      // Only the parts that differ are made anew.
      const old = shown.current;
      let start = 0, end = 0;
      while (start < old.length && start < parts.length && old[start] === parts[start]) start++;
      while (end < old.length - start && end < parts.length - start && old[old.length - 1 - end] === parts[parts.length - 1 - end]) end++;
      for (let left = old.length - start - end; left > 0; left--) element.children[start].remove();
      const made = parts.slice(start, parts.length - end).map((part) => {
        const made = document.createElement("span"), cut = part.indexOf("\n");
        made.className = part.slice(0, cut);
        made.textContent = part.slice(cut + 1);
        return made;
      });
      const next = element.children[start] ?? null;
      for (const part of made) element.insertBefore(part, next);
      shown.current = parts;
      current.value = -1;
      selected.value = [];
    }
  };
  // At once, not after the next frame as `useSignalEffect` does.
  useEffect(() => effect(build), []);

  // What the place of the editor's cursor has produced.
  useSignalEffect(() => {
    const explanation = lastGood.value, where = cursor.value, element = host.current;
    if (!element) return;
    build();
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

  /** Where a selection with the keyboard began, or -1. */
  const anchor = useRef(-1);
  const at = (event: Event) => [...(host.current?.children ?? [])].indexOf(event.target as Element);
  const select = () => {
    anchor.current = -1;
    const selection = getSelection(), element = host.current;
    const isHere = !!selection && !selection.isCollapsed && !!element && element.contains(selection.anchorNode);
    selected.value = isHere ? [...element.children].flatMap((part, index) => (selection.containsNode(part, true) ? [index] : [])) : [];
  };
  const follow = (index: number) => {
    if (selected.value.length > 0) return; // The user selects text.
    const span = lastGood.value?.spans[index];
    if (span) goToOrigin(span.origin);
  };
  const move = (event: KeyboardEvent) => {
    const count = lastGood.value?.spans.length ?? 0;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && count > 0) {
      event.preventDefault();
      if (event.shiftKey && anchor.current < 0) anchor.current = Math.max(0, current.value);
      current.value = Math.min(count - 1, Math.max(0, current.value + step));
      if (!event.shiftKey) anchor.current = -1;
      const [from, to] = [anchor.current, current.value].sort((a, b) => a - b);
      selected.value = event.shiftKey ? Array.from({ length: to - from + 1 }, (_, at) => from + at) : [];
      host.current?.children[current.value]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") follow(current.value);
  };
  return (
    <pre class="text" ref={host} tabIndex={0} aria-label="Rendered text; arrow keys choose a part, with Shift several, Enter opens its source"
      onMouseOver={(event) => (current.value = at(event))} onMouseUp={select} onKeyUp={() => { if (anchor.current < 0) select(); }} onClick={(event) => follow(at(event))} onKeyDown={move} />
  );
}

function OriginLine() {
  const chosen = selected.value.map((index) => lastGood.value?.spans[index]).filter((one) => one !== undefined);
  if (chosen.length > 0) {
    const names = [...new Set(chosen.map((one) => described(one.origin)))];
    return <div class="foot origin" aria-live="polite"><b>selected</b> {names.slice(0, 6).join("; ")}{names.length > 6 ? `; and ${names.length - 6} more` : ""}</div>;
  }
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

/** The model that the request is for. */
function ModelField() {
  const own = result.value?.definition.model?.id;
  return <label>Model <input value={place.value.model} placeholder={own || "none"} onChange={(event) => go({ model: event.currentTarget.value })} /></label>;
}

function Wire() {
  return (
    <>
      <div class="tools">
        <ModelField />
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

interface Plan { provider: string; automatic: boolean; minimum: number; cacheable: number; breakpoints: { after: string; tokens: number }[]; advice: string[] }

interface Ledger {
  total: number; exact: boolean; estimates: string[]; model: string | null; vocabulary: string; output: number;
  messages: { number: number; role: string; tokens: number }[]; tools: { name: string; tokens: number }[];
  sections: { path: string; tokens: number }[]; contributors: { tokens: number; bytes: number; label: string; kind: string }[];
  stability: { stable: number; total: number; share: number; first_unstable: { within: string; line: number; column: number; contributor: { label: string } } | null };
  caches: Plan[]; cost: { amount: number; currency: string; per_million: number; provider: string } | null;
}

const percent = (share: number) => `${Math.round(share * 100)} %`;

function Rows({ title, rows, total }: { title: string; rows: { name: string; tokens: number }[]; total: number }) {
  if (rows.length === 0) return null;
  return (
    <table>
      <thead><tr><th scope="col">{title}</th><th scope="col" class="number">tokens</th><th scope="col">share</th></tr></thead>
      <tbody>{rows.map((row, at) => (
        <tr key={at}><td>{row.name}</td><td class="number">{count(row.tokens)}</td>
          <td><meter min={0} max={total || 1} value={row.tokens} aria-label={`${row.name}: ${row.tokens} of ${total}`} /></td></tr>
      ))}</tbody>
    </table>
  );
}

function Tokens() {
  return (
    <><div class="tools"><ModelField /></div>
    <Part value={result.value?.tokens}>{(ledger: Ledger) => {
      const { stability, cost } = ledger, first = stability.first_unstable;
      return (
        <>
          <p class="total"><b>{ledger.exact ? "" : "about "}{count(ledger.total)}</b> tokens{ledger.model ? ` for ${ledger.model}` : ""}
            {cost ? <> · <b>{cost.amount} {cost.currency}</b> to read once, at {cost.per_million} for a million ({cost.provider})</>
              : ledger.model ? " · the price is not known" : " · name a model to see the cost"}</p>
          {ledger.estimates.map((why) => <p key={why} class="hint">{why}.</p>)}
          <h2>What a cache can keep</h2>
          <div class="cache" role="img" aria-label={`${percent(stability.share)} of the tokens stay the same between renders`}>
            <span class="kept" style={{ width: `${stability.share * 100}%` }} /></div>
          <p class="hint">{count(stability.stable)} of {count(stability.total)} tokens ({percent(stability.share)}) stay the same when values change.
            {first ? ` ${first.contributor.label} changes first, in ${first.within}, line ${first.line}, column ${first.column}.` : ""}</p>
          {ledger.caches.map((plan) => (
            <p key={plan.provider} class="hint"><b>{plan.provider}</b> keeps {count(plan.cacheable)} tokens (from {count(plan.minimum)} on){plan.automatic ? "" : ", where the request marks it"}.
              {plan.breakpoints.map((mark) => ` Mark after ${mark.after}: ${count(mark.tokens)} tokens.`).join("")} {plan.advice.map((text) => `${text}.`).join(" ")}</p>
          ))}
          <Rows title="written by" total={ledger.total} rows={ledger.contributors.map((row) => ({ name: row.label, tokens: row.tokens }))} />
          <Rows title="message" total={ledger.total} rows={ledger.messages.map((row) => ({ name: `${row.number} ${row.role}`, tokens: row.tokens }))} />
          <Rows title="tool" total={ledger.total} rows={ledger.tools} />
          {ledger.output > 0 && <Rows title="answer" total={ledger.total} rows={[{ name: "its schema", tokens: ledger.output }]} />}
        </>
      );
    }}</Part></>
  );
}

interface SectionRow { path: string[]; number: string; title: string; state: string; why: string; overridden: boolean }
interface Fit { tokens: number; before: number; budget: number; steps: unknown[] }

/** The largest budget of the slider: what the prompt had without one. */
const fullSize = signal({ prompt: "", tokens: 0 });

function Sections() {
  const shown = lastGood.value as unknown as { sections?: SectionRow[]; fit?: Fit } | null;
  const rows = shown?.sections, fit = shown?.fit;
  const ledger = result.value?.tokens as Ledger | undefined;
  if (!rows) return <p class="empty">This prompt is not a section tree.</p>;
  const { prompt, fit: budget, visibility } = place.value;
  const size = fit?.before ?? ledger?.total ?? 0;
  if (size > 0 && (fullSize.value.prompt !== prompt || fullSize.value.tokens < size)) fullSize.value = { prompt, tokens: size };
  const most = Math.max(10, fullSize.value.tokens, Number(budget) || 0);
  const tokens = new Map((ledger?.sections ?? []).map((section) => [section.path, section.tokens]));
  return (
    <>
      <div class="tools">
        <label class="budget">Budget <input type="range" min={0} max={most} step={1} value={budget === "" ? most : Number(budget)} aria-label="Token budget"
          aria-valuetext={budget === "" ? "no limit" : `${budget} tokens`}
          onInput={(event) => go({ fit: Number(event.currentTarget.value) >= most ? "" : event.currentTarget.value })} />
          <output>{budget === "" ? "no limit" : `at most ${count(Number(budget))} tokens`}</output></label>
        {ledger?.total !== undefined && <span class="kind">{count(ledger.total)} tokens now{fit ? `, ${count(fit.before)} without the budget` : ""}</span>}
      </div>
      <ul class="tree" role="list">
        {rows.map((row) => {
          const path = row.path.join("/"), set = visibility[path] ?? "";
          return (
            <li key={path} class={row.state} style={{ paddingInlineStart: `${(row.path.length - 1) * 1.2}em` }}>
              <span class="name">{row.number ? `${row.number} ` : ""}{row.title}</span>
              <span class={`badge ${row.state === "full" ? "good" : "warn"}`} title={row.why}>{row.state}</span>
              <span class="kind number">{tokens.has(row.path.join(".")) ? `${count(tokens.get(row.path.join(".")))} tokens` : ""}</span>
              <select aria-label={`Visibility of ${path}`} value={set} onChange={(event) => {
                const { [path]: _, ...others } = visibility, next = event.currentTarget.value;
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
      <li key={at}><b>{String(tool.name)}</b> {tool.section ? <span class="kind">of the section {String(tool.section)}</span> : null} {String(tool.description ?? "")}
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
      const { document, said } = await command<unknown>(words, operands, options, words === "test" ? undefined : place.value.values);
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
        {(document: DiffDocument) => <DiffView document={document} />}
      </Command>
    </>
  );
}

interface DiffDocument {
  same: boolean; summary: string; before: { label: string; id: string }; after: { label: string; id: string };
  changes: { aspect: string; name: string; change: string; details: { path: string; before: unknown; after: unknown }[] }[];
  text: { basis: string; added: number; removed: number; lines: { change: string; text: string; origin?: string }[] };
}

const shownValue = (value: unknown) => (value === null || value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value));

function DiffView({ document }: { document: DiffDocument }) {
  return (
    <>
      <p class="total"><b>{document.same ? "No difference" : document.summary}</b> <span class="kind">{document.before.label} → {document.after.label}</span></p>
      {document.changes.length > 0 && (
        <table>
          <thead><tr><th scope="col">what</th><th scope="col">change</th><th scope="col">before → after</th></tr></thead>
          <tbody>{document.changes.map((change, at) => (
            <tr key={at}><td><span class="kind">{change.aspect}</span> <b>{change.name}</b></td><td>{change.change}</td>
              <td>{change.details.map((detail, index) => (
                <div key={index}>{detail.path ? <span class="kind">{detail.path}: </span> : null}{shownValue(detail.before)} → {shownValue(detail.after)}</div>
              ))}</td></tr>
          ))}</tbody>
        </table>
      )}
      {document.text.lines.length > 0 && (
        <pre class="diff excerpt" tabIndex={0} aria-label="Differences of the text">{document.text.lines.map((line, at) => (
          <span key={at} class={line.change}>{{ new: "+ ", gone: "- ", skipped: "… " }[line.change] ?? "  "}{line.text}{line.origin ? <span class="kind">    ← {line.origin}</span> : null}{"\n"}</span>
        ))}</pre>
      )}
    </>
  );
}

interface Tests { passed: number; failed: number; files: { file: string; cases: { case: string; passed: boolean; failures: { message: string; origin?: string }[] }[] }[] }

interface AttackDocument {
  held: boolean; tried: number; hooks: boolean | null; breaches: Failure[];
  inputs: { input: string | null; type: string; tried: number; seen: number; breaches: number; carries_text: boolean; refused: Record<string, number>; problem: Failure | null }[];
}

function AttackView({ document }: { document: AttackDocument }) {
  const refused = (codes: Record<string, number>) => Object.values(codes).reduce((sum, one) => sum + one, 0);
  if (document.inputs.length === 0) return <p class="empty">This prompt has no inputs, so there is nothing to attack.</p>;
  return (
    <>
      <p class={`total ${document.held ? "held" : "why"}`}><b>{document.held ? "Held" : "Not held"}</b>: {count(document.tried)} values tried
        {document.held ? "; roles, messages, tools and fences stayed the same" : ""}</p>
      <table>
        <thead><tr><th scope="col">input</th><th scope="col" class="number">tried</th><th scope="col" class="number">refused</th><th scope="col" class="number">rendered</th><th scope="col">result</th></tr></thead>
        <tbody>{document.inputs.map((input, at) => (
          <tr key={at}><td>{input.input ?? "all at once"} <span class="kind">{input.input ? input.type : ""}</span></td><td class="number">{input.tried}</td>
            <td class="number">{refused(input.refused)}</td><td class="number">{input.seen}</td>
            <td>{input.breaches > 0 ? `${input.breaches} changed the structure` : input.problem ? input.problem.message : input.carries_text ? "unchanged" : "cannot carry text"}</td></tr>
        ))}</tbody>
      </table>
      {document.breaches.map((breach, at) => <FailureView key={at} failure={breach} />)}
    </>
  );
}

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
        {(document: AttackDocument) => <AttackView document={document} />}
      </Command>
    </>
  );
}

const problems = signal<Failure[] | null>(null);

async function loadProblems() {
  try {
    const { id, texts } = renderRequest([]);
    problems.value = await call<Failure[]>("check", { id, texts });
  } catch (error) {
    say((error as Error).message, "error");
  }
}

function Problems() {
  useSignalEffect(() => {
    rendered.value;
    if (place.value.tab === "problems" && place.value.prompt) void loadProblems();
  });
  const list = [...(failure.value ? [failure.value] : []), ...(result.value?.notes ?? []), ...(problems.value ?? [])];
  const seen = new Set<string>();
  const unique = list.filter((one) => {
    const key = `${one.code} ${one.message} ${one.file} ${one.line}`;
    return !seen.has(key) && seen.add(key);
  });
  if (problems.value === null) return <p class="empty">Loading…</p>;
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
      <div class={`panel${stale ? " stale" : ""}`} role="tabpanel" id="panel" tabIndex={0} aria-labelledby={`tab-${tab}`} key={`${tab} ${prompt}`}><View /></div>
      {tab === "text" && <OriginLine />}
    </section>
  );
}
