import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { type Preview, escaped, page, partsAt } from "./parts";

/** The rendered prompt beside its file. It follows the cursor, and a click on a part leads to where the part is written. */
export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private preview: Preview | undefined;
  private document: vscode.TextDocument | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly listeners: vscode.Disposable[];

  constructor(private readonly client: () => LanguageClient | undefined) {
    this.listeners = [
      vscode.workspace.onDidChangeTextDocument(() => this.later()),
      vscode.window.onDidChangeTextEditorSelection((event) => this.follow(event.textEditor)),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.panel?.dispose();
    this.listeners.forEach((listener) => listener.dispose());
  }

  async show(editor: vscode.TextEditor | undefined): Promise<void> {
    if (!editor || editor.document.uri.scheme !== "file") {
      void vscode.window.showInformationMessage("Open the file of a prompt first.");
      return;
    }
    this.document = editor.document;
    if (!this.panel) {
      this.panel = vscode.window.createWebviewPanel(
        "cuebook",
        "Prompt",
        { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
        { enableScripts: true, localResourceRoots: [] },
      );
      this.panel.onDidDispose(() => (this.panel = undefined));
      this.panel.webview.onDidReceiveMessage((index: unknown) => this.open(index));
    }
    await this.refresh();
    this.follow(editor);
  }

  /** Renders again once the author pauses. */
  private later(): void {
    if (this.panel) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.refresh(), 100);
    }
  }

  private async refresh(): Promise<void> {
    const { panel, document } = this;
    const client = this.client();
    if (!panel || !document || !client) return;
    const nonce = randomBytes(16).toString("hex");
    try {
      const params = { textDocument: { uri: document.uri.toString() } };
      this.preview = await client.sendRequest<Preview>("cuebook/preview", params);
      panel.title = this.preview.prompt;
      panel.webview.html = page(this.preview, document.uri.toString(), nonce);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      panel.webview.html = `<!DOCTYPE html><html lang="en"><body><pre>${escaped(message)}</pre></body></html>`;
    }
  }

  /** Marks the parts that are written at the cursor. */
  private follow(editor: vscode.TextEditor): void {
    if (this.panel && this.preview) {
      const found = partsAt(this.preview.parts, editor.document.uri.toString(), editor.selection.active);
      void this.panel.webview.postMessage(found);
    }
  }

  /** Opens the place that a part is written at. */
  private async open(index: unknown): Promise<void> {
    const location = typeof index === "number" ? this.preview?.parts[index]?.location : undefined;
    if (!location) return;
    const { start, end } = location.range;
    const selection = new vscode.Range(start.line, start.character, end.line, end.character);
    await vscode.window.showTextDocument(vscode.Uri.parse(location.uri), { selection, viewColumn: vscode.ViewColumn.One });
  }
}
