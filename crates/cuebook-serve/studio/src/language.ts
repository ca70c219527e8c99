// The language server of this page: completion, hover, findings, definitions and rename in the editor.

import {
  findReferencesKeymap, formatKeymap, hoverTooltips, jumpToDefinitionKeymap, LSPClient, LSPPlugin, renameKeymap, serverCompletion, serverDiagnostics,
  signatureHelp, type Transport, Workspace, type WorkspaceFile,
} from "@codemirror/lsp-client";
import type { ChangeSet, Text } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import type { EditorView } from "codemirror";
import { call, callWaiting } from "./api";
import { go, project } from "./state";

/** Messages go out by one call and come in by another that waits for them. */
class Calls implements Transport {
  private handlers: ((message: string) => void)[] = [];
  private queue: unknown[] = [];
  private sending = false;

  constructor(private readonly editor: number, private readonly ended: () => void) {
    void this.receive();
  }

  send(message: string) {
    this.queue.push(JSON.parse(message));
    if (!this.sending) void this.flush();
  }

  subscribe(handler: (message: string) => void) {
    this.handlers.push(handler);
  }

  unsubscribe(handler: (message: string) => void) {
    this.handlers = this.handlers.filter((one) => one !== handler);
  }

  private async flush() {
    this.sending = true;
    while (this.queue.length > 0) {
      const messages = this.queue.splice(0);
      try {
        await call("editor/send", { editor: this.editor, messages });
      } catch {
        break; // `receive` notices the end of the server.
      }
    }
    this.sending = false;
  }

  private async receive() {
    for (;;) {
      try {
        const { messages } = await callWaiting<{ messages: unknown[] }>("editor/receive", { editor: this.editor });
        for (const message of messages) for (const handler of this.handlers) handler(JSON.stringify(message));
      } catch {
        return this.ended();
      }
    }
  }
}

class File implements WorkspaceFile {
  constructor(readonly uri: string, readonly languageId: string, public version: number, public doc: Text, public view: EditorView | null) {}
  getView() {
    return this.view;
  }
}

type Shown = (view: EditorView) => void;
let waiting: { uri: string; shown: Shown } | null = null;

/** Tells who waits for a file that the editor shows it. */
export function shown(uri: string, view: EditorView) {
  if (waiting?.uri === uri) {
    waiting.shown(view);
    waiting = null;
  }
}

/** The files of the page's one editor. */
class OneEditor extends Workspace {
  files: File[] = [];
  private versions: Record<string, number> = {};

  syncFiles() {
    const updates: { file: File; prevDoc: Text; changes: ChangeSet }[] = [];
    for (const file of this.files) {
      const plugin = file.view && LSPPlugin.get(file.view);
      if (!plugin || plugin.unsyncedChanges.empty) continue;
      updates.push({ file, prevDoc: file.doc, changes: plugin.unsyncedChanges });
      file.doc = file.view!.state.doc;
      file.version = this.next(file.uri);
      plugin.clear();
    }
    return updates;
  }

  openFile(uri: string, languageId: string, view: EditorView) {
    const file = new File(uri, languageId, this.next(uri), view.state.doc, view);
    this.files = [...this.files.filter((one) => one.uri !== uri), file];
    this.client.didOpen(file);
  }

  closeFile(uri: string) {
    this.files = this.files.filter((one) => one.uri !== uri);
    this.client.didClose(uri);
  }

  displayFile(uri: string): Promise<EditorView | null> {
    const open = this.getFile(uri)?.getView();
    if (open) return Promise.resolve(open);
    const name = fileOf(uri);
    if (!name) return Promise.resolve(null);
    return new Promise((resolve) => {
      waiting = { uri, shown: resolve };
      go({ file: name });
    });
  }

  private next(uri: string) {
    return (this.versions[uri] = (this.versions[uri] ?? 0) + 1);
  }
}

const encoded = (path: string) => path.split("/").map(encodeURIComponent).join("/");
export const uriOf = (file: string) => `file://${encoded(`${project.value?.root ?? ""}/${file}`)}`;

function fileOf(uri: string): string | null {
  const root = `file://${encoded(project.value?.root ?? "")}/`;
  return uri.startsWith(root) ? decodeURIComponent(uri.slice(root.length)) : null;
}

const KEPT = new Set(["P", "CODE", "PRE", "UL", "OL", "LI", "STRONG", "EM", "H1", "H2", "H3", "H4", "HR", "BR", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "SPAN", "DIV", "BLOCKQUOTE"]);

/** Markup of a hover can hold text of a project, so only formatting is left of it. */
export function sanitized(html: string): string {
  const body = new DOMParser().parseFromString(html, "text/html").body;
  for (const element of [...body.querySelectorAll("*")].reverse()) {
    if (!KEPT.has(element.tagName)) element.replaceWith(...(element.tagName === "SCRIPT" || element.tagName === "STYLE" ? [] : element.childNodes));
    else for (const attribute of [...element.attributes]) if (attribute.name !== "class") element.removeAttribute(attribute.name);
  }
  return body.innerHTML;
}

/** Waits until the user looks at this page. */
const whenVisible = () => new Promise<void>((done) => {
  const look = () => {
    if (document.visibilityState !== "visible") return;
    document.removeEventListener("visibilitychange", look);
    done();
  };
  document.addEventListener("visibilitychange", look);
  look();
});

let editor: number | null = null;

/** Starts a language server, and another when it ends: the oldest one ends when very many pages are open. */
async function connect(client: LSPClient) {
  ({ editor } = await call<{ editor: number }>("editor/open"));
  client.connect(new Calls(editor, async () => {
    client.disconnect();
    for (;;) {
      await new Promise((done) => setTimeout(done, 1000));
      await whenVisible();
      try {
        return await connect(client);
      } catch { /* The studio has stopped, or starts again. */ }
    }
  }));
}

let client: Promise<LSPClient> | null = null;

export function languageClient(): Promise<LSPClient> {
  client ??= (async () => {
    const made = new LSPClient({
      rootUri: `file://${encoded(project.value?.root ?? "")}`,
      workspace: (client) => new OneEditor(client),
      sanitizeHTML: sanitized,
      timeout: 10_000,
      // Names come from the library alone, not also from the editor's knowledge of the language.
      extensions: [
        serverCompletion({ override: true }), hoverTooltips(), signatureHelp(), serverDiagnostics(),
        keymap.of([...formatKeymap, ...renameKeymap, ...jumpToDefinitionKeymap, ...findReferencesKeymap]),
      ],
    });
    addEventListener("pagehide", () => void call("editor/close", { editor }));
    await connect(made);
    return made;
  })();
  return client;
}
