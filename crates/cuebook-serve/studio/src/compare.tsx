// Two runs side by side, turn by turn.

import { signal, useSignalEffect } from "@preact/signals";
import { Difference, Json } from "./parts";
import { go, place, say } from "./state";
import { callsOf, type Event, isOpen, readEvents, type Row, textOf } from "./threads";

interface Run { row: Row | null; list: Event[] }
const other = signal<{ thread: string; run: Run | null }>({ thread: "", run: null });

/** Reads the other run, and again while it runs. */
async function read(thread: string) {
  try {
    for (;;) {
      const run = await readEvents(thread);
      if (other.value.thread !== thread || place.value.against !== thread) return;
      if (run.list.length !== other.value.run?.list.length || run.row?.status !== other.value.run.row?.status) other.value = { thread, run };
      if (!run.row || !isOpen(run.row.status)) return;
      await new Promise((done) => setTimeout(done, 1000));
    }
  } catch (error) {
    say((error as Error).message, "error");
  }
}

/** The answers of a run, each with its turn and its calls as text. */
function answers(list: Event[]): string[] {
  return list.filter((event) => event.event_type === "cognition_out").map((event) => {
    const calls = callsOf(event.payload.message).map((one) => `→ ${one.function?.name} ${one.function?.arguments}`);
    return [textOf(event.payload.message), ...calls].filter(Boolean).join("\n");
  });
}

/** What the model got first: the messages with which the thread began. */
const request = (list: Event[]) => {
  const messages = (list[0]?.payload.messages ?? []) as { role: string }[];
  return messages.map((message) => `[${message.role}]\n${textOf(message)}`).join("\n");
};

export function Compare({ left, right }: { left: string; right: Run }) {
  useSignalEffect(() => {
    const thread = place.value.against;
    if (!thread || other.value.thread === thread) return;
    other.value = { thread, run: null };
    void read(thread);
  });
  const { thread, run } = other.value;
  if (thread !== left || !run) return <p class="empty">Loading…</p>;
  // A fork of the other run begins in the middle of it.
  const forked = right.list[0]?.payload.forked_from as { thread_id: string; turn: number } | null | undefined;
  const skipped = forked?.thread_id === left ? forked.turn - 1 : 0;
  const [before, after] = [answers(run.list).slice(skipped), answers(right.list)];
  const facts = (one: Run): [string, string][] => [
    ["status", one.row?.status ?? "?"], ["model", one.row?.model ?? "?"], ["prompt", one.row?.directive ?? "?"], ["turns", String(one.row?.cost.turns ?? 0)],
    ["tokens", String((one.row?.cost.input_tokens ?? 0) + (one.row?.cost.output_tokens ?? 0))], ["spent", String(one.row?.cost.spend ?? "?")],
    ["seconds", one.row?.cost.elapsed_seconds.toFixed(1) ?? "?"],
  ];
  const [a, b] = [facts(run), facts(right)];
  const [first, second] = [request(run.list), request(right.list)];
  return (
    <section class="card" aria-label="Comparison">
      <h3>Compared with <button class="link" onClick={() => go({ thread: left, against: right.row?.thread_id ?? "", turn: "" })}>{left}</button></h3>
      <table>
        <thead><tr><th scope="col">run</th><th scope="col">{left}</th><th scope="col">{right.row?.thread_id}</th></tr></thead>
        <tbody>{a.map(([name, value], at) => (
          <tr key={name} class={value === b[at][1] ? "" : "differs"}><th scope="row">{name}</th><td>{value}</td><td>{b[at][1]}</td></tr>
        ))}</tbody>
      </table>
      <h3>The first request {first === second && <span class="kind">is the same</span>}</h3>
      {first !== second && <Difference before={first} after={second} label="Differences of the first request" />}
      {Array.from({ length: Math.max(before.length, after.length) }, (_, at) => (
        <div key={at}>
          <h3>Answer {at + 1 + skipped} {before[at] === after[at] && <span class="kind">is the same</span>}</h3>
          {before[at] !== after[at] && (
            <div class="side-by-side">{[before[at], after[at]].map((text, side) => (
              <pre key={side} class="text" tabIndex={0} aria-label={`Answer ${at + 1 + skipped} of ${side === 0 ? left : right.row?.thread_id}`}>{text ?? "no answer"}</pre>
            ))}</div>
          )}
        </div>
      ))}
      {JSON.stringify(run.list[0]?.payload.inputs) !== JSON.stringify(right.list[0]?.payload.inputs) && (
        <details><summary>The inputs differ</summary><Json value={[run.list[0]?.payload.inputs, right.list[0]?.payload.inputs]} /></details>
      )}
    </section>
  );
}
