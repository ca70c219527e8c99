// The page of `cuebook studio`.

import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { call, takeToken, token } from "./api";
import { Decide } from "./decide";
import { Editor } from "./editor";
import { exportView } from "./export";
import { loadCases } from "./form";
import { Library } from "./library";
import { ResultPane } from "./result";
import { RunDialog, openRun } from "./run";
import { failure, followAddress, followPrompt, go, hashOf, leftOut, loadLibrary, message, place, project, prompts, refreshFiles, say, took, unsaved, type View } from "./state";
import { Threads } from "./threads";

/** On a narrow screen one pane shows at a time. */
const pane = signal<"library" | "source" | "result">("library");
const theme = signal(localStorage.getItem("cuebook-theme") ?? "");

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("cuebook-theme", theme.value);
});

const VIEWS: [View, string][] = [["prompts", "Prompts"], ["decide", "Decide"], ["threads", "Threads"]];

async function copyLink() {
  const link = `${location.origin}/#token=${token()}&${hashOf(place.value)}`;
  try {
    await navigator.clipboard.writeText(link);
    const long = leftOut(place.value.values).map(([name]) => name).join(", ");
    say(`copied a link to this view${long && `, without ${long}, which is too long for a link`}; it works until the studio stops`);
  } catch {
    say(link);
  }
}

async function save() {
  try {
    await exportView();
  } catch (error) {
    say((error as Error).message, "error");
  }
}

function Top() {
  const { view, prompt, thread } = place.value;
  return (
    <header class="top">
      <h1>Cuebook <span class="kind" title={project.value?.root}>{project.value?.name ?? ""}</span></h1>
      <nav aria-label="Views">{VIEWS.map(([name, title]) => (
        <button key={name} aria-current={view === name ? "page" : undefined} onClick={() => go({ view: name })}>{title}
          {name === "decide" && prompts.value?.some((one) => one.conflict) ? <span class="dot" title="there is something to decide" /> : null}</button>
      ))}</nav>
      <span class="space" />
      {view === "prompts" && prompt && <button class="act" onClick={() => openRun()}>Run…</button>}
      {((view === "prompts" && prompt) || (view === "threads" && thread)) && <button class="act" onClick={() => void save()}>Export</button>}
      <button class="act" onClick={() => void copyLink()}>Copy link</button>
      <button class="act" title="Change the theme" onClick={() => (theme.value = { "": "dark", dark: "light", light: "" }[theme.value] ?? "")}>
        Theme: {{ "": "system", dark: "dark", light: "light" }[theme.value] ?? "system"}</button>
    </header>
  );
}

function Prompts() {
  const tabs: [typeof pane.value, string][] = [["library", "Library"], ["source", "Source"], ["result", "Result"]];
  return (
    <main class="prompts" data-pane={pane.value}>
      <nav class="panes" aria-label="Panes">{tabs.map(([name, title]) => (
        <button key={name} aria-current={pane.value === name ? "true" : undefined} onClick={() => (pane.value = name)}>{title}</button>
      ))}</nav>
      <Library />
      {place.value.prompt
        ? <><Editor /><ResultPane /></>
        : <p class="empty welcome">Choose a prompt. Its source and what it renders appear here; point at any part of the text to see where it came from.</p>}
    </main>
  );
}

function Message() {
  const shown = message.value;
  return (
    <div class={`toast ${shown?.kind ?? ""}`} role="status" aria-live="polite" hidden={!shown}>
      {shown?.text} {shown && <button class="act" aria-label="Close the message" onClick={() => (message.value = null)}>×</button>}
    </div>
  );
}

function App() {
  const { view } = place.value;
  return (
    <>
      <Top />
      {view === "decide" ? <Decide /> : view === "threads" ? <Threads /> : <Prompts />}
      <RunDialog />
      <Message />
    </>
  );
}

function NoToken() {
  return <main class="page"><h1>Cuebook studio</h1><p>This address has no token. Open the address that <code>cuebook studio</code> printed in the terminal.</p></main>;
}

const host = document.getElementById("app")!;
host.replaceChildren();
if (!takeToken()) render(<NoToken />, host);
else {
  followAddress();
  await loadLibrary();
  followPrompt();
  let casesOf = "";
  effect(() => {
    const { prompt } = place.value;
    if (prompt && prompt !== casesOf) {
      casesOf = prompt;
      if (pane.peek() === "library") pane.value = "result";
      void loadCases(prompt);
    }
  });
  effect(() => {
    document.title = place.value.prompt ? `${place.value.prompt} · Cuebook studio` : "Cuebook studio";
  });
  addEventListener("beforeunload", (event) => {
    if (Object.keys(unsaved.peek()).length > 0) event.preventDefault();
  });
  // Another program may change the library: look again when the user comes back.
  addEventListener("focus", () => void loadLibrary());
  setInterval(() => { if (document.visibilityState === "visible") void refreshFiles(); }, 1500);
  render(<App />, host);
}

// Tests read these.
Object.assign(window, { cuebook: { place, failure, took, call } });
