// Threads: the list, and the log of one with its messages, costs and origins.

import { computed, signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { command } from "./api";
import { described } from "./result";
import { go, type Origin, place, say } from "./state";

interface Cost { turns: number; input_tokens: number; output_tokens: number; spend: number | null; elapsed_seconds: number }
interface Row { thread_id: string; directive: string; status: string; created_at: string; updated_at: string; model: string | null; cost: Cost; events: number; result?: { error?: { message: string; code?: string } } }
interface Event { seq: number; timestamp: string; event_type: string; payload: Record<string, unknown> }

const rows = signal<Row[] | null>(null);
const events = signal<{ thread: string; list: Event[] }>({ thread: "", list: [] });
const limits = signal("");
const other = signal<{ thread: string; answers: string[] } | null>(null);
const explained = signal<{ thread: string; messages: ExplainedMessage[] } | null>(null);

interface ExplainedMessage { role: string; pieces: { text: string; origin: Origin }[] }

const isOpen = (status: string) => ["created", "running", "suspended"].includes(status);

async function loadRows() {
  try {
    rows.value = (await command<Row[]>("thread list", [], { most: 500 })).document;
  } catch (error) {
    rows.value = [];
    say((error as Error).message, "error");
  }
}

async function loadEvents(thread: string) {
  const known = events.value.thread === thread ? events.value.list : [];
  try {
    const { document } = await command<Event | Event[]>("thread tail", [thread], { after: known.at(-1)?.seq ?? 0, "no-follow": true });
    const more = (Array.isArray(document) ? document : [document]).filter((event) => event && typeof event.seq === "number");
    if (place.value.thread === thread && (more.length > 0 || events.value.thread !== thread)) events.value = { thread, list: [...known, ...more] };
  } catch (error) {
    say((error as Error).message, "error");
  }
}

/** A text for each kind of event, in a few words. */
function summary(event: Event): string {
  const { payload } = event, error = payload.error as { code?: string; message?: string } | undefined;
  const cost = payload.cost as Cost | undefined;
  const money = cost?.spend != null ? ` · ${cost.spend} spent so far` : "";
  switch (event.event_type) {
    case "thread_started": return `started with ${String((payload.model as { id?: string })?.id ?? "a model")}`;
    case "cognition_in": return `turn ${payload.turn}: request, about ${payload.tokens} tokens`;
    case "cognition_out": return `turn ${payload.turn}: ${textOf(payload.message) || "an answer without text"}${money}`;
    case "token_delta": return `… ${String(payload.text ?? "")}`;
    case "tool_call_start": return `calls ${String(payload.tool ?? payload.name ?? "a tool")}`;
    case "tool_call_result": return `result: ${short(payload.result ?? payload.output ?? payload)}`;
    case "nudge": return `asked again: ${String(payload.text ?? "")}`;
    default: return error ? `${error.code ?? ""} ${error.message ?? ""}` : short(payload);
  }
}

const short = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 300);

function textOf(message: unknown): string {
  const content = (message as { content?: unknown })?.content;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { kind?: string; value?: unknown }) => (part.kind === "text" ? String(part.value) : `[${part.kind}]`)).join("") : "";
}

const ROW = 26;
const scrolled = signal(0);

/** The log; only the rows in view are in the page, so that 50,000 events scroll smoothly. */
function Log() {
  const list = useRef<HTMLDivElement>(null);
  const opened = useRef(signal(-1)).current;
  const all = events.value.list, first = Math.max(0, Math.floor(scrolled.value / ROW) - 10);
  const visible = all.slice(first, first + 60);
  const event = all.find((one) => one.seq === opened.value);
  return (
    <>
      <div class="rows log" ref={list} tabIndex={0} role="log" aria-label="Events" onScroll={(scroll) => (scrolled.value = scroll.currentTarget.scrollTop)}>
        <div style={{ height: `${all.length * ROW}px`, position: "relative" }}>
          {visible.map((one, at) => (
            <button key={one.seq} class={`row event ${one.event_type}`} style={{ top: `${(first + at) * ROW}px` }} aria-expanded={opened.value === one.seq}
              onClick={() => (opened.value = opened.value === one.seq ? -1 : one.seq)}>
              <span class="kind">{one.seq}</span> <span class="kind">{one.timestamp.slice(11, 19)}</span> <b>{one.event_type.replaceAll("_", " ")}</b> {summary(one)}
            </button>
          ))}
        </div>
      </div>
      {event && <pre class="json" tabIndex={0}>{JSON.stringify(event.payload, null, 2)}</pre>}
    </>
  );
}

const answers = (list: Event[]) => list.filter((event) => event.event_type === "cognition_out").map((event) => textOf(event.payload.message));

async function compareWith(thread: string) {
  if (!thread) return void (other.value = null);
  try {
    const { document } = await command<Event | Event[]>("thread tail", [thread], { "no-follow": true });
    other.value = { thread, answers: answers(Array.isArray(document) ? document : [document]) };
  } catch (error) {
    say((error as Error).message, "error");
  }
}

async function explain(thread: string) {
  try {
    const { document } = await command<{ explained: ExplainedMessage[] }>("thread show", [thread], { explain: true });
    explained.value = { thread, messages: document.explained };
  } catch (error) {
    say((error as Error).message, "error");
  }
}

function Explained() {
  const shown = explained.value;
  if (!shown || shown.thread !== place.value.thread) return null;
  return (
    <section aria-label="Messages with origins">
      <h3>Messages, and where each part came from</h3>
      {shown.messages.map((message, at) => (
        <div key={at} class={`message ${message.role}`}>
          <span class="role">{message.role}</span>
          {message.pieces.map((piece, index) => (
            <p key={index} class="origin-line"><span>{piece.text}</span> <span class="kind">{described(piece.origin)}</span></p>
          ))}
        </div>
      ))}
    </section>
  );
}

const chosen = computed(() => rows.value?.find((row) => row.thread_id === place.value.thread) ?? null);

async function act(words: "thread cancel" | "thread resume", thread: string) {
  const options: Record<string, string | boolean | string[]> = {};
  if (words === "thread resume") {
    options["allow-again"] = true;
    const given = limits.value.split(/[\s,]+/).filter(Boolean);
    if (given.length > 0) options.limit = given;
  }
  try {
    await command(words, [thread], options);
    say(words === "thread cancel" ? "cancelled" : "resumed");
  } catch (error) {
    say((error as Error).message, "error");
  }
  await loadRows();
  await loadEvents(thread);
}

function Details() {
  const row = chosen.value, thread = place.value.thread;
  useSignalEffect(() => { if (place.value.thread) void loadEvents(place.value.thread); });
  useEffect(() => {
    const timer = setInterval(() => {
      if (chosen.value && isOpen(chosen.value.status)) void loadRows().then(() => loadEvents(place.value.thread));
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  if (!thread) return <p class="empty">Choose a thread.</p>;
  const started = events.value.list[0]?.payload, set = (started?.limits ?? {}) as Record<string, unknown>;
  return (
    <>
      <h2>{thread} {row && <span class={`badge ${row.status}`}>{row.status}</span>}</h2>
      {row && (
        <p class="total">{row.model ?? ""} · {row.cost.turns} of {String(set.turns ?? "?")} turns · {(row.cost.input_tokens + row.cost.output_tokens).toLocaleString("en")} of {String(set.tokens ?? "?")} tokens ·
          {" "}{row.cost.spend ?? "unknown"} of {String(set.spend ?? "?")} spent · {row.cost.elapsed_seconds.toFixed(1)} s</p>
      )}
      {row?.result?.error && <p class="why">{row.result.error.code} {row.result.error.message}</p>}
      <div class="tools">
        {row && isOpen(row.status) && <button class="act" onClick={() => void act("thread cancel", thread)}>Cancel</button>}
        {row && !isOpen(row.status) && row.status !== "completed" && (
          <><label>New limits <input placeholder="turns=50 spend=2" value={limits.value} onInput={(event) => (limits.value = event.currentTarget.value)} /></label>
            <button class="act" onClick={() => void act("thread resume", thread)}>Resume</button></>
        )}
        <button class="act" onClick={() => void explain(thread)}>Where did the messages come from?</button>
        <label>Compare with <select value={other.value?.thread ?? ""} onChange={(event) => void compareWith(event.currentTarget.value)}>
          <option value="">nothing</option>
          {(rows.value ?? []).filter((one) => one.thread_id !== thread).map((one) => <option key={one.thread_id}>{one.thread_id}</option>)}
        </select></label>
      </div>
      {other.value && (
        <div class="side-by-side">{[{ thread, answers: answers(events.value.list) }, other.value].map((one) => (
          <section key={one.thread} aria-label={one.thread}><h3>{one.thread}</h3>{one.answers.map((answer, at) => <pre key={at} class="text" tabIndex={0}>{answer}</pre>)}</section>
        ))}</div>
      )}
      <Log />
      <Explained />
    </>
  );
}

export function Threads() {
  useEffect(() => void loadRows(), []);
  return (
    <main class="threads">
      <nav class="pane library" aria-label="Threads">
        <div class="bar"><button class="act" onClick={() => void loadRows()}>Refresh</button></div>
        <ul class="list rows" role="list">
          {(rows.value ?? []).map((row) => (
            <li key={row.thread_id}>
              <button class="thread" aria-current={row.thread_id === place.value.thread} onClick={() => go({ thread: row.thread_id })}>
                <b>{row.directive}</b> <span class={`badge ${row.status}`}>{row.status}</span><br />
                <span class="kind">{new Date(row.created_at).toLocaleString()} · {row.cost.turns} turns · {row.cost.spend ?? "?"}</span>
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
