import assert from "node:assert/strict";
import { test } from "node:test";

import * as arrow from "apache-arrow";
import { tableFromArrays } from "apache-arrow";
import { CuebookError } from "cuebook";
import { greetings, open } from "./projects.js";

test("each row gives a text, in order", async () => {
  const names = Array.from({ length: 10_000 }, (_, number) => `n${number}`);
  const rows = names.map((name) => ({ name }));
  assert.deepEqual(await greetings().renderBatch("greeting", rows), names.map((name) => `Hello ${name}!`));
  assert.deepEqual(await greetings().renderBatch("greeting", []), []);
});

test("the columns of an Arrow table are the variables", async () => {
  const people = tableFromArrays({ name: ["Ada", "Bo"], tone: ["kind", null] });
  assert.deepEqual(await greetings().renderBatch("greeting", people), ["Hello Ada, kind!", "Hello Bo!"]);
  const more = tableFromArrays({ name: ["Ada"], age: Int32Array.of(36) });
  await assert.rejects(greetings().renderBatch("greeting", more), { code: "CB404" });
  assert.deepEqual(await greetings().renderBatch("greeting", more, { allowUnknown: true }), ["Hello Ada!"]);
});

test("a row that fails is named, or is an error in the list", async () => {
  const rows = [{ name: "Ada" }, { nmae: "Bo" }, { name: "Cy" }];
  await assert.rejects(greetings().renderBatch("greeting", rows), (error: CuebookError) => error.details["row"] === 1 && error.code === "CB404");
  const all = await greetings().renderBatch("greeting", rows, { errors: "return", threads: 2 });
  assert.deepEqual([all[0], all[2]], ["Hello Ada!", "Hello Cy!"]);
  assert.ok(all[1] instanceof CuebookError);
});

/** A book with a prompt that prints one value. */
const values = () => open({ "prompts/value/template.md": "{{ value }}|{% if value is none %}none{% endif %}\n" });

test("a column of every type is read", async () => {
  const person = new arrow.Struct([new arrow.Field("name", new arrow.Utf8(), true), new arrow.Field("age", new arrow.Int8(), true)]);
  const texts = new arrow.List(new arrow.Field("item", new arrow.Utf8(), true));
  const pair = new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Int16(), true));
  const columns: [arrow.DataType, unknown[], string[]][] = [
    [new arrow.Bool(), [true, null, false], ["True|", "None|none", "False|"]],
    [new arrow.Int8(), [-7, null], ["-7|", "None|none"]],
    [new arrow.Uint16(), [65535], ["65535|"]],
    [new arrow.Int32(), [-70000], ["-70000|"]],
    [new arrow.Int64(), [-9007199254740993n, null], ["-9007199254740993|", "None|none"]],
    [new arrow.Uint64(), [18446744073709551615n], ["18446744073709551615|"]],
    [new arrow.Float32(), [0.1, null], ["0.1|", "None|none"]],
    [new arrow.Float64(), [1.5, null, -2], ["1.5|", "None|none", "-2.0|"]],
    [new arrow.Utf8(), ["é🦀", null, ""], ["é🦀|", "None|none", "|"]],
    [new arrow.LargeUtf8(), ["long", null], ["long|", "None|none"]],
    [new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8()), ["a", "b", null, "a"], ["a|", "b|", "None|none", "a|"]],
    [new arrow.DateDay(), [new Date("2026-02-20")], ["2026-02-20|"]],
    [new arrow.TimestampMillisecond(), [Date.parse("2026-02-20T15:30:00.250Z")], ["2026-02-20T15:30:00.250000|"]],
    [new arrow.TimestampSecond("+09:00"), [Date.parse("2026-02-20T15:30:00Z")], ["2026-02-21T00:30:00+09:00|"]],
    [texts, [["a", null], null, []], ["['a', None]|", "None|none", "[]|"]],
    [pair, [[1, 2], null, [3, 4]], ["[1, 2]|", "None|none", "[3, 4]|"]],
    [person, [{ name: "Ada", age: 36 }, null], ["{'name': 'Ada', 'age': 36}|", "None|none"]],
    [new arrow.Null(), [null, null], ["None|none", "None|none"]],
    // The native half does not know this type: its rows are read in JavaScript.
    [new arrow.DurationSecond(), [90n], ["90|"]],
  ];
  const book = values();
  for (const [type, given, expected] of columns) {
    const table = new arrow.Table({ value: arrow.vectorFromArray(given, type) });
    assert.deepEqual(await book.renderBatch("value", table), expected, String(type));
  }
});

test("slices and chunks of a table give their own rows", async () => {
  const book = open({ "prompts/row/template.md": "{{ name }} {{ kind }} {{ good }} {{ tags }} {{ who.age }}\n" });
  const type = new arrow.List(new arrow.Field("item", new arrow.Int32(), true));
  const who = new arrow.Struct([new arrow.Field("age", new arrow.Int32(), true)]);
  const kind = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32());
  const chunk = (from: number, count: number) => {
    const numbers = Array.from({ length: count }, (_, at) => from + at);
    const column = (of: arrow.DataType, make: (number: number) => unknown) =>
      arrow.vectorFromArray(numbers.map((number) => (number % 5 === 3 ? null : make(number))), of);
    return new arrow.Table({
      name: column(new arrow.Utf8(), (number) => `n${number}`),
      kind: column(kind, (number) => ["a", "b", "c"][number % 3]),
      good: column(new arrow.Bool(), (number) => number % 2 === 0),
      tags: column(type, (number) => Array.from({ length: number % 4 }, (_, at) => number * 10 + at)),
      who: column(who, (number) => ({ age: number })),
    });
  };
  const table = chunk(0, 13).concat(chunk(13, 9), chunk(22, 20));
  const all = Array.from({ length: 42 }, (_, number) =>
    number % 5 === 3
      ? "None None None None "
      : `n${number} ${["a", "b", "c"][number % 3]} ${number % 2 === 0 ? "True" : "False"} [${Array.from({ length: number % 4 }, (_, at) => number * 10 + at).join(", ")}] ${number}`,
  );
  assert.deepEqual(await book.renderBatch("row", table), all);
  for (const [from, to] of [[0, 1], [1, 13], [5, 30], [12, 14], [20, 42], [41, 42], [7, 7]] as const) {
    assert.deepEqual(await book.renderBatch("row", table.slice(from, to)), all.slice(from, to), `${from}..${to}`);
    assert.deepEqual(await book.renderBatch("row", table.slice(from, 42).slice(0, to - from)), all.slice(from, to), `twice ${from}..${to}`);
  }
  const read = arrow.tableFromIPC(arrow.tableToIPC(table));
  assert.deepEqual(await book.renderBatch("row", read.slice(6, 40)), all.slice(6, 40));
});

test("a row of a table that fails is named", async () => {
  const table = tableFromArrays({ value: Float64Array.of(1, Number.NaN, 2) });
  await assert.rejects(values().renderBatch("value", table), (error: CuebookError) => error.details["row"] === 1 && /`value` is NaN/.test(error.message));
  const all = await values().renderBatch("value", table, { errors: "return" });
  assert.deepEqual([all[0], all[2]], ["1.0|", "2.0|"]);
  assert.ok(all[1] instanceof CuebookError);
  const twice = new arrow.Table(new arrow.Schema([new arrow.Field("name", new arrow.Utf8()), new arrow.Field("name", new arrow.Utf8())]));
  assert.deepEqual(await greetings().renderBatch("greeting", twice), []);
});

test("the event loop turns while a table is rendered", async () => {
  const names = Array.from({ length: 60_000 }, (_, number) => `n${number}`);
  const table = new arrow.Table({ name: arrow.vectorFromArray(names, new arrow.Utf8()) });
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const texts = await greetings().renderBatch("greeting", table);
  clearInterval(timer);
  assert.equal(texts.length, 60_000);
  assert.equal(texts[59_999], "Hello n59999!");
  assert.ok(ticks >= 5, `${ticks} ticks`);
});

test("a batch is stopped after its first part", async () => {
  const [stop, reason] = [new AbortController(), new Error("enough")];
  let taken = 0;
  function* rows() {
    for (; taken < 100_000; taken++) {
      // The second part is being read, so that the first is done.
      if (taken === 5_000) stop.abort(reason);
      yield { name: "Ada" };
    }
  }
  await assert.rejects(greetings().renderBatch("greeting", rows(), { signal: stop.signal }), reason);
  assert.ok(taken < 10_000, `${taken} rows were taken`);
});

test("a batch is stopped within a part", async () => {
  const names = Array.from({ length: 4000 }, (_, number) => `n${number}`);
  const table = new arrow.Table({ name: arrow.vectorFromArray(names, new arrow.Utf8()) });
  for (const rows of [names.map((name) => ({ name })), table]) {
    const stop = new AbortController();
    let calls = 0;
    const book = open({ "prompts/greeting/template.md": "{{ name | slow }}\n" }).filter("slow", async (name: string) => {
      if (++calls === 100) stop.abort();
      return name;
    });
    await assert.rejects(book.renderBatch("greeting", rows, { signal: stop.signal, threads: 1 }), { name: "AbortError" });
    // A thread finishes the few rows that it took.
    assert.ok(calls < 1000, `${calls} calls`);
  }
});

test("a batch is stopped by a signal", async () => {
  const rows = Array.from({ length: 20_000 }, () => ({ name: "Ada" }));
  await assert.rejects(greetings().renderBatch("greeting", rows, { signal: AbortSignal.abort() }), { name: "AbortError" });
});
