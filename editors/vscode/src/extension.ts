import { execFile } from "node:child_process";
import * as path from "node:path";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("cuebook.render", render),
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
      { scheme: "file", language: "markdown" },
      { scheme: "file", pattern: "**/prompts/**" },
    ],
  });
  try {
    await client.start();
  } catch {
    void vscode.window.showErrorMessage(`Cuebook did not start: install it, or set cuebook.path (now: ${program()}).`);
  }
}

/** Shows the page that `cuebook explain --html` writes for the prompt of the open file. */
async function render(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document || document.uri.scheme !== "file") {
    void vscode.window.showInformationMessage("Open the file of a prompt first.");
    return;
  }
  await document.save();
  const file = document.uri.fsPath;
  const isTemplate = /^(template(\..+)?\.md|prompt\.py)$/.test(path.basename(file));
  const prompt = isTemplate ? path.dirname(file) : file;
  const folder = vscode.workspace.getWorkspaceFolder(document.uri)?.uri.fsPath ?? path.dirname(file);
  execFile(program(), ["explain", prompt, "--html", "-"], { cwd: folder, maxBuffer: 1 << 26 }, (error, page, problem) => {
    if (error) {
      void vscode.window.showErrorMessage(problem || error.message);
      return;
    }
    const panel = vscode.window.createWebviewPanel("cuebook", path.basename(prompt), vscode.ViewColumn.Beside, {
      enableScripts: false,
    });
    panel.webview.html = page;
  });
}
