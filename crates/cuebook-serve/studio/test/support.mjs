// The browser, and what every task uses.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const require = createRequire(join(process.env.STUDIO_PACKAGES, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const [url, project] = process.argv.slice(2);
export const base = url.replace(/#.*/, ""), token = new URLSearchParams(url.replace(/.*#/, "")).get("token");
const pictures = process.env.STUDIO_PICTURES;

const named = process.env.STUDIO_CHROMIUM;
export const browser = await chromium.launch({
  executablePath: named.startsWith("/") ? named : `/usr/bin/${named}`,
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--host-resolver-rules=MAP rebound.example 127.0.0.1", "--force-color-profile=srgb",
  ],
});

/** What no page of the studio may do: ask others, fail, or run a text of the project. */
export const problems = [];
export function watch(page) {
  // A call that waits would take one of the six connections that a browser opens for all tabs.
  page.on("request", (request) => { if (/\/api\/editor\/receive$/.test(request.url())) problems.push("a call that waits is a request of its own"); });
  page.on("request", (request) => { if (!request.url().startsWith(base) && !/^(data|blob|about):/.test(request.url())) problems.push(`request to ${request.url()}`); });
  page.on("pageerror", (error) => problems.push(`page: ${error.message}`));
  page.on("dialog", (dialog) => {
    if (dialog.type() === "beforeunload") return void dialog.accept();
    problems.push(`dialog: ${dialog.message()}`); void dialog.dismiss();
  });
  page.on("console", (line) => {
    // Violations of the policy are reported with their element below.
    if (line.type() === "error" && !/422|Applying inline style/.test(line.text())) problems.push(`console: ${line.text()} ${line.location().url}:${line.location().lineNumber}:${line.location().columnNumber}`);
  });
  page.setDefaultTimeout(Number(process.env.STUDIO_PATIENCE ?? 60_000));
  return page;
}

const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, reducedMotion: "reduce" });
await context.exposeBinding("violated", (_, what) => problems.push(`policy: ${what}`));
await context.addInitScript(() => addEventListener("securitypolicyviolation", (event) => {
  // Chromium styles lines that it joins in an editable element, and the policy refuses that.
  const inEditor = event.violatedDirective === "style-src-attr" && event.target instanceof Element && event.target.closest(".cm-content");
  if (!inEditor) window.violated?.(`${event.violatedDirective} ${event.blockedURI} ${event.target?.outerHTML?.slice(0, 200)}`);
}));
if (process.env.STUDIO_ASSETS) {
  // The page as it was built last, without building the program again.
  for (const name of ["app.js", "app.css"]) {
    const body = gunzipSync(readFileSync(join(process.env.STUDIO_ASSETS, `${name}.gz`)));
    await context.route(`${base}${name}`, (route) => route.fulfill({ body, contentType: name === "app.js" ? "text/javascript" : "text/css" }));
  }
}
export const page = watch(await context.newPage());
/** A second tab of the same browser. */
export const newTab = async () => watch(await context.newPage());

export const text = page.locator("pre.text");
export const open = async (hash, where = page) => {
  await where.goto("about:blank");
  await where.goto(`${base}#token=${token}&${hash}`);
};
export const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
export const button = (name, where = page) => where.getByRole("button", { name, exact: true });
export const see = (locator) => locator.first().waitFor();
export const gone = (locator) => locator.first().waitFor({ state: "detached" });

/** Pictures for the book, in both themes. */
export async function picture(name) {
  if (!pictures) return;
  await page.evaluate(() => document.querySelector(".toast button")?.click());
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: join(pictures, `studio-${name}-${theme}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** No violation that axe knows, in both themes. */
export async function accessible(what, where = page) {
  for (const theme of ["light", "dark"]) {
    await where.emulateMedia({ colorScheme: theme });
    await where.evaluate(axe);
    const found = await where.evaluate(() => globalThis.axe.run(document));
    const list = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
    assert.deepEqual(list, [], `accessibility of ${what}, ${theme}`);
  }
  await where.emulateMedia({ colorScheme: "light" });
}

/** The text of a file that the page saves. */
export async function download(action) {
  const [saved] = await Promise.all([page.waitForEvent("download"), action()]);
  return { name: saved.suggestedFilename(), text: readFileSync(await saved.path(), "utf8") };
}
