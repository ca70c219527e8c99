// Differences between two texts, line by line.

export interface Line { kind: "same" | "gone" | "new"; text: string }

/** Texts with more differing lines than this are shown as a whole. */
const MOST = 1500;

/** The lines of two texts: those of both, those of the first alone, and those of the second alone. */
export function lines(before: string, after: string): Line[] {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const same = (text: string): Line => ({ kind: "same", text });
  const middle = changed(a.slice(start, endA), b.slice(start, endB));
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(endA).map(same)];
}

function changed(a: string[], b: string[]): Line[] {
  const gone = (text: string): Line => ({ kind: "gone", text }), fresh = (text: string): Line => ({ kind: "new", text });
  if (a.length > MOST || b.length > MOST) return [...a.map(gone), ...b.map(fresh)];
  // The lengths of the longest common parts of what is left of both.
  const width = b.length + 1, longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const found: Line[] = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push({ kind: "same", text: a[i] }); i++; j++; }
    else if (i < a.length && (j >= b.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) found.push(gone(a[i++]));
    else found.push(fresh(b[j++]));
  }
  return found;
}

/** The lines near a difference; a run of other lines is one line with their number. */
export function near(all: Line[], around = 3): (Line | { kind: "skipped"; text: string })[] {
  const shown = new Array<boolean>(all.length).fill(false);
  all.forEach((line, at) => {
    if (line.kind === "same") return;
    for (let next = Math.max(0, at - around); next <= Math.min(all.length - 1, at + around); next++) shown[next] = true;
  });
  const found: (Line | { kind: "skipped"; text: string })[] = [];
  for (let at = 0; at < all.length; at++) {
    if (shown[at]) { found.push(all[at]); continue; }
    let end = at;
    while (end < all.length && !shown[end]) end++;
    found.push({ kind: "skipped", text: `${end - at} ${end - at === 1 ? "line" : "lines"} that both have` });
    at = end - 1;
  }
  return found;
}
