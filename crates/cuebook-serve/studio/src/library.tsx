// The library: every prompt as a tree of packs and folders, with a search. Only the rows in view are in the page, so that 10,000
// prompts scroll smoothly.

import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Listing, openPrompt, place, prompts } from "./state";

const ROW = 28;
const query = signal("");
const scrolled = signal(0);
const height = signal(600);
const BUILT_IN = "built in";
/** Folders that the user has opened or closed, against what they are at first. */
const turned = signal<Set<string>>(new Set());
/** The row that the keyboard is on. */
const active = signal(-1);

interface Row { key: string; label: string; depth: number; prompt?: Listing; count?: number; isOpen?: boolean }

/** Whether all words of a query occur in a prompt's id, name, description or tags. */
function matches(prompt: Listing, words: string[]): boolean {
  const text = `${prompt.id} ${prompt.name} ${prompt.description ?? ""} ${(prompt.tags ?? []).join(" ")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

const isBuiltIn = (prompt: Listing) => /^(ecosystem\/default\/|system:)/.test(prompt.source ?? "");

const found = computed(() => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  return (prompts.value ?? []).filter((prompt) => matches(prompt, words));
});

interface Folder { folders: Map<string, Folder>; prompts: Listing[]; count: number }

const tree = computed(() => {
  const root: Folder = { folders: new Map(), prompts: [], count: 0 };
  const seen = new Set<string>();
  for (const prompt of found.value) {
    // A prompt that several places offer is one row.
    if (prompt.conflict && seen.has(prompt.id)) continue;
    seen.add(prompt.id);
    const place = isBuiltIn(prompt) ? [BUILT_IN] : prompt.pack_id && !prompt.conflict ? ["packs", prompt.pack_id] : [];
    const parts = [...place, ...prompt.id.split("/").slice(0, -1)];
    let at = root;
    at.count++;
    for (const part of parts) {
      let next = at.folders.get(part);
      if (!next) at.folders.set(part, (next = { folders: new Map(), prompts: [], count: 0 }));
      at = next;
      at.count++;
    }
    at.prompts.push(prompt);
  }
  return root;
});

const rows = computed(() => {
  const all: Row[] = [], searching = query.value.trim() !== "";
  const by = (a: string, b: string) => Number(a === BUILT_IN) - Number(b === BUILT_IN) || (a < b ? -1 : 1);
  const visit = (folder: Folder, path: string, depth: number) => {
    for (const prompt of folder.prompts.sort((a, b) => (a.id < b.id ? -1 : 1))) {
      all.push({ key: prompt.id, label: prompt.id.split("/").at(-1)!, depth, prompt });
    }
    for (const name of [...folder.folders.keys()].sort(by)) {
      const key = `${path}${name}/`, inner = folder.folders.get(name)!;
      // The user's own folders are open at first, unless there are very many; a search opens all.
      const atFirst = name !== BUILT_IN && inner.count <= 2000;
      const isOpen = searching || turned.value.has(key) !== atFirst;
      all.push({ key, label: name, depth, count: inner.count, isOpen });
      if (isOpen) visit(inner, key, depth + 1);
    }
  };
  visit(tree.value, "", 0);
  return all;
});

function turn(row: Row) {
  const next = new Set(turned.value);
  if (!next.delete(row.key)) next.add(row.key);
  turned.value = next;
}

export function Library() {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const watch = new ResizeObserver(() => (height.value = list.current?.clientHeight ?? 600));
    if (list.current) watch.observe(list.current);
    return () => watch.disconnect();
  }, []);
  const all = rows.value;
  const first = Math.max(0, Math.floor(scrolled.value / ROW) - 10);
  const inView = all.slice(first, first + Math.ceil(height.value / ROW) + 20);
  const open = all.findIndex((row) => row.prompt?.id === place.value.prompt);
  const at = active.value >= 0 && active.value < all.length ? active.value : open;
  const show = (next: number) => {
    active.value = next;
    const element = list.current;
    if (element) element.scrollTop = Math.min(Math.max(element.scrollTop, (next + 1) * ROW - element.clientHeight), next * ROW);
  };
  const choose = (index: number) => {
    const row = all[index];
    if (!row) return;
    active.value = index;
    if (row.prompt) openPrompt(row.prompt.id);
    else turn(row);
  };
  const move = (event: KeyboardEvent) => {
    const row = all[at], isField = event.currentTarget instanceof HTMLInputElement;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step && all.length > 0) show(Math.min(all.length - 1, Math.max(0, at + step)));
    else if (event.key === "Enter") choose(at >= 0 ? at : all.findIndex((one) => one.prompt));
    else if (!isField && event.key === "Home") show(0);
    else if (!isField && event.key === "End") show(all.length - 1);
    else if (!isField && row && !row.prompt && event.key === (row.isOpen ? "ArrowLeft" : "ArrowRight")) turn(row);
    else return;
    event.preventDefault();
  };
  return (
    <nav class="pane library" aria-label="Library">
      <div class="bar">
        <input type="search" placeholder="Search prompts" aria-label="Search prompts" value={query.value}
          onInput={(event) => { query.value = event.currentTarget.value; active.value = -1; }} onKeyDown={move} />
      </div>
      <div class="rows" ref={list} tabIndex={0} role="tree" aria-label="Prompts" onKeyDown={move}
        aria-activedescendant={at >= first && at < first + inView.length ? `row-${at}` : undefined}
        onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}>
        <div style={{ height: `${all.length * ROW}px`, position: "relative" }} role="presentation">
          {inView.map((row, index) => (
            <div key={`${row.key} ${row.prompt?.source}`} id={`row-${first + index}`} role="treeitem" class={`row${first + index === at ? " active" : ""}`}
              title={row.prompt?.description ?? row.key} aria-level={row.depth + 1} aria-expanded={row.prompt ? undefined : row.isOpen}
              aria-selected={!!row.prompt && row.prompt.id === place.value.prompt}
              style={{ top: `${(first + index) * ROW}px`, paddingInlineStart: `${10 + row.depth * 14}px` }} onClick={() => choose(first + index)}>
              {!row.prompt && <span class="twist" aria-hidden="true">{row.isOpen ? "▾" : "▸"}</span>}
              <span class="name">{row.label}</span>
              {row.prompt?.conflict ? <span class="badge warn">choose</span> : <span class="kind">{row.prompt ? row.prompt.dialect : row.count}</span>}
            </div>
          ))}
        </div>
      </div>
      <div class="foot">{found.value.length === 1 ? "1 prompt" : `${found.value.length.toLocaleString("en")} prompts`}</div>
    </nav>
  );
}
