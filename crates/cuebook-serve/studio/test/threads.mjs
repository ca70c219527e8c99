// Threads: run, live log, requests with origins, limits, resume, cancel, fork, compare.
import assert from "node:assert/strict";
import { accessible, button, download, open, page, picture, see } from "./support.mjs";

const list = page.getByRole("navigation", { name: "Threads" });
const thread = page.getByRole("region", { name: "Thread" });
const status = (name) => see(thread.locator("h2 .badge").getByText(name, { exact: true }));

async function run(prompt, fields = {}, values = {}) {
  await open(`prompt=${prompt}&values=${encodeURIComponent(JSON.stringify(values))}`);
  await button("Run…").click();
  for (const [label, value] of Object.entries(fields)) await page.getByRole("dialog").getByLabel(label).fill(value);
  await button("Run", page.getByRole("dialog")).click();
}

export default async function threads() {
  // A limit stops the thread; with a higher one it goes on.
  await run("guide", { Limits: "turns=1", "Items behind its tools": "find_rule=rye/bash/bash" });
  await status("suspended");
  await see(page.locator(".event").getByText("limit reached"));
  await thread.getByLabel("New limits").fill("turns=5");
  await button("Resume", thread).click();
  await see(thread.getByText(/would get these permissions again: rye.execute.tool.rye.bash.bash/));
  await button("Allow this again", thread).click();
  await status("completed");
  await see(page.locator(".event").getByText("I know the rules now."));
  await see(page.locator(".measure").getByText("2 of 5"));

  // A tool runs as the user allowed it, and a call without permission does not.
  await run("scales", { "Items behind its tools": "weigh=rye/bash/bash" }, { word: "iron" });
  await status("completed");
  await see(page.locator(".event.tool_call_result").getByText("7 kg"));
  await see(page.locator(".event.permission_denied").getByText("launch_rockets"));
  const first = await page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("thread"));

  // The request of each turn, with origins.
  await thread.getByLabel("Request of").selectOption("2");
  const request = page.getByLabel("Messages with origins");
  await see(request.getByText(/a result of the tool weigh/));
  await see(request.getByText(/author's text, prompts\/scales.prompty:/));
  await picture("threads");
  await accessible("a thread");
  await thread.getByLabel("Request of").selectOption("1");
  await see(request.getByText("What the model got in turn 1"));
  assert.equal(await request.getByText(/a result of the tool/).count(), 0);
  await request.locator("button.piece").first().click();
  await see(page.locator(".cm-content[aria-label='Source of prompts/scales.prompty']"));

  // A fork asks for the permissions again, and is compared with the thread that it came from.
  await open(`view=threads&thread=${encodeURIComponent(first)}&turn=2`);
  await page.getByLabel("and the prompt").fill("balance");
  await page.getByLabel("with the model").fill("gpt-5-mini");
  await button("Fork", thread).click();
  await see(thread.getByText(/would get these permissions again/));
  await button("Allow this again", thread).click();
  await see(thread.getByText("Forked from turn 2 of"));
  await status("completed");
  const comparison = page.getByLabel("Comparison");
  await see(comparison.locator(".diff .new").getByText("In a calm tone, weigh iron."));
  await see(comparison.getByText("Calmly: heavy."));
  await see(comparison.locator("tr.differs").getByText("gpt-5-mini"));
  await picture("compare");
  await accessible("a comparison");

  // Another process does not answer: the thread is cancelled.
  await run("balance", { "Items behind its tools": "weigh=rye/bash/bash" }, { word: "lead" });
  await status("running");
  await see(page.locator(".event.cognition_in"));
  await button("Cancel", thread).click();
  await status("cancelled");
  assert.equal(await list.getByRole("button").filter({ hasText: "scales" }).count(), 1);

  // Markup in answers, logs and exports is text.
  await run("hostile", {}, { name: "<b onmouseover=alert(1)>x</b>" });
  await status("completed");
  await see(page.locator(".event").getByText(/onerror/));
  await thread.getByLabel("Request of").selectOption("all");
  await see(page.getByLabel("Messages with origins").getByText(/author's text, prompts\/hostile\/template.md/));
  assert.equal(await page.locator("main img, main script, main b b").count(), 0);
  const saved = await download(() => button("Export").click());
  assert.match(saved.text, /&lt;img src=x onerror/);
  assert.doesNotMatch(saved.text, /<img|<script/);
}
