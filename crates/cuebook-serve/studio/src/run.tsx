// The dialog that runs the prompt with a model, with the options of `cuebook run`.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { CallError, command, type Failure } from "./api";
import { FailureView } from "./parts";
import { go, place, unsaved } from "./state";

const isOpen = signal(false);
const busy = signal(false);
const failure = signal<Failure | null>(null);
const fields = signal({ model: "", provider: "", message: "", limits: "", tools: "", allow: "" });

export function openRun() {
  failure.value = null;
  isOpen.value = true;
}

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

async function run() {
  const { prompt, values, language } = place.value, { model, provider, message, limits, tools, allow } = fields.value;
  const options: Record<string, string | string[]> = { limit: words(limits), tool: words(tools), allow: words(allow) };
  for (const [name, value] of Object.entries({ model, provider, message, language })) if (value) options[name] = value;
  busy.value = true;
  failure.value = null;
  try {
    const { document } = await command<{ thread_id?: string }>("run", [prompt], options, values);
    isOpen.value = false;
    if (document?.thread_id) go({ view: "threads", thread: document.thread_id, turn: "", against: "" });
  } catch (error) {
    failure.value = error instanceof CallError ? error.failure : { message: (error as Error).message };
  }
  busy.value = false;
}

const FIELDS: [keyof typeof fields.value, string, string][] = [
  ["model", "Model", "the prompt's model"], ["provider", "Provider", "the model's provider"], ["message", "Message of the user", "none"],
  ["limits", "Limits", "turns=5 spend=0.5"], ["tools", "Items behind its tools", "search=my/search"], ["allow", "What they may do besides", "rye.execute.tool.my.*"],
];

export function RunDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = isOpen.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-label="Run the prompt" onClose={() => (isOpen.value = false)}>
      {open && (
        <form onSubmit={(event) => { event.preventDefault(); void run(); }}>
          <h2>Run {place.value.prompt}</h2>
          <p class="hint">This calls the model, which costs money, in a thread with the values of the form.
            {Object.keys(unsaved.value).length > 0 ? " It uses the saved files." : ""} Tools run in the sandbox, and only those that you name here.</p>
          {FIELDS.map(([name, title, placeholder]) => (
            <div class="field" key={name}>
              <label for={`run-${name}`}>{title}</label>
              <input id={`run-${name}`} placeholder={placeholder} value={fields.value[name]} onInput={(event) => (fields.value = { ...fields.value, [name]: event.currentTarget.value })} />
            </div>
          ))}
          {failure.value && <FailureView failure={failure.value} />}
          <div class="tools"><button class="act main" disabled={busy.value}>{busy.value ? "Starting…" : "Run"}</button>
            <button class="act" type="button" onClick={() => (isOpen.value = false)}>Cancel</button></div>
        </form>
      )}
    </dialog>
  );
}
