import assert from "node:assert/strict";
import test from "node:test";
import parts from "../out/parts.js";

const { escaped, origin, page, partsAt } = parts;

const at = (line, character) => ({ line, character });
const part = (text, start, end, uri = "file:///a.md") => ({
  text,
  kind: "literal",
  label: "a.md:1",
  location: { uri, range: { start, end } },
});

test("the cursor marks the narrowest part of its file first", () => {
  const all = [part("wide", at(0, 0), at(5, 0)), part("narrow", at(1, 2), at(1, 8)), part("other", at(0, 0), at(9, 0), "file:///b.md")];
  assert.deepEqual(partsAt(all, "file:///a.md", at(1, 3)), [1, 0]);
  assert.deepEqual(partsAt(all, "file:///a.md", at(4, 0)), [0]);
  assert.deepEqual(partsAt(all, "file:///c.md", at(1, 3)), []);
});

test("a value is text in the page", () => {
  const value = { text: "<script>x</script>", kind: "value", label: '"\'&', location: null };
  const shown = page({ prompt: "</title>", parts: [value], placeholders: ["<b>"] }, "file:///a.md", "n");
  assert.ok(!shown.includes("<script>x"));
  assert.ok(shown.includes("&lt;script&gt;x&lt;/script&gt;"));
  assert.ok(shown.includes("<code>&lt;b&gt;</code>"));
  assert.equal(escaped("\"'&"), "&quot;&#39;&amp;");
});

test("text of another file has its own colour", () => {
  const one = part("x", at(0, 0), at(0, 1));
  assert.equal(origin(one, "file:///a.md"), "literal");
  assert.equal(origin(one, "file:///b.md"), "literal other");
  assert.equal(origin({ ...one, kind: "value" }, "file:///b.md"), "value");
});
