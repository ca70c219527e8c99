// One HTML file of what the page shows: the explanation of a prompt, or a thread. It has no script and asks no server.

import { call } from "./api";
import { place, renderRequest, type Result } from "./state";
import { described } from "./result";
import { eventText, shownThread } from "./threads";

const STYLE = `:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace}table{border-collapse:collapse;width:100%}
td,th{text-align:start;vertical-align:top;padding:2px 8px;border-bottom:1px solid #8885;overflow-wrap:anywhere}
.message{border:1px solid #8885;border-radius:8px;padding:6px 10px;margin:8px 0}.from{color:#777;font-size:12px}`;

/** Makes elements from texts, so that no text is read as markup. */
function element(document: Document, name: string, text: string, ...inner: Node[]): HTMLElement {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...inner);
  return made;
}

async function promptPage(): Promise<string> {
  const answer = await call<Result & { page?: string }>("render", renderRequest(["page"]));
  if (typeof answer.page !== "string") throw new Error(answer.error?.message ?? "the prompt cannot be rendered");
  return answer.page;
}

function threadPage(): string {
  const { thread, row, list, messages } = shownThread();
  const page = document.implementation.createHTMLDocument(thread);
  const policy = page.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
  const charset = page.createElement("meta");
  charset.setAttribute("charset", "utf-8");
  page.head.prepend(charset, policy);
  // A style in a document of this page would be under its policy, so it comes into the text below.
  page.head.append(page.createComment("style"));
  page.documentElement.lang = "en";
  const make = (name: string, text: string, ...inner: Node[]) => element(page, name, text, ...inner);
  page.body.append(make("h1", thread));
  if (row) {
    page.body.append(make("p", `${row.status} · ${row.model ?? ""} · ${row.cost.turns} turns · ${row.cost.input_tokens + row.cost.output_tokens} tokens · ${row.cost.spend} spent · ${row.cost.elapsed_seconds} s`));
  }
  for (const message of messages) {
    const block = make("div", "", make("b", message.role));
    block.className = "message";
    for (const piece of message.pieces) {
      const from = make("div", `from ${described(piece.origin)}`);
      from.className = "from";
      block.append(make("pre", piece.text), from);
    }
    page.body.append(block);
  }
  const body = make("tbody", "");
  for (const event of list) {
    body.append(make("tr", "", make("td", String(event.seq)), make("td", event.timestamp), make("td", event.event_type.replaceAll("_", " ")), make("td", eventText(event))));
  }
  page.body.append(make("h2", "Log"), make("table", "", body));
  return `<!doctype html>\n${page.documentElement.outerHTML.replace("<!--style-->", `<style>${STYLE}</style>`)}`;
}

/** Saves the view as one file. */
export async function exportView() {
  const { view, prompt, thread } = place.value;
  const page = view === "threads" ? threadPage() : await promptPage();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  link.download = `${(view === "threads" ? thread : prompt).replace(/[^\w.-]+/g, "-")}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
