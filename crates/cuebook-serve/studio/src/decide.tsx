// Decisions: conflicts between prompts, packs and their code, and what the project requests.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, type Failure } from "./api";
import { Difference, FailureView, visible } from "./parts";
import { loadLibrary, prompts, say } from "./state";

interface Candidate { source: string; version: string; pack_id: string | null; dialect: string; text?: string; error?: Failure }
interface Request { power: string; subject: string; shown: string; state: string }
interface Pack { pack_id: string; name?: string; version?: string; description?: string; prompts?: string[]; replaces?: Record<string, Record<string, string>>; approval?: string; problem?: string }
interface PackCode { pack_id: string; approval: string; digest: string; files: { path: string; role: string; permissions: string[]; text: string }[]; changes: { path: string; change: string; before: string | null; after: string | null }[] }
interface Proposal { kind: string; target: string; replacement: string; again: boolean }
interface Manifest { name: string; version: string; description?: string; author?: string; prompts?: string[]; tools?: string[]; variable_providers?: { file: string; namespace: string }[] }
interface Proposed { pack_id: string; manifest: Manifest; installed: string | null; files: number; bytes: number; skipped: string[]; proposals: Proposal[]; findings: Failure[]; digest: string }
interface Provider { id: string; chosen: string | null; sources: { pack_id: string; source: string }[] }

const conflicts = signal<{ id: string; candidates: Candidate[] }[]>([]);
const requests = signal<Request[]>([]);
const packs = signal<Pack[]>([]);
const code = signal<PackCode | null>(null);
const path = signal("");
const proposed = signal<Proposed | null>(null);
/** The replacements that the user has accepted, by kind and target. */
const accepted = signal<Set<string>>(new Set());
const providers = signal<Provider[]>([]);

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
    providers.value = await call("providers");
  });
}

const choose = (id: string, source: string) => attempt(async () => {
  await call("resolve", { id, source });
  say(`${id} now comes from ${source}`);
  await loadLibrary();
  await load();
});

function Conflicts() {
  if (conflicts.value.length === 0 && providers.value.length === 0) return <p class="empty">Every prompt has one candidate.</p>;
  return <>{providers.value.map(({ id, sources, chosen }) => (
    <article key={id} class="card">
      <h3>{visible(id)} <span class={`badge ${chosen ? "good" : "warn"}`}>{chosen ? "chosen" : "choose"}</span></h3>
      {sources.map((one) => (
        <p key={one.source}><b>{visible(one.pack_id)}</b> <span class="kind">{visible(one.source)}</span>{" "}
          {chosen === one.source ? <span class="badge good">in use</span> : <button class="act" onClick={() => void choose(id, one.source)}>Use this one</button>}</p>
      ))}
    </article>
  ))}{conflicts.value.map(({ id, candidates }) => (
    <article key={id} class="card">
      <h3>{visible(id)}</h3>
      <div class="side-by-side">
        {candidates.map((candidate) => (
          <section key={candidate.source} aria-label={candidate.source}>
            <p><b>{visible(candidate.source)}</b> <span class="kind">{candidate.version}{candidate.pack_id ? `, pack ${candidate.pack_id}` : ""}</span></p>
            {candidate.error ? <FailureView failure={candidate.error} /> : <pre class="text" tabIndex={0} aria-label={`What ${candidate.source} renders`}>{visible(candidate.text ?? "")}</pre>}
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

/** The code of a pack, or what changed in the pack since it was approved. */
function Code({ shown }: { shown: PackCode }) {
  const changed = new Map(shown.changes.map((change) => [change.path, change]));
  const others = shown.changes.filter((change) => !shown.files.some((file) => file.path === change.path));
  const isAgain = shown.changes.length > 0;
  return (
    <div class="code">
      {isAgain && <p class="hint">The pack has changed since you approved it. Files without a mark are unchanged.</p>}
      {shown.files.map((file) => {
        const change = changed.get(file.path);
        return (
          <details key={file.path} open={!isAgain || !!change}>
            <summary>{visible(file.path)} <span class="kind">{file.role}, may: {file.permissions.join(", ") || "nothing special"}</span>
              {change && <span class="badge warn">{change.change}</span>}</summary>
            {change?.before != null ? <Difference before={change.before} after={file.text} label={`Changes of ${file.path}`} />
              : <pre class="excerpt" tabIndex={0} aria-label={`Code of ${file.path}`}>{visible(file.text)}</pre>}
          </details>
        );
      })}
      {others.map((change) => (
        <details key={change.path} open>
          <summary>{visible(change.path)} <span class="badge warn">{change.change}</span></summary>
          {change.before === null && change.after === null ? <p class="hint">Its text is too large, or was not stored.</p>
            : <Difference before={change.before ?? ""} after={change.after ?? ""} label={`Changes of ${change.path}`} />}
        </details>
      ))}
      {shown.files.length === 0 && <p class="hint">This pack has no code.</p>}
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
        void attempt(async () => { accepted.value = new Set(); proposed.value = null; proposed.value = await call("packs/install", { path: path.value }); });
      }}>
        <label>Install from <input value={path.value} placeholder="/path/to/a/folder or archive" onInput={(event) => (path.value = event.currentTarget.value)} /></label>
        <button class="act">Look at it</button>
      </form>
      {proposed.value && <ProposalView shown={proposed.value} />}
      {packs.value.length === 0 && <p class="empty">No packs are installed.</p>}
      {packs.value.map((pack) => (
        <article key={pack.pack_id} class="card">
          <h3>{visible(pack.name ?? pack.pack_id)} <span class="kind">{pack.version}</span>{" "}
            {pack.approval && pack.approval !== "not needed" && <span class={`badge ${pack.approval === "approved" ? "good" : "warn"}`}>code: {pack.approval === "missing" ? "not approved" : pack.approval}</span>}</h3>
          {pack.problem && <p class="why">{visible(pack.problem)}</p>}
          {pack.description && <p>{visible(pack.description)}</p>}
          <p class="hint">prompts: {visible(pack.prompts?.join(", ") || "none")}</p>
          {!pack.problem && <button class="act" onClick={() => void attempt(async () => { code.value = await call("packs/code", { id: pack.pack_id }); })}>
            {pack.approval === "changed" ? "Show what changed" : "Show its code"}</button>}
          {code.value?.pack_id === pack.pack_id && <Code shown={code.value} />}
        </article>
      ))}
    </>
  );
}

function ProposalView({ shown }: { shown: Proposed }) {
  const key = (one: Proposal) => `${one.kind} ${one.target}`;
  const turn = (one: Proposal) => {
    const next = new Set(accepted.value);
    if (!next.delete(key(one))) next.add(key(one));
    accepted.value = next;
  };
  const install = () => attempt(async () => {
    const accept = shown.proposals.filter((one) => accepted.value.has(key(one))).map(({ kind, target }) => ({ kind, target }));
    packs.value = await call("packs/install", { path: path.value, digest: shown.digest, accept });
    proposed.value = null;
    say(`installed ${shown.pack_id}`);
    await loadLibrary();
    await load();
  });
  const { manifest } = shown;
  const code = (manifest.variable_providers ?? []).map((one) => `${one.namespace} (${one.file})`);
  return (
    <article class="card" aria-label="A pack to install">
      <h3>{visible(manifest.name)} <span class="kind">{visible(manifest.version)}{shown.installed ? `, replaces version ${visible(shown.installed)}` : ""} · {shown.files} files, {shown.bytes.toLocaleString("en")} bytes</span></h3>
      {manifest.description && <p>{visible(manifest.description)}</p>}
      <p class="hint">prompts: {visible(manifest.prompts?.join(", ") || "none")}{code.length > 0 ? `; values by code: ${visible(code.join(", "))}` : ""}</p>
      {shown.skipped.length > 0 && <p class="hint">left out: {visible(shown.skipped.join(", "))}</p>}
      {shown.findings.map((finding, at) => <FailureView key={at} failure={finding} />)}
      {shown.proposals.map((one) => (
        <p key={key(one)}><label class="check"><input type="checkbox" checked={accepted.value.has(key(one))} onChange={() => turn(one)} />
          {one.again ? <>This version changes <b>{visible(one.replacement)}</b>, which replaces the {one.kind} <b>{visible(one.target)}</b>. Allow it.</>
            : <>This pack replaces the {one.kind} <b>{visible(one.target)}</b> with its own <b>{visible(one.replacement)}</b>. Allow it.</>}</label></p>
      ))}
      <p class="hint">Code of a pack runs only after you have seen it and approved it.</p>
      <button class="act" onClick={() => void install()}>{shown.installed ? "Upgrade" : "Install"}</button>
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
