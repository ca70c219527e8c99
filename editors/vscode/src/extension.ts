import * as path from "node:path";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { Panel } from "./panel";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const panel = new Panel(() => client);
  const pages = { provideTextDocumentContent: (uri: vscode.Uri) => ask<string>("cuebook/page", { uri: uri.toString() }) };
  context.subscriptions.push(
    panel,
    vscode.workspace.registerTextDocumentContentProvider("cuebook", pages),
    vscode.commands.registerCommand("cuebook.preview", () => panel.show(vscode.window.activeTextEditor)),
    vscode.commands.registerCommand("cuebook.explain", (prompt?: string) => run(["explain", prompt ?? here()])),
    vscode.commands.registerCommand("cuebook.check", () => run(["check"])),
    vscode.commands.registerCommand("cuebook.test", (file?: string, name?: string) =>
      run(["test", file ?? here(), ...(name === undefined ? [] : ["--case", name])]),
    ),
    vscode.commands.registerCommand("cuebook.run", (...words: string[]) => run(words)),
    vscode.commands.registerCommand("cuebook.restart", async () => {
      await client?.stop();
      await start();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

function program(): string {
  return vscode.workspace.getConfiguration("cuebook").get<string>("path", "cuebook");
}

async function start(): Promise<void> {
  const server = { command: program(), args: ["lsp"] };
  client = new LanguageClient("cuebook", "Cuebook", server, {
    documentSelector: [
      { scheme: "file", language: "prompty" },
      { scheme: "file", language: "dotprompt" },
      { scheme: "file", pattern: "**/*.prompt" },
      { scheme: "file", language: "markdown" },
      { scheme: "file", pattern: "**/prompt.py" },
      { scheme: "file", pattern: "**/{pack.json,cuebook.toml}" },
      { scheme: "file", pattern: "**/.ai/config/providers/*.{yaml,yml}" },
      { scheme: "file", pattern: "**/.ai/tools/**" },
    ],
  });
  try {
    await client.start();
  } catch {
    void vscode.window.showErrorMessage(`Cuebook did not start: install it, or set cuebook.path (now: ${program()}).`);
  }
}

async function ask<T>(method: string, params: object): Promise<T | undefined> {
  return client?.sendRequest<T>(method, params);
}

/** The file of the active editor. */
function here(): string {
  const file = vscode.window.activeTextEditor?.document.uri.fsPath ?? "";
  return /^(template(\..+)?\.md|prompt\.py)$/.test(path.basename(file)) ? path.dirname(file) : file;
}

/** Shows a command in a terminal, where the user sees what it does. An untrusted folder runs nothing. */
function run(words: string[]): void {
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showInformationMessage("Trust this folder first: commands can run code of the project.");
    return;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const terminal = vscode.window.createTerminal({ name: "Cuebook", cwd: folder, shellPath: program(), shellArgs: words });
  terminal.show();
}
