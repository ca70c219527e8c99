// Decisions: conflicts between prompts, packs and their code, and what the project requests.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, type Failure } from "./api";
import { FailureView } from "./result";
import { loadLibrary, prompts, say } from "./state";

interface Candidate { source: string; version: string; pack_id: string | null; dialect: string; text?: string; error?: Failure }
interface Request { power: string; subject: string; shown: string; state: string }
interface Pack { pack_id: string; name?: string; version?: string; description?: string; prompts?: string[]; replaces?: Record<string, Record<string, string>>; approval?: string; problem?: string }
interface PackCode { pack_id: string; approval: string; digest: string; files: { path: string; role: string; permissions: string[]; text: string }[]; changes: { path: string; change: string; before: string | null; after: string | null }[] }
interface Proposed { pack_id: string; name: string; version: string; installed: string | null; proposals: { kind: string; target: string; replacement: string }[] }

const conflicts = signal<{ id: string; candidates: Candidate[] }[]>([]);
const requests = signal<Request[]>([]);
const packs = signal<Pack[]>([]);
const code = signal<PackCode | null>(null);
const path = signal("");
const proposed = signal<Proposed | null>(null);

async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    say((error as Error).message, "error");
  }
}

async function load() {
  const ids = [...new Set((prompts.value ?? []).filter((prompt) => prompt.conflict).map((prompt) => prompt.id))];
  await attempt(async () => {
    conflicts.value = await Promise.all(ids.map((id) => call<{ id: string; candidates: Candidate[] }>("candidates", { id })));
    requests.value = (await call<{ requests: Request[] }>("requests")).requests;
    packs.value = await call("packs");
  });
}

const choose = (id: string, source: string) => attempt(async () => {
  await call("resolve", { id, source });
  say(`${id} now comes from ${source}`);
  await loadLibrary();
  await load();
});

/** Characters that are not visible, or that change the direction of text, are shown as their code. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

function Conflicts() {
  if (conflicts.value.length === 0) return <p class="empty">Every prompt has one candidate.</p>;
  return <>{conflicts.value.map(({ id, candidates }) => (
    <article key={id} class="card">
      <h3>{id}</h3>
      <div class="side-by-side">
        {candidates.map((candidate) => (
          <section key={candidate.source} aria-label={candidate.source}>
            <p><b>{visible(candidate.source)}</b> <span class="kind">{candidate.version}{candidate.pack_id ? `, pack ${candidate.pack_id}` : ""}</span></p>
            {candidate.error ? <FailureView failure={candidate.error} /> : <pre class="text" tabIndex={0}>{candidate.text}</pre>}
            <button class="act" onClick={() => void choose(id, candidate.source)}>Use this one</button>
          </section>
        ))}
      </div>
    </article>
  ))}</>;
}

function Requests() {
  if (requests.value.length === 0) return <p class="empty">This project requests nothing.</p>;
  return <>{requests.value.map((request) => (
    <article key={`${request.power} ${request.subject}`} class="card">
      <h3>{visible(request.subject)} <span class="kind">{request.power}</span> <span class={`badge ${request.state === "granted" ? "good" : "warn"}`}>{request.state}</span></h3>
      <pre class="excerpt" tabIndex={0}>{visible(request.shown)}</pre>
      {request.state === "granted"
        ? <button class="act" onClick={() => void attempt(async () => { requests.value = (await call<{ requests: Request[] }>("revoke", { subject: request.subject })).requests; })}>Revoke</button>
        : <button class="act" onClick={() => void attempt(async () => { requests.value = (await call<{ requests: Request[] }>("grant", request)).requests; say(`granted ${request.subject}`); })}>Grant this</button>}
    </article>
  ))}</>;
}

function Code({ shown }: { shown: PackCode }) {
  const changed = new Map(shown.changes.map((change) => [change.path, change]));
  return (
    <div class="code">
      {shown.files.map((file) => {
        const change = changed.get(file.path);
        return (
          <details key={file.path} open>
            <summary>{visible(file.path)} <span class="kind">{file.role}, may: {file.permissions.join(", ") || "nothing special"}</span>
              {change && <span class="badge warn">{change.change}</span>}</summary>
            {change?.before && <><p class="hint">before</p><pre class="excerpt gone" tabIndex={0}>{visible(change.before)}</pre><p class="hint">now</p></>}
            <pre class="excerpt" tabIndex={0}>{visible(file.text)}</pre>
          </details>
        );
      })}
      {shown.approval !== "approved" && shown.files.length > 0 && (
        <button class="act" onClick={() => void attempt(async () => {
          code.value = await call("packs/approve", { id: shown.pack_id, digest: shown.digest });
          say(`the code of ${shown.pack_id} may run`);
          await load();
        })}>Allow this code to run</button>
      )}
    </div>
  );
}

function Packs() {
  return (
    <>
      <form class="tools" onSubmit={(event) => {
        event.preventDefault();
        void attempt(async () => { proposed.value = await call("packs/install", { path: path.value }); });
      }}>
        <label>Install from <input value={path.value} placeholder="/path/to/a/folder or archive" onInput={(event) => (path.value = event.currentTarget.value)} /></label>
        <button class="act">Look at it</button>
      </form>
      {proposed.value && <Proposal shown={proposed.value} />}
      {packs.value.length === 0 && <p class="empty">No packs are installed.</p>}
      {packs.value.map((pack) => (
        <article key={pack.pack_id} class="card">
          <h3>{visible(pack.name ?? pack.pack_id)} <span class="kind">{pack.version}</span>
            {pack.approval && pack.approval !== "not_needed" && <span class={`badge ${pack.approval === "approved" ? "good" : "warn"}`}>code: {pack.approval}</span>}</h3>
          {pack.problem && <p class="why">{pack.problem}</p>}
          {pack.description && <p>{visible(pack.description)}</p>}
          <p class="hint">prompts: {visible(pack.prompts?.join(", ") || "none")}</p>
          <button class="act" onClick={() => void attempt(async () => { code.value = await call("packs/code", { id: pack.pack_id }); })}>Show its code</button>
          {code.value?.pack_id === pack.pack_id && <Code shown={code.value} />}
        </article>
      ))}
    </>
  );
}

function Proposal({ shown }: { shown: Proposed }) {
  const install = (accept: boolean) => attempt(async () => {
    packs.value = await call("packs/install", { path: path.value, accept, upgrade: shown.installed !== null });
    proposed.value = null;
    say(`installed ${shown.pack_id}`);
    await loadLibrary();
    await load();
  });
  return (
    <article class="card" aria-label="A pack to install">
      <h3>{visible(shown.name)} <span class="kind">{shown.version}{shown.installed ? `, replaces version ${shown.installed}` : ""}</span></h3>
      {shown.proposals.map((one) => <p key={one.target}>This pack replaces the {one.kind} <b>{visible(one.target)}</b> with its own <b>{visible(one.replacement)}</b>.</p>)}
      {shown.proposals.length > 0
        ? <><button class="act" onClick={() => void install(true)}>Install and allow the replacement</button>
          <button class="act" onClick={() => void install(false)}>Install without the replacement</button></>
        : <button class="act" onClick={() => void install(false)}>Install</button>}
      <button class="act" onClick={() => (proposed.value = null)}>Cancel</button>
    </article>
  );
}

export function Decide() {
  useEffect(() => void load(), [prompts.value]);
  return (
    <main class="page">
      <h2>Conflicts</h2><Conflicts />
      <h2>Packs</h2><Packs />
      <h2>What the project requests</h2><Requests />
    </main>
  );
}
