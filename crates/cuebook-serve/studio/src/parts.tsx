// Small parts that several views use.

import type { ComponentChildren } from "preact";
import type { Failure } from "./api";
import { lines, near } from "./diff";
import { goToOrigin } from "./state";

/** Characters that are not visible, or that change the direction of text, are shown as their code. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

export function Json({ value }: { value: unknown }) {
  return <pre class="json" tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>;
}

/** The difference between two texts. */
export function Difference({ before, after, label }: { before: string; after: string; label: string }) {
  const shown = near(lines(before, after));
  return (
    <pre class="diff excerpt" tabIndex={0} aria-label={label}>
      {shown.map((line, at) => (
        <span key={at} class={line.kind}>{{ new: "+ ", gone: "- ", same: "  ", skipped: "… " }[line.kind]}{visible(line.text)}{"\n"}</span>
      ))}
    </pre>
  );
}

export function FailureView({ failure }: { failure: Failure }) {
  return (
    <div class={`failure ${failure.severity === "warning" ? "warning" : ""}`} role="alert">
      <p><b>{failure.code ? `${failure.code}: ` : ""}</b>{visible(failure.message)}</p>
      {failure.file && (
        <button class="link" onClick={() => goToOrigin({ kind: "literal", file: failure.file, start: failure.range?.[0] ?? 0, end: failure.range?.[1] ?? 0 })}>
          {visible(failure.file)}{failure.line ? `:${failure.line}:${failure.column ?? 1}` : ""}
        </button>
      )}
      {failure.excerpt && <pre class="excerpt" tabIndex={0}>{visible(failure.excerpt)}</pre>}
      {failure.hint && <p class="hint">help: {visible(failure.hint)}</p>}
    </div>
  );
}

/** A number as a person reads it. */
export const count = (value: unknown) => (typeof value === "number" ? value.toLocaleString("en") : "?");

/** A bar from zero to a limit. */
export function Bar({ label, value, most, children }: { label: string; value: number; most: number | null; children?: ComponentChildren }) {
  return (
    <div class="measure">
      <span class="kind">{label}</span>
      <meter min={0} max={most || 1} value={most ? Math.min(value, most) : 0} aria-label={`${label}: ${value} of ${most ?? "no limit"}`} />
      <span>{children}</span>
    </div>
  );
}
