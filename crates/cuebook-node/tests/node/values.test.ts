import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "./projects.js";

const book = open({ "prompts/p/template.md": "{{ v }}", "prompts/j/template.md": "{{ v | tojson }}" });

class Person {
  constructor(
    readonly name: string,
    readonly born: Date,
  ) {}
}

test("a value prints", () => {
  const values: [unknown, string][] = [
    ["text", "text"],
    [7, "7"],
    [2.5, "2.5"],
    [-0, "0"],
    [true, "True"],
    [2n ** 63n, "9223372036854775808"],
    [-(2n ** 63n), "-9223372036854775808"],
    [10n ** 30n, `1${"0".repeat(30)}`],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new URL("https://example.com/a"), "https://example.com/a"],
    [new String("boxed"), "boxed"],
    ["a\u0000b\u2028😀", "a\u0000b\u2028😀"],
  ];
  for (const [value, text] of values) {
    assert.equal(book.render("p", { v: value }).text, text);
  }
});

test("a structure is read", () => {
  const values: [unknown, string][] = [
    [null, "null"],
    [[1, "a", [true]], '[1, "a", [true]]'],
    [{ b: 1, a: { c: undefined, d: null } }, '{"a": {"d": null}, "b": 1}'],
    [new Map([["x", new Set([1, 2])]]), '{"x": [1, 2]}'],
    [new Person("Ada", new Date(0)), '{"born": "1970-01-01T00:00:00.000Z", "name": "Ada"}'],
    [new Float64Array([1.5, 2]), "[1.5, 2]"],
    [{ big: [2n ** 60n] }, '{"big": [1152921504606846976]}'],
    [Object.create(null), "{}"],
  ];
  for (const [value, json] of values) {
    assert.equal(book.render("j", { v: value }).text, json);
  }
});

test("a refused value is named by its path", () => {
  const values: [unknown, string][] = [
    [{ a: [1, () => 1] }, "`v.a[1]` is a function"],
    [Symbol("s"), "`v` is a symbol"],
    [{ a: Number.NaN }, "`v.a` is NaN"],
    [[Number.POSITIVE_INFINITY], "`v[0]` is Infinity"],
    [new Map([[1, 2]]), "`v` has the key 1"],
    [Buffer.from("x"), "`v` is bytes"],
    [["\ud800"], "`v[0]` is not valid Unicode"],
    [{ "\udc00": 1 }, "a key that is not valid Unicode"],
    [Promise.resolve(1), "`v` is a promise"],
    [new Date("x"), "`v` is an invalid date"],
  ];
  for (const [value, said] of values) {
    assert.throws(
      () => book.render("p", { v: value }),
      (error: Error & { code: string; hint: string }) => {
        assert.equal(error.name, "PromptValidationError");
        assert.ok(error.message.includes(said), error.message);
        return error.code === "CB407" && error.hint.length > 0;
      },
    );
  }
});

test("a value that contains itself is refused", () => {
  const loop: unknown[] = [];
  loop.push(loop);
  assert.throws(() => book.render("p", { v: loop }), /nested more than/);
  const ring: Record<string, unknown> = {};
  ring["self"] = ring;
  assert.throws(() => book.render("p", { v: ring }), /nested more than/);
});

test("an undefined variable is as if it were not given", () => {
  assert.equal(book.render("p", { v: undefined }).text, book.render("p").text);
  assert.throws(() => book.render("p", [] as never), { code: "CB407" });
  assert.throws(() => book.render("p", "text" as never), { code: "CB407" });
});

test("a getter that throws is the caller's error", () => {
  const value = {
    get v(): never {
      throw new RangeError("mine");
    },
  };
  assert.throws(() => book.render("p", value), { name: "RangeError", message: "mine" });
});
