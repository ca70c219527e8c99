/** A position of the protocol. */
export interface Position {
  line: number;
  character: number;
}

/** A part of a rendered text, with where it is written. */
export interface Part {
  text: string;
  kind: string;
  label: string;
  location: { uri: string; range: { start: Position; end: Position } } | null;
}

export interface Preview {
  prompt: string;
  parts: Part[];
  placeholders: string[];
}

function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character <= other.character);
}

/** The parts that are written at a position of a file: the narrowest first. */
export function partsAt(parts: Part[], uri: string, at: Position): number[] {
  const found = parts.map((_, index) => index).filter((index) => {
    const location = parts[index].location;
    return location?.uri === uri && isBefore(location.range.start, at) && isBefore(at, location.range.end);
  });
  const lines = (index: number) => {
    const range = parts[index].location!.range;
    return (range.end.line - range.start.line) * 10_000 + range.end.character - range.start.character;
  };
  return found.sort((one, other) => lines(one) - lines(other));
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => ESCAPES[letter]);
}

/** The origin of a part as a class of the page: text of another file than the open one has its own colour. */
export function origin(part: Part, uri: string): string {
  return part.kind === "literal" && part.location && part.location.uri !== uri ? "literal other" : part.kind;
}

/** The page of a preview. Values are text: nothing in them is markup, and only the script with this nonce runs. */
export function page(preview: Preview, uri: string, nonce: string): string {
  const spans = preview.parts.map(
    (part, index) =>
      `<span class="${escaped(origin(part, uri))}" data-part="${index}" tabindex="0" title="${escaped(part.label)}">${escaped(part.text)}</span>`,
  );
  const names = preview.placeholders.map((name) => `<code>${escaped(name)}</code>`).join(", ");
  const note = names ? `<p>No value: ${names}. The text shows their names.</p>` : "";
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(preview.prompt)}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<style nonce="${nonce}">
pre { white-space: pre-wrap; font-family: var(--vscode-editor-font-family); }
.value, .rich { background: var(--vscode-diffEditor-insertedTextBackground); }
.hook { background: var(--vscode-diffEditor-removedTextBackground); }
.other { background: var(--vscode-editor-wordHighlightBackground); }
.frame { opacity: 0.7; }
[data-part] { cursor: pointer; }
.here { outline: 1px solid var(--vscode-focusBorder); }
</style></head><body>${note}<pre>${spans.join("")}</pre>
<script nonce="${nonce}">
const editor = acquireVsCodeApi();
const open = (event) => {
  const part = event.target.closest("[data-part]");
  if (part && (event.type === "click" || event.key === "Enter")) editor.postMessage(Number(part.dataset.part));
};
addEventListener("click", open);
addEventListener("keydown", open);
addEventListener("message", (event) => {
  document.querySelectorAll(".here").forEach((part) => part.classList.remove("here"));
  const parts = event.data.map((index) => document.querySelector('[data-part="' + index + '"]')).filter(Boolean);
  parts.forEach((part) => part.classList.add("here"));
  parts[0]?.scrollIntoView({ block: "nearest" });
});
</script></body></html>`;
}
