// The library: every prompt, with a search. Only the rows in view are in the page, so that 10,000 prompts scroll smoothly.

import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Listing, openPrompt, place, prompts } from "./state";

const ROW = 28;
const query = signal("");
const scrolled = signal(0);
const height = signal(600);

/** Whether all words of a query occur in a prompt's id, name, description or tags. */
function matches(prompt: Listing, words: string[]): boolean {
  const text = `${prompt.id} ${prompt.name} ${prompt.description ?? ""} ${(prompt.tags ?? []).join(" ")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

const found = computed(() => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = (prompts.value ?? []).filter((prompt) => matches(prompt, words));
  const own = (prompt: Listing) => (/^(ecosystem\/default\/|built-in:)/.test(prompt.source ?? "") ? 1 : 0);
  return all.sort((a, b) => own(a) - own(b) || (a.id < b.id ? -1 : 1));
});

export function Library() {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const watch = new ResizeObserver(() => (height.value = list.current?.clientHeight ?? 600));
    if (list.current) watch.observe(list.current);
    return () => watch.disconnect();
  }, []);
  const rows = found.value;
  const first = Math.max(0, Math.floor(scrolled.value / ROW) - 10);
  const visible = rows.slice(first, first + Math.ceil(height.value / ROW) + 20);
  const at = rows.findIndex((prompt) => prompt.id === place.value.prompt);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (!step || rows.length === 0) return;
    event.preventDefault();
    const next = Math.min(rows.length - 1, Math.max(0, at + step));
    openPrompt(rows[next].id);
    const element = list.current;
    if (element) element.scrollTop = Math.min(Math.max(element.scrollTop, (next + 1) * ROW - element.clientHeight), next * ROW);
  };
  return (
    <nav class="pane library" aria-label="Library">
      <div class="bar">
        <input type="search" placeholder="Search prompts" aria-label="Search prompts" value={query.value}
          onInput={(event) => (query.value = event.currentTarget.value)} onKeyDown={move} />
      </div>
      <div class="rows" ref={list} tabIndex={0} role="listbox" aria-label="Prompts" onKeyDown={move}
        aria-activedescendant={at >= 0 ? `prompt-${at}` : undefined}
        onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}>
        <div style={{ height: `${rows.length * ROW}px`, position: "relative" }} role="presentation">
          {visible.map((prompt, index) => (
            <div key={`${prompt.id} ${prompt.source}`} id={`prompt-${first + index}`} role="option" class="row" title={prompt.description}
              aria-selected={prompt.id === place.value.prompt} style={{ top: `${(first + index) * ROW}px` }}
              onClick={() => openPrompt(prompt.id)}>
              <span class="name">{prompt.id}</span>
              {prompt.conflict ? <span class="badge warn">choose</span> : <span class="kind">{prompt.dialect}</span>}
            </div>
          ))}
        </div>
      </div>
      <div class="foot">{rows.length === 1 ? "1 prompt" : `${rows.length.toLocaleString("en")} prompts`}</div>
    </nav>
  );
}
