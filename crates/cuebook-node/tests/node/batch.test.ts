import assert from "node:assert/strict";
import { test } from "node:test";

import { tableFromArrays } from "apache-arrow";
import { CuebookError } from "cuebook";
import { greetings } from "./projects.js";

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

test("a batch is stopped by a signal", async () => {
  const rows = Array.from({ length: 20_000 }, () => ({ name: "Ada" }));
  await assert.rejects(greetings().renderBatch("greeting", rows, { signal: AbortSignal.abort() }), { name: "AbortError" });
});
