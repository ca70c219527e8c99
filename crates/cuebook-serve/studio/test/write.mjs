// Write and see: the tree, the editor, origins, the form, cases, and every tab.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, base, button, download, gone, newTab, open, page, picture, project, see, tab, text, token } from "./support.mjs";

const editor = page.locator(".cm-content");
/** Replaces the text in the editor. */
async function retype(text) {
  await editor.click();
  await page.keyboard.press("Control+a");
  for (const [at, line] of text.split("\n").entries()) {
    if (at > 0) await page.keyboard.press("Enter");
    await page.keyboard.insertText(line);
  }
}
const file = (name) => join(project, name);

export default async function write() {
  // The library is a tree with a search, for the keyboard too.
  await open("");
  const tree = page.getByRole("tree");
  const folder = tree.getByRole("treeitem", { name: "tones" });
  await see(tree.getByRole("treeitem", { name: "opening" }));
  await accessible("the welcome");
  await folder.click();
  await gone(tree.getByRole("treeitem", { name: "opening" }));
  await page.keyboard.press("ArrowRight");
  await see(tree.getByRole("treeitem", { name: "opening" }));
  await page.getByLabel("Search prompts").fill("refu");
  await see(tree.getByRole("treeitem", { name: "refund" }));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await see(text.getByText("Never promise a refund."));

  // Unsaved text renders, and each part names its origin.
  await open("prompt=greeting");
  await see(text.getByText("Be kind."));
  await see(editor);
  await page.locator("#input-name").fill("Ada");
  await see(text.getByText("Ada", { exact: true }));
  await text.getByText("Ada", { exact: true }).hover();
  await see(page.locator(".origin").getByText(/name \(caller\), printed by \{\{ name \}\} at prompts\/greeting\/template.md:1/));
  await text.getByText("Be kind.").hover();
  await see(page.locator(".origin").getByText(/author's text, prompts\/partials\/tone.md:1/));

  // Selected text names all its origins.
  const [from, to] = [await text.getByText("Ada", { exact: true }).boundingBox(), await text.getByText("Be kind.").boundingBox()];
  await page.mouse.move(from.x + 2, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(to.x + to.width - 4, to.y + 5, { steps: 4 });
  await page.mouse.up();
  await see(page.locator(".origin").getByText(/selected.*name \(caller\).*prompts\/partials\/tone.md/));
  await page.evaluate(() => getSelection().removeAllRanges());
  await text.hover({ position: { x: 5, y: 5 } });
  await text.dispatchEvent("mouseup");

  // A click leads to the source; the cursor there marks what it produced.
  await text.getByText("Be kind.").click();
  await see(page.locator(".cm-content[aria-label='Source of prompts/partials/tone.md']"));
  await see(text.locator(".from-cursor"));
  assert.match(await text.locator(".from-cursor").first().innerText(), /Be kind\./);
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("Be brief.");
  await see(text.getByText("Be brief."));
  assert.doesNotMatch(readFileSync(file("prompts/partials/tone.md"), "utf8"), /brief/);

  // A half-typed tag keeps the last good result, marked as stale.
  await page.keyboard.insertText(" {% na");
  await see(page.getByText("Stale."));
  assert.match(await text.innerText(), /Be brief\./);

  // Problems know the unsaved text.
  await tab("Problems");
  await see(page.locator("#panel").getByText(/unknown tag/));
  await retype("Be kind.\nBe brief.");
  await see(page.getByText("No problems."));
  await tab("Text");
  await gone(page.getByText("Stale."));

  // Another program and another tab change the same file: nobody's text is lost.
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("!");
  writeFileSync(file("prompts/partials/tone.md"), "Be bold.\n");
  await see(button("Keep my text"));
  await see(page.getByLabel("Differences between the text on disk and yours").getByText("- Be bold."));
  await button("Keep my text").click();
  await see(page.getByText("saved prompts/partials/tone.md"));
  assert.match(readFileSync(file("prompts/partials/tone.md"), "utf8"), /Be brief/);
  const other = await newTab();
  await open("prompt=greeting&file=prompts/partials/tone.md", other);
  await other.locator(".cm-content").getByText("Be brief.").waitFor();
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" From the first tab.");
  await page.keyboard.press("Control+s");
  await other.locator(".cm-content").getByText("From the first tab.").waitFor();
  // Edits of both are unsaved: the tab that saves second is asked.
  await other.locator(".cm-content").click();
  await other.keyboard.press("Control+End");
  await other.keyboard.type(" From the second tab.");
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" Saved.");
  await page.keyboard.press("Control+s");
  await see(button("Keep my text", other));
  await other.locator(".cm-content").getByText("From the second tab.").waitFor();
  await button("Use the text on disk", other).click();
  await other.locator(".cm-content").getByText("From the first tab. Saved.").waitFor();
  await other.close();

  // The language server behind the editor.
  await page.getByRole("tab", { name: "greeting/template.md" }).click();
  await see(page.locator(".cm-content[aria-label='Source of prompts/greeting/template.md']"));
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("{{ nam");
  await page.keyboard.press("Control+Space");
  await see(page.locator(".cm-tooltip-autocomplete").getByText("name"));
  await page.keyboard.press("Escape");
  await retype("Hello {{ name|uper }}.\n");
  await see(page.locator(".cm-lintRange"));
  await page.locator(".cm-lintRange").first().hover();
  await see(page.locator(".cm-tooltip").getByText(/uper/));
  await retype("Hello {{ name }}.\n{% include \"partials/tone.md\" %}\n");
  await page.keyboard.press("Control+s");

  // Hover names the layers of a variable, and F12 opens the file of an include.
  await editor.locator(".cm-line").first().getByText("name").first().hover();
  await see(page.locator(".cm-tooltip").getByText(/name/));
  await editor.getByText("partials/tone.md").click();
  await page.keyboard.press("F12");
  await see(page.locator(".cm-content[aria-label='Source of prompts/partials/tone.md']"));

  // Values are saved as a case, and a case fills the form.
  await page.getByLabel("Name of a new case").fill("from the studio");
  await button("Save as a case").click();
  await see(page.getByText("saved prompts/greeting/tests.md"));
  assert.match(readFileSync(file("prompts/greeting/tests.md"), "utf8"), /## from the studio[^]*"name": "Ada"/);
  await button("Clear").click();
  await page.getByLabel("Fill from a test case").selectOption({ label: "greets" });
  await see(text.getByText("Ada", { exact: true }));
  // The built-in prompts can be read and not written.
  await open("prompt=general_system");
  await see(page.getByText("read only"));
  await open("prompt=rye/core/create_directive");
  await see(page.locator(".cm-content").getByText(/create_directive/));
}

/** Every tab, on a prompt with several files, values and a price. */
export async function tabs() {
  const values = { company: "Fjord Books", name: "Ada", items: [{ title: "tea" }, { title: "jam" }], letter: "Where is my parcel?" };
  await open(`prompt=refund&values=${encodeURIComponent(JSON.stringify(values))}`);
  await see(text.getByText("Where is my parcel?"));
  await see(page.locator(".cm-content"));
  await text.getByText("Fjord Books").first().hover();
  await see(page.locator(".origin").getByText(/company/));
  await picture("text");
  await accessible("the text");
  await tab("Messages");
  await see(page.locator(".message.system"));
  await accessible("messages");
  await page.keyboard.press("ArrowRight");
  await see(page.getByRole("tab", { name: "Wire", exact: true, selected: true }));
  await page.getByRole("textbox", { name: "Model" }).fill("gpt-5");
  await page.keyboard.press("Enter");
  for (const [name, path] of [["anthropic", "/messages"], ["openai", "/chat/completions"], ["openai-responses", "/responses"], ["gemini", "generateContent"]]) {
    await page.getByLabel("Interface").selectOption(name);
    await see(page.getByText(new RegExp(`POST .*${path}`)));
  }
  await page.getByLabel("Interface").selectOption("");
  await accessible("a request body");
  await open(`prompt=refund&tab=tokens&model=gpt-5&values=${encodeURIComponent(JSON.stringify(values))}`);
  await see(page.locator(".total").getByText(/to read once/));
  await see(page.getByText(/stay the same when values change/));
  await accessible("tokens");
  await picture("tokens");

  // The section tree: visibility, and a budget that folds it.
  await open("prompt=guide&tab=sections");
  const rows = page.locator(".tree li");
  await see(rows.filter({ hasText: "Handbook" }).getByText("summary", { exact: true }));
  await page.getByLabel("Visibility of handbook", { exact: true }).selectOption("full");
  await see(rows.filter({ hasText: "Handbook" }).locator(".badge").getByText("full"));
  const slider = page.getByLabel("Token budget");
  await slider.fill(String(Math.round(Number(await slider.getAttribute("max")) * 0.6)));
  await see(page.getByText(/without the budget/));
  await see(page.locator(".tree li.summary, .tree li.dropped, .tree li.folded, .tree li:not(.full)"));
  await picture("sections");
  await accessible("sections");
  await slider.fill(String(await slider.getAttribute("max")));
  await tab("Text");
  await see(text.getByText("Follow the rules."));
  await tab("Tools");
  await see(page.locator("#panel").getByText("find_rule"));
  await accessible("tools");

  // Diff by effect, test and attack results.
  await open("prompt=refund&tab=diff&other=welcome");
  await button("Compare").click();
  await see(page.locator(".diff .new").getByText("Never promise a refund."));
  await accessible("differences");
  await open("prompt=refund&tab=diff");
  await button("Compare").click();
  await see(page.getByText("No difference"));
  await open("prompt=greeting&tab=tests");
  await button("Run the test cases").click();
  await see(page.getByText("ok · greets"));
  await button("Attack every input").click();
  await see(page.getByText(/values tried; roles, messages, tools and fences stayed the same/));
  await accessible("test results");
  await tab("Problems");
  await see(page.getByText("No problems."));
  await accessible("problems");

  // A form for choices, files and conversations.
  await open("prompt=letter");
  await page.locator("#input-mood").selectOption({ label: "angry" });
  await see(text.getByText("angry"));
  await button("Add a message").click();
  await page.getByRole("textbox", { name: "Message 1 of past" }).fill("Before.");
  await page.locator("#input-photo").setInputFiles({ name: "p.png", mimeType: "image/png", buffer: Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64") });
  await tab("Messages");
  await see(page.locator(".message.user").getByText("Before."));
  await see(page.getByAltText("an image input"));

  // A file is too large for a link: it stays in the page.
  const large = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(3_000_000, 7)]);
  await page.locator("#input-photo").setInputFiles({ name: "large.png", mimeType: "image/png", buffer: large });
  await page.waitForFunction(() => JSON.stringify(window.cuebook.place.value.values.photo).length > 3_000_000);
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("values")?.includes("photo") === false);
  assert.ok(await page.evaluate(() => location.hash.length) < 10_000);
  await see(page.getByAltText("an image input"));

  // A link restores the view, and an export is one file without a script of the project.
  const link = await page.evaluate(() => location.hash);
  assert.match(link, /tab=messages/);
  assert.doesNotMatch(link, /token/);
  await open(link.slice(1));
  await see(page.locator(".message.user").getByText("Before."));
  await page.goBack();
  const exported = await download(() => open("prompt=greeting").then(() => see(text.getByText("Be brief."))).then(() => button("Export").click()));
  assert.equal(exported.name, "greeting.html");
  assert.match(exported.text, /Be brief\./);
  assert.match(exported.text, /Content-Security-Policy/);

  // Keyboard only: the parts of the text lead to their source.
  await text.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await see(text.locator(".current"));
  await page.keyboard.press("Enter");
  await see(page.locator(".cm-editor.cm-focused"));
  await text.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Shift+ArrowRight");
  await see(page.locator(".origin b").getByText("selected"));
  await page.getByRole("tab", { name: "Text", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await see(page.getByRole("tab", { name: "Messages", exact: true, selected: true }));
  await page.keyboard.press("ArrowLeft");
  await button("Run…").focus();
  await page.keyboard.press("Enter");
  await see(page.getByRole("dialog"));
  await accessible("the dialog that runs a prompt");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });

  // A narrow screen shows one pane at a time, without scrolling sideways.
  await page.setViewportSize({ width: 390, height: 800 });
  for (const [view, name] of [["prompts", "Library"], ["prompts", "Source"], ["prompts", "Result"], ["decide", ""], ["threads", ""]]) {
    if (name) await button(name).click();
    else await button(view === "decide" ? "Decide" : "Threads").click();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), `no sideways scrolling of ${view} ${name} at 390 pixels`);
    if (!name) await accessible(`a narrow ${view}`);
    if (name === "Result") { assert.ok(await text.isVisible()); await accessible("a narrow screen"); await picture("narrow"); }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  // Without the token the page says what to do.
  const stranger = await newTab();
  await stranger.addInitScript(() => sessionStorage.clear());
  await stranger.goto(base);
  await stranger.getByText("This address has no token.").waitFor();
  await accessible("the page without a token", stranger);
  await stranger.close();
  assert.ok(token.length >= 32);
}
