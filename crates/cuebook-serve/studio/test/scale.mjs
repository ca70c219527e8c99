// Very many prompts and events, and the time from a key to the coloured text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { base, open, page, project, see, text, token } from "./support.mjs";

/** The frames of a second of scrolling: the middle and the longest, in milliseconds. */
const scroll = (selector) => page.evaluate(async (selector) => {
  const element = document.querySelector(selector), frames = [];
  let last = performance.now();
  for (let at = 0; at < 60; at++) {
    element.scrollTop += element.scrollHeight / 60;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  frames.sort((a, b) => a - b);
  return { middle: Math.round(frames[30]), longest: Math.round(frames[59]) };
}, selector);

/** The middle time that the server needs for such an answer, in milliseconds. */
async function server() {
  const source = readFileSync(join(project, "prompts/long/template.md"), "utf8"), times = [];
  for (let at = 1; at <= 40; at++) {
    const body = JSON.stringify({ id: "long", texts: { "prompts/long/template.md": "x".repeat(at) + source } });
    const began = performance.now();
    const response = await fetch(`${base}api/render`, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body });
    assert.match((await response.json()).explanation.text, /^x/);
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[20].toFixed(1);
}

export default async function scale() {
  const measured = {};
  // A key in a prompt of 6 KB, until the text with its colours is in the page.
  await open("prompt=long&file=prompts/long/template.md");
  await see(text.getByText("The last line."));
  await see(page.locator(".cm-content"));
  assert.ok(await page.evaluate(() => crossOriginIsolated), "the page shares memory with its worker");
  assert.equal(page.workers().length, 1, "a worker has the web socket");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+Home");
  const times = [], calls = [];
  for (let at = 0; at < 40; at++) {
    // As fast as people type: 16 keys a second.
    await page.waitForTimeout(60);
    await page.evaluate(() => {
      const host = document.querySelector("pre.text");
      window.changed = new Promise((done) => {
        const look = new MutationObserver(() => { look.disconnect(); done(performance.now()); });
        look.observe(host, { childList: true, subtree: true, characterData: true });
      });
      document.addEventListener("keydown", () => (window.pressed = performance.now()), { once: true, capture: true });
    });
    await page.keyboard.press("x");
    times.push(await page.evaluate(async () => (await window.changed) - window.pressed));
    calls.push(await page.evaluate(() => window.cuebook.took.value));
  }
  for (const list of [times, calls]) list.sort((a, b) => a - b);
  measured["key to coloured text, 6 KB, ms"] = { fastest: times[0].toFixed(1), middle: times[20].toFixed(1), "90 of 100": times[36].toFixed(1), "until the page reads the answer": calls[20].toFixed(1), "the server alone": await server() };
  assert.match(await text.innerText(), /^x{40}/);

  // 10,000 prompts.
  const prompts = Array.from({ length: 10_000 }, (_, at) => ({
    id: `team${at % 40}/topic${at % 200}/prompt${String(at).padStart(5, "0")}`, name: `Prompt ${at}`, type: "prompt", dialect: "template",
    source: `prompts/p${at}`, pack_id: null, conflict: false,
  }));
  await page.route("**/api/prompts", (route) => route.fulfill({ json: prompts }));
  await open("");
  await see(page.getByText("10,000 prompts"));
  const rows = page.getByRole("treeitem");
  assert.ok(await rows.count() < 120, "only the rows in view are in the page");
  measured["frames over 10,000 prompts, ms"] = await scroll(".library .rows");
  assert.ok(await rows.count() < 120);
  await page.getByLabel("Search prompts").fill("prompt09999");
  await see(page.getByRole("treeitem", { name: "prompt09999" }));
  await page.unroute("**/api/prompts");

  // 50,000 events.
  const row = {
    thread_id: "big", directive: "big", status: "completed", created_at: "2026-01-01T00:00:00Z", model: "m", parent_id: null, continuation_of: null,
    continuation_thread_id: null, events: 50_000, result: null, cost: { turns: 9, input_tokens: 1, output_tokens: 1, spend: 0.1, elapsed_seconds: 1 },
  };
  await page.route("**/api/threads", (route) => route.fulfill({ json: [row] }));
  await page.route("**/api/threads/events", async (route) => {
    const { after } = route.request().postDataJSON();
    const events = Array.from({ length: Math.min(2000, 50_000 - after) }, (_, at) => ({
      seq: after + at + 1, timestamp: "2026-01-01T00:00:00Z", event_type: "tool_call_result", payload: { tool: "search", result: `found ${after + at + 1}` },
    }));
    await route.fulfill({ json: { thread: row, events, more: after + events.length < 50_000 } });
  });
  await open("view=threads&thread=big");
  await see(page.locator(".event"));
  measured["frames over 50,000 events, ms"] = await scroll(".log");
  assert.ok(await page.locator(".event").count() < 120);
  await page.locator(".log").evaluate((element) => (element.scrollTop = element.scrollHeight));
  await see(page.locator(".event").getByText("found 50000"));
  await page.unrouteAll();
  console.log(JSON.stringify(measured));
}
