// Performs every task of the studio in Chromium, and attacks the page. `cargo test -p cuebook-cli --test studio` runs it.
import assert from "node:assert/strict";
import attack from "./attack.mjs";
import decide from "./decide.mjs";
import scale from "./scale.mjs";
import { browser, page, problems } from "./support.mjs";
import threads from "./threads.mjs";
import write, { tabs } from "./write.mjs";

let failed = false;
const only = process.env.STUDIO_ONLY?.split(",");
for (const task of [decide, write, tabs, threads, attack, scale]) {
  if (only && !only.includes(task.name)) continue;
  const began = Date.now();
  try {
    await task();
  } catch (error) {
    failed = true;
    if (process.env.STUDIO_PICTURES) await page.screenshot({ path: `${process.env.STUDIO_PICTURES}/failed-${task.name}.png` });
    console.error(`${task.name} failed at ${page.url().replace(/token=\w+/, "")}\n${problems.join("\n")}\n${error.stack}`);
    continue;
  }
  console.log(`${task.name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
}
if (!failed) assert.deepEqual(problems, [], "no page asked others or failed");
await browser.close();
if (failed) process.exit(1);
console.log("all tasks passed");
