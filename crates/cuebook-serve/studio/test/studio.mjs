// Performs every task of the studio in Chromium, and attacks the page. `cargo test -p cuebook-cli --test studio` runs it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.STUDIO_PACKAGES, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [url, project] = process.argv.slice(2);
const base = url.replace(/#.*/, ""), token = new URLSearchParams(url.replace(/.*#/, "")).get("token");
const pictures = process.env.STUDIO_PICTURES;

const browser = await chromium.launch({
  executablePath: process.env.STUDIO_CHROMIUM.startsWith("/") ? process.env.STUDIO_CHROMIUM : `/usr/bin/${process.env.STUDIO_CHROMIUM}`,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
const foreign = [], failures = [];
page.on("request", (request) => { if (!request.url().startsWith(base) && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) foreign.push(request.url()); });
page.on("pageerror", (error) => failures.push(`page: ${error.message}`));
page.on("console", (line) => { if (line.type() === "error" && !/422/.test(line.text())) failures.push(`console: ${line.text()}`); });

const text = page.locator("pre.text");
const open = (hash) => page.goto("about:blank").then(() => page.goto(`${base}#token=${token}&${hash}`));
const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
const waitFor = (locator) => locator.first().waitFor({ timeout: 20_000 });
const picture = async (name) => {
  if (!pictures) return;
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: join(pictures, `studio-${name}-${theme}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light" });
};
const check = async (what) => {
  await page.addScriptTag({ content: axe }).catch(() => page.evaluate(axe));
  const found = await page.evaluate(() => globalThis.axe.run(document, { rules: { "color-contrast": { enabled: true } } }));
  const list = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
  assert.deepEqual(list, [], `accessibility of ${what}`);
};

// A prompt that several places offer must be chosen first.
await open("view=decide");
await waitFor(page.getByRole("heading", { name: "greeting" }));
assert.equal(await page.locator(".side-by-side section").count(), 2);
await check("decisions");
await page.locator(".side-by-side section").filter({ hasText: "prompts/greeting" }).first().getByRole("button", { name: "Use this one" }).click();
await waitFor(page.getByText("Every prompt has one candidate."));

// The code of a pack is shown before it may run.
await page.getByRole("button", { name: "Show its code" }).click();
await waitFor(page.getByText("async def provide(context):"));
await picture("decide");
await page.getByRole("button", { name: "Allow this code to run" }).click();
await waitFor(page.getByText("code: approved"));

// Write and see: an edit shows at once, with its origin, and unsaved.
await open("prompt=greeting");
await waitFor(text.getByText("Be kind."));
await waitFor(page.locator(".cm-content"));
assert.match(await text.innerText(), /^Hello , ünïcode 🎉\./);
await page.locator("#input-name").fill("Ada");
await waitFor(text.getByText("Ada", { exact: true }));
await text.getByText("Ada", { exact: true }).hover();
await waitFor(page.locator(".origin").getByText(/name \(caller\), printed by \{\{ name \}\} at prompts\/greeting\/template.md:1/));
await text.getByText("Be kind.").hover();
await waitFor(page.locator(".origin").getByText(/author's text, prompts\/partials\/tone.md:1/));
await picture("text");
await check("the result");

// A click leads to the source; the cursor there marks what it produced.
await text.getByText("Be kind.").click();
await waitFor(page.locator(".cm-content[aria-label='Source of prompts/partials/tone.md']"));
await waitFor(text.locator(".from-cursor"));
assert.match(await text.locator(".from-cursor").first().innerText(), /Be kind\./);
await page.locator(".cm-content").click();
await page.keyboard.press("Control+End");
await page.keyboard.type("Be brief.");
await waitFor(text.getByText("Be brief."));
assert.doesNotMatch(readFileSync(join(project, "prompts/partials/tone.md"), "utf8"), /brief/);

// A half-typed tag keeps the last good result, marked as stale.
await page.keyboard.type(" {{ na");
await waitFor(page.getByText("Stale."));
assert.match(await text.innerText(), /Be brief\./);
await page.keyboard.type("me }}");
await page.getByText("Stale.").waitFor({ state: "detached", timeout: 20_000 });

// Another program changes the file: saving asks.
writeFileSync(join(project, "prompts/partials/tone.md"), "Be bold.\n");
await page.keyboard.press("Control+s");
await waitFor(page.getByRole("button", { name: "Keep my text" }));
await page.getByRole("button", { name: "Keep my text" }).click();
await waitFor(page.getByText("saved prompts/partials/tone.md"));
assert.match(readFileSync(join(project, "prompts/partials/tone.md"), "utf8"), /Be brief/);

// The language server behind the editor: completion of a variable.
await page.getByRole("tab", { name: "greeting/template.md" }).click();
await waitFor(page.locator(".cm-content[aria-label='Source of prompts/greeting/template.md']"));
await page.locator(".cm-content").click();
await page.keyboard.press("Control+End");
await page.keyboard.type("{{ nam");
await page.keyboard.press("Control+Space");
await waitFor(page.locator(".cm-tooltip-autocomplete"));
await page.keyboard.press("Escape");
for (let at = 0; at < 6; at++) await page.keyboard.press("Backspace");

// Values are saved as a case, and a case fills the form.
await page.getByLabel("Name of a new case").fill("from the studio");
await page.getByRole("button", { name: "Save as a case" }).click();
await waitFor(page.getByText("saved prompts/greeting/tests.md"));
assert.match(readFileSync(join(project, "prompts/greeting/tests.md"), "utf8"), /## from the studio[^]*"name": "Ada"/);
await page.getByRole("button", { name: "Clear" }).click();
await page.getByLabel("Fill from a test case").selectOption({ label: "greets" });
await waitFor(text.getByText("Ada", { exact: true }));

// Every tab.
await tab("Messages");
await waitFor(page.locator(".message.system"));
await tab("Wire");
await page.getByLabel("Interface").selectOption("anthropic");
await waitFor(page.getByText("POST /v1/messages"));
await tab("Tokens");
await waitFor(page.locator(".total").getByText("tokens"));
await waitFor(page.locator("table tbody tr"));
await check("tokens");
await tab("Tests");
await page.getByRole("button", { name: "Run the test cases" }).click();
await waitFor(page.getByText("ok · greets"));
await tab("Problems");
await waitFor(page.locator("#panel"));
await open("prompt=guide&tab=sections");
await waitFor(page.locator(".tree").getByText("Handbook"));
await page.getByLabel("Visibility of handbook").selectOption("full");
await tab("Text");
await waitFor(text.getByText("Follow the rules."));
await tab("Tools");

// A form for choices and conversations.
await open("prompt=letter");
await page.locator("#input-mood").selectOption({ label: "angry" });
await waitFor(text.getByText("angry"));
await page.getByRole("button", { name: "Add a message" }).click();
await page.getByLabel("Message 1 of past").fill("Before.");
await tab("Messages");
await waitFor(page.locator(".message.user").getByText("Before."));

// A link restores the view.
const link = await page.evaluate(() => location.hash);
assert.match(link, /tab=messages/);
assert.doesNotMatch(link, /token/);
await open(link.slice(1));
await waitFor(page.locator(".message.user").getByText("Before."));

// Text of prompts, values and answers is text.
await open("prompt=hostile&values=" + encodeURIComponent(JSON.stringify({ name: "<b onmouseover=alert(1)>x</b>" })));
await waitFor(text.getByText("<b onmouseover=alert(1)>x</b>"));
assert.equal(await page.locator("pre.text img, pre.text script, pre.text b").count(), 0);

// A thread: its log, its origins, and the answer of a hostile model.
await page.getByRole("button", { name: "Run", exact: true }).click();
await waitFor(page.getByRole("log"));
await waitFor(page.locator(".event").getByText(/onerror/));
await waitFor(page.locator(".badge.completed"));
await page.getByRole("button", { name: "Where did the messages come from?" }).click();
await waitFor(page.getByLabel("Messages with origins").getByText(/author's text, prompts\/hostile\/template.md/));
await picture("threads");
await check("threads");
assert.equal(await page.locator("main img, main script").count(), 0);
assert.notEqual(await page.title(), "owned");

// Keyboard only: the library, and the parts of the text.
await open("prompt=greeting");
await waitFor(text.getByText("Be brief."));
await text.focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("ArrowRight");
await waitFor(text.locator(".current"));
await page.keyboard.press("Enter");
await waitFor(page.locator(".cm-editor.cm-focused"));

// A narrow screen shows one pane at a time, without scrolling sideways.
await page.setViewportSize({ width: 390, height: 800 });
await page.getByRole("button", { name: "Result", exact: true }).click();
assert.ok(await text.isVisible());
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), "no sideways scrolling at 390 pixels");
await check("a narrow screen");

// A page without the token says what to do.
const stranger = await (await browser.newContext()).newPage();
await stranger.goto(base);
await stranger.getByText("This address has no token.").waitFor();

assert.deepEqual(foreign, [], "no request to others");
assert.deepEqual(failures, [], "no errors in the page");
await browser.close();
console.log("all tasks passed");
