// Threads: the list, and of one its live log, the request of each turn with origins, what it may use, and what a user can do with it.

import { computed, effect, signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, CallError, callWaiting, command, type Failure } from "./api";
import { Compare } from "./compare";
import { Bar, FailureView, Json, visible } from "./parts";
import { described } from "./result";
import { go, goToOrigin, type Origin, place, prompts, say } from "./state";

export interface Cost { turns: number; input_tokens: number; output_tokens: number; spend: number; spend_known?: boolean; elapsed_seconds: number }
export interface Row {
  thread_id: string; directive: string; status: string; created_at: string; model: string | null; cost: Cost; events: number; warning?: string;
  parent_id: string | null; continuation_of: string | null; continuation_thread_id: string | null;
  result: { error?: { message: string; code?: string; hint?: string } } | null;
}
export interface Event { seq: number; timestamp: string; event_type: string; payload: Record<string, unknown> }

const rows = signal<Row[] | null>(null);
const log = signal<{ thread: string; row: Row | null; list: Event[] }>({ thread: "", row: null, list: [] });

export const isOpen = (status: string) => ["created", "running"].includes(status);
const cannotEnd = ["completed", "cancelled", "error", "continued"];

async function loadRows() {
  try {
    rows.value = await call<Row[]>("threads");
  } catch (error) {
    rows.value ??= [];
    say((error as Error).message, "error");
  }
}

/** Reads the events of a thread, in parts. */
export async function readEvents(thread: string, signal?: AbortSignal): Promise<{ row: Row | null; list: Event[] }> {
  const list: Event[] = [];
  for (;;) {
    const part = await call<{ thread: Row | null; events: Event[]; more: boolean }>("threads/events", { thread, after: list.at(-1)?.seq ?? 0 }, signal);
    list.push(...part.events);
    if (!part.more) return { row: part.thread, list };
  }
}

let following: AbortController | null = null;

/** Follows a thread while it is shown: each event appears when it is written. */
async function follow(thread: string) {
  following?.abort();
  const { signal } = (following = new AbortController());
  log.value = { thread, row: null, list: [] };
  try {
    const first = await readEvents(thread, signal);
    log.value = { thread, ...first };
    while (!signal.aborted) {
      const { row, list } = log.value, open = !!row && isOpen(row.status);
      // A thread at rest can be continued elsewhere, so the page looks again from time to time.
      if (!open) await new Promise((done) => setTimeout(done, 2000));
      if (signal.aborted) return;
      const ask = open ? callWaiting : call;
      const part = await ask<{ thread: Row | null; events: Event[] }>("threads/events", { thread, after: list.at(-1)?.seq ?? 0, wait: open }, signal);
      if (part.events.length === 0 && part.thread?.status === row?.status) continue;
      log.value = { thread, row: part.thread, list: part.events.length > 0 ? [...list, ...part.events] : list };
      if (part.thread?.status !== row?.status) void loadRows();
    }
  } catch (error) {
    if (!signal.aborted) say((error as Error).message, "error");
  }
}

const short = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value) ?? "").slice(0, 300);

export function textOf(message: unknown): string {
  const content = (message as { content?: unknown })?.content;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { kind?: string; value?: unknown }) => (part.kind === "text" ? String(part.value) : `[${part.kind}]`)).join("") : "";
}

interface Call { id: string; function: { name: string; arguments: string } }
export const callsOf = (message: unknown): Call[] => {
  const calls = (message as { metadata?: { tool_calls?: Call[] }; tool_calls?: Call[] } | null);
  return calls?.metadata?.tool_calls ?? calls?.tool_calls ?? [];
};

/** An event in a few words. */
function summary({ event_type, payload }: Event): string {
  const error = payload.error as { code?: string; message?: string } | undefined;
  const cost = payload.cost as Cost | undefined;
  const tool = String(payload.tool ?? "a tool");
  switch (event_type) {
    case "thread_started": return `${String(payload.directive)} with ${String((payload.model as { id?: string })?.id ?? "a model")}`;
    case "cognition_in": return `turn ${payload.turn}: about ${payload.tokens} tokens to read`;
    case "cognition_out": {
      const calls = callsOf(payload.message).map((one) => one.function?.name).join(", ");
      return `${textOf(payload.message) || (calls ? `calls ${calls}` : "an answer without text")}${cost ? ` · ${cost.spend} spent so far` : ""}`;
    }
    case "token_delta": return `… ${String(payload.text ?? "")}`;
    case "tool_call_start": return `${tool} ${short(payload.arguments)}`;
    case "tool_call_result": case "tool_call_unknown": return `${tool}: ${short(payload.result)}`;
    case "permission_denied": return `${tool}: ${short(payload.result)}`;
    case "nudge": return String(payload.text ?? "");
    case "sections_disclosed": return `opened ${((payload.opened ?? []) as string[][]).map((path) => path.join(".")).join(", ")}`;
    case "limit_reached": return `${String(payload.limit_code ?? "")}: ${short(payload.current_value)} of ${short(payload.current_max)}`;
    case "thread_resumed": return `with ${String(payload.model ?? "the same model")}`;
    case "hook_start": case "hook": case "hook_unknown": return short(payload.event ?? payload.hook ?? payload.id ?? payload);
    case "thread_completed": return short(payload.outputs ?? payload.result);
    default: return error ? `${error.code ?? ""} ${error.message ?? ""}` : short(payload);
  }
}

const TITLES: Record<string, string> = { cognition_in: "request", cognition_out: "answer", cognition_reasoning: "reasoning", token_delta: "text so far" };
const title = (kind: string) => TITLES[kind] ?? kind.replaceAll("_", " ");

const ROW = 26;
const scrolled = signal(0);
const opened = signal(-1);

/** The log; only the rows in view are in the page, so that 50,000 events scroll smoothly. */
function Log() {
  const list = useRef<HTMLDivElement>(null);
  const all = log.value.list, first = Math.max(0, Math.floor(scrolled.value / ROW) - 10);
  const inView = all.slice(first, first + 60);
  // The newest event stays in view, unless the user has scrolled up.
  const atEnd = useRef(true);
  useEffect(() => {
    if (list.current && atEnd.current && log.value.row && isOpen(log.value.row.status)) list.current.scrollTop = list.current.scrollHeight;
  }, [all.length]);
  const event = all.find((one) => one.seq === opened.value);
  return (
    <>
      <div class="rows log" ref={list} tabIndex={0} role="log" aria-label="Events" onScroll={(scroll) => {
        const element = scroll.currentTarget;
        scrolled.value = element.scrollTop;
        atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW;
      }}>
        <div style={{ height: `${all.length * ROW}px`, position: "relative" }}>
          {inView.map((one, at) => (
            <button key={one.seq} class={`row event ${one.event_type}`} style={{ top: `${(first + at) * ROW}px` }} aria-expanded={opened.value === one.seq}
              onClick={() => (opened.value = opened.value === one.seq ? -1 : one.seq)}>
              <span class="kind">{one.seq}</span> <span class="kind">{one.timestamp.slice(11, 19)}</span> <b>{title(one.event_type)}</b> {visible(summary(one))}
            </button>
          ))}
        </div>
      </div>
      {event && <Json value={event.payload} />}
    </>
  );
}

interface ExplainedMessage { role: string; pieces: { text: string; origin: Origin }[] }
const explained = signal<{ key: string; messages?: ExplainedMessage[]; failure?: Failure }>({ key: "" });

/** The turns of the log. */
const turns = computed(() => {
  const found = new Set<number>();
  for (const event of log.value.list) if (event.event_type === "cognition_in" && typeof event.payload.turn === "number") found.add(event.payload.turn);
  return [...found].sort((a, b) => a - b);
});

async function explainTurn(thread: string, turn: string, length: number) {
  const key = `${thread} ${turn} ${turn === "all" ? length : ""}`;
  if (explained.value.key === key) return;
  explained.value = { key };
  try {
    const options: Record<string, string | boolean> = turn === "all" ? { explain: true } : { explain: true, turn };
    const { document } = await command<{ explained: ExplainedMessage[] }>("thread show", [thread], options);
    if (explained.value.key === key) explained.value = { key, messages: document.explained };
  } catch (error) {
    const failure = error instanceof CallError ? error.failure : { message: (error as Error).message };
    if (explained.value.key === key) explained.value = { key, failure };
  }
}

function Request() {
  useSignalEffect(() => {
    const { thread, turn } = place.value;
    if (thread && turn && log.value.thread === thread && log.value.row) void explainTurn(thread, turn, log.value.list.length);
  });
  const { thread, turn } = place.value, { messages, failure, key } = explained.value;
  if (!turn || !key.startsWith(`${thread} ${turn} `)) return null;
  return (
    <section aria-label="Messages with origins">
      <h3>{turn === "all" ? "All messages" : `What the model got in turn ${turn}`}</h3>
      {failure ? <FailureView failure={failure} /> : !messages ? <p class="empty">Loading…</p> : messages.map((message, at) => (
        <div key={at} class={`message ${message.role}`}>
          <span class="role">{message.role}</span>
          <pre>{message.pieces.map((piece, index) => {
            const label = described(piece.origin), kind = `s ${piece.origin.kind}`;
            return piece.origin.file
              ? <button key={index} class={`${kind} piece`} title={label} onClick={() => openSource(piece.origin)}>{visible(piece.text)}</button>
              : <span key={index} class={kind} title={label}>{visible(piece.text)}</span>;
          })}</pre>
          <p class="hint">from {[...new Set(message.pieces.map((piece) => described(piece.origin)))].join("; ")}</p>
        </div>
      ))}
    </section>
  );
}

function openSource(origin: Origin) {
  const prompt = log.value.row?.directive ?? "";
  if (place.value.prompt !== prompt && prompts.value?.some((one) => one.id === prompt)) go({ prompt, values: {}, file: "", visibility: {}, fit: "", language: "" });
  goToOrigin(origin);
}

// ---- What a user can do ------------------------------------------------------------------------------------------------------

const limits = signal("");
const fork = signal({ model: "", prompt: "" });
/** A permission that has to be allowed again before a command runs. */
const asks = signal<{ failure: Failure; again: () => void } | null>(null);

function failed(error: unknown, again: (behind: unknown) => void) {
  const failure = error instanceof CallError ? error.failure : { message: (error as Error).message };
  // The thread had permissions: the user decides again, as on the command line.
  if (failure.code === "CB737") asks.value = { failure, again: () => again(failure.events) };
  else say(failure.message + (failure.hint ? ` (${failure.hint})` : ""), "error");
}

const given = () => limits.value.split(/[\s,]+/).filter(Boolean);

async function resume(thread: string, behind?: unknown) {
  asks.value = null;
  const options: Record<string, string | number | boolean | string[]> = { limit: given() };
  if (typeof behind === "number") Object.assign(options, { "allow-again": true, behind });
  try {
    await command("thread resume", [thread], options);
    say("resumed");
    void follow(thread);
  } catch (error) {
    failed(error, (seen) => void resume(thread, seen));
  }
  void loadRows();
}

async function cancel(thread: string) {
  try {
    await command("thread cancel", [thread]);
    say("cancelled");
  } catch (error) {
    failed(error, () => {});
  }
  void loadRows();
}

async function startFork(thread: string, turn: string, allow = false) {
  asks.value = null;
  const { model, prompt } = fork.value;
  const options: Record<string, string | boolean | string[]> = { turn, limit: given() };
  if (model) options.model = model;
  if (prompt) options.prompt = prompt;
  if (allow) options["allow-again"] = true;
  try {
    const { document } = await command<{ thread_id: string }>("thread fork", [thread], options);
    await loadRows();
    go({ thread: document.thread_id, turn: "", against: thread });
    say(`forked from turn ${turn}`);
  } catch (error) {
    failed(error, () => void startFork(thread, turn, true));
  }
}

function Actions({ thread, row }: { thread: string; row: Row }) {
  const { turn, against } = place.value;
  const canResume = !isOpen(row.status) && row.status !== "completed" && row.status !== "continued";
  const isTurn = turn !== "" && turn !== "all";
  return (
    <>
      <div class="tools">
        {!cannotEnd.includes(row.status) && <button class="act" onClick={() => void cancel(thread)}>Cancel</button>}
        {canResume && <button class="act" onClick={() => void resume(thread)}>Resume</button>}
        {(canResume || isTurn) && (
          <label>New limits <input placeholder="turns=50 spend=2" value={limits.value} onInput={(event) => (limits.value = event.currentTarget.value)} /></label>
        )}
        <label>Request of <select value={turn} onChange={(event) => go({ turn: event.currentTarget.value })}>
          <option value="">no turn</option>
          {turns.value.map((one) => <option key={one} value={String(one)}>turn {one}</option>)}
          <option value="all">all turns</option>
        </select></label>
        <label>Compare with <select value={against} onChange={(event) => go({ against: event.currentTarget.value })}>
          <option value="">nothing</option>
          {(rows.value ?? []).filter((one) => one.thread_id !== thread).map((one) => <option key={one.thread_id} value={one.thread_id}>{one.thread_id} ({one.status})</option>)}
        </select></label>
      </div>
      {isTurn && (
        <form class="tools" aria-label="Fork" onSubmit={(event) => { event.preventDefault(); void startFork(thread, turn); }}>
          <b>Fork from turn {turn}</b>
          <label>with the model <input placeholder={row.model ?? "the same"} value={fork.value.model} onInput={(event) => (fork.value = { ...fork.value, model: event.currentTarget.value })} /></label>
          <label>and the prompt <input placeholder={row.directive} list="prompt-ids" value={fork.value.prompt} onInput={(event) => (fork.value = { ...fork.value, prompt: event.currentTarget.value })} /></label>
          <datalist id="prompt-ids">{(prompts.value ?? []).slice(0, 500).map((one) => <option key={one.id} value={one.id} />)}</datalist>
          <button class="act">Fork</button>
        </form>
      )}
      {asks.value && (
        <div class="notice" role="alert">
          <p>{visible(asks.value.failure.message)}</p>
          <button class="act" onClick={() => asks.value?.again()}>Allow this again</button>
          <button class="act" onClick={() => (asks.value = null)}>Do not allow it</button>
        </div>
      )}
    </>
  );
}

function Limits({ row }: { row: Row }) {
  const last = log.value.list.findLast((event) => event.payload.limits)?.payload.limits as Record<string, number> | undefined;
  const { cost } = row, tokens = cost.input_tokens + cost.output_tokens, known = cost.spend_known !== false;
  return (
    <div class="measures">
      <Bar label="turns" value={cost.turns} most={last?.turns ?? null}>{cost.turns} of {last?.turns ?? "?"}</Bar>
      <Bar label="tokens" value={tokens} most={last?.tokens ?? null}>{tokens.toLocaleString("en")} of {last?.tokens?.toLocaleString("en") ?? "?"}</Bar>
      <Bar label="money" value={cost.spend} most={known ? last?.spend ?? null : null}>{known ? "" : "at least "}{cost.spend} of {last?.spend ?? "?"} {String(last?.spend_currency ?? "")}</Bar>
      <Bar label="time" value={cost.elapsed_seconds} most={last?.duration_seconds ?? null}>{cost.elapsed_seconds.toFixed(1)} of {last?.duration_seconds ?? "?"} s</Bar>
    </div>
  );
}

const link = (thread: string | null | undefined, title: string) =>
  thread ? <p class="hint">{title} <button class="link" onClick={() => go({ thread, turn: "" })}>{thread}</button></p> : null;

function Details() {
  const { thread, against } = place.value, { row } = log.value;
  if (!thread) return <p class="empty">Choose a thread. Run a prompt to start one.</p>;
  if (log.value.thread === thread && row === null) return log.value.list.length === 0 ? <p class="empty">Loading… A thread that is not in the store has no log.</p> : null;
  if (!row) return null;
  const started = log.value.list[0]?.payload, forked = started?.forked_from as { thread_id: string; turn: number } | null | undefined;
  const error = row.result?.error;
  return (
    <>
      <h2>{row.directive} <span class={`badge ${row.status}`}>{row.status}</span> <span class="kind">{thread} · {row.model}</span></h2>
      {row.warning && <p class="why">The log: {row.warning}</p>}
      {error && <p class="why">{error.code} {visible(error.message)}{error.hint ? ` Help: ${error.hint}` : ""}</p>}
      {forked && link(forked.thread_id, `Forked from turn ${forked.turn} of`)}
      {link(row.parent_id, "Started by")}
      {link(row.continuation_of, "Continues")}
      {link(row.continuation_thread_id, "Continued by")}
      <Limits row={row} />
      <Actions thread={thread} row={row} />
      {against && <Compare left={against} right={{ row, list: log.value.list }} />}
      <Log />
      <Request />
    </>
  );
}

export function Threads() {
  useEffect(() => {
    void loadRows();
    const stop = effect(() => {
      const { thread } = place.value;
      if (thread && thread !== log.peek().thread) { opened.value = -1; asks.value = null; void follow(thread); }
    });
    // Other processes start threads too, so the list is read from time to time.
    let ticks = 0;
    const timer = setInterval(() => {
      if (document.visibilityState !== "visible") return;
      if (++ticks % 3 === 0 || rows.value?.some((row) => isOpen(row.status))) void loadRows();
    }, 2000);
    return () => { stop(); clearInterval(timer); following?.abort(); log.value = { thread: "", row: null, list: [] }; };
  }, []);
  return (
    <main class="threads">
      <nav class="pane library" aria-label="Threads">
        <div class="bar"><button class="act" onClick={() => void loadRows()}>Refresh</button></div>
        <ul class="list rows" role="list">
          {(rows.value ?? []).map((row) => (
            <li key={row.thread_id}>
              <button class="thread" aria-current={row.thread_id === place.value.thread} onClick={() => go({ thread: row.thread_id, turn: "", against: "" })}>
                <b>{row.directive}</b> <span class={`badge ${row.status}`}>{row.status}</span><br />
                <span class="kind">{new Date(row.created_at).toLocaleString()} · {row.cost.turns} {row.cost.turns === 1 ? "turn" : "turns"} · {row.cost.elapsed_seconds.toFixed(1)} s · {row.cost.spend_known === false ? "cost unknown" : `${row.cost.spend} spent`}</span>
              </button>
            </li>
          ))}
          {rows.value?.length === 0 && <li class="empty">There are no threads.</li>}
        </ul>
      </nav>
      <section class="page" aria-label="Thread"><Details /></section>
    </main>
  );
}

/** What an export of the view needs. */
export const shownThread = () => ({ ...log.value, messages: explained.value.messages ?? [] });
export const eventText = (event: Event) => visible(summary(event));
