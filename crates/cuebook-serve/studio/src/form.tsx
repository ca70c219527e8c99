// The form of a prompt's inputs, made from their declarations; test cases fill it, and it is saved as a case.

import { signal } from "@preact/signals";
import { call, CallError } from "./api";
import { type Declared, files, go, openFile, place, result, say, save, edit } from "./state";

const open = signal(true);
/** Texts of fields that are no valid value, by name. */
const invalid = signal<Record<string, { text: string; why: string }>>({});
const caseName = signal("");

export interface Case { name: string; inputs: Record<string, unknown> }
export const cases = signal<{ file: string | null; exists: boolean; cases: Case[] }>({ file: null, exists: false, cases: [] });

export async function loadCases(prompt: string) {
  try {
    cases.value = await call("cases", { id: prompt });
  } catch (error) {
    cases.value = { file: null, exists: false, cases: [] };
    // A prompt that several places offer is shown as a conflict; a case file with a mistake is said here.
    if (error instanceof CallError && error.failure.code !== "CB102" && error.failure.code !== "CB101") say(error.message, "error");
  }
}

function set(name: string, value: unknown) {
  const { [name]: _, ...others } = place.value.values;
  go({ values: value === undefined ? others : { ...others, [name]: value } });
}

function setParsed(name: string, text: string) {
  const { [name]: _, ...others } = invalid.value;
  invalid.value = others;
  if (text.trim() === "") return set(name, undefined);
  try {
    set(name, JSON.parse(text));
  } catch (error) {
    invalid.value = { ...others, [name]: { text, why: (error as Error).message } };
  }
}

/** A file as the value of a rich input. */
async function setFile(name: string, file: File | undefined) {
  if (!file) return set(name, undefined);
  if (file.size > 8 << 20) return say(`${file.name} is larger than 8 MB`, "error");
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  set(name, `data:${file.type || "application/octet-stream"};base64,${btoa(binary)}`);
}

interface Turn { role: string; content: string }

function Conversation({ name, value }: { name: string; value: unknown }) {
  const turns: Turn[] = Array.isArray(value) ? (value as Turn[]) : [];
  const change = (next: Turn[]) => set(name, next.length > 0 ? next : undefined);
  return (
    <div class="turns">
      {turns.map((turn, at) => (
        <div class="turn" key={at}>
          <select aria-label={`Role of message ${at + 1} of ${name}`} value={turn.role}
            onChange={(event) => change(turns.with(at, { ...turn, role: event.currentTarget.value }))}>
            <option>user</option><option>assistant</option>
          </select>
          <textarea rows={1} aria-label={`Message ${at + 1} of ${name}`} value={turn.content}
            onInput={(event) => change(turns.with(at, { ...turn, content: event.currentTarget.value }))} />
          <button class="act" aria-label={`Remove message ${at + 1} of ${name}`} onClick={() => change(turns.toSpliced(at, 1))}>×</button>
        </div>
      ))}
      <button class="act" onClick={() => change([...turns, { role: turns.length % 2 === 0 ? "user" : "assistant", content: "" }])}>
        Add a message
      </button>
    </div>
  );
}

function Field({ declared, need }: { declared: Declared; need: string }) {
  const { name } = declared, value = place.value.values[name], id = `input-${name}`;
  const placeholder = declared.default === undefined || declared.default === null ? "" :
    typeof declared.default === "string" ? declared.default : JSON.stringify(declared.default);
  const wrong = invalid.value[name];
  const text = wrong ? wrong.text : value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const control = () => {
    if (declared.enumValues?.length) {
      return (
        <select id={id} value={value === undefined ? "" : JSON.stringify(value)}
          onChange={(event) => setParsed(name, event.currentTarget.value)}>
          <option value="">{placeholder === "" ? "no value" : `default: ${placeholder}`}</option>
          {declared.enumValues.map((choice) => <option key={String(choice)} value={JSON.stringify(choice)}>{String(choice)}</option>)}
        </select>
      );
    }
    switch (declared.type) {
      case "boolean":
        return (
          <select id={id} value={value === undefined ? "" : String(value)} onChange={(event) => setParsed(name, event.currentTarget.value)}>
            <option value="">{placeholder === "" ? "no value" : `default: ${placeholder}`}</option>
            <option value="true">true</option><option value="false">false</option>
          </select>
        );
      case "integer": case "number": case "float":
        return <input id={id} inputMode="decimal" value={text} placeholder={placeholder} aria-invalid={!!wrong}
          onInput={(event) => setParsed(name, event.currentTarget.value)} />;
      case "thread":
        return <Conversation name={name} value={value} />;
      case "image": case "audio": case "file":
        return (
          <span class="file">
            <input id={id} type="file" onChange={(event) => void setFile(name, event.currentTarget.files?.[0])} />
            {value !== undefined && <button class="act" onClick={() => set(name, undefined)}>Remove</button>}
          </span>
        );
      case "list": case "array": case "object": case "any":
        return <textarea id={id} rows={2} value={text} placeholder={placeholder || "JSON"} aria-invalid={!!wrong} spellcheck={false}
          onInput={(event) => setParsed(name, event.currentTarget.value)} />;
      case "undeclared":
        // A list or an object is written as JSON, anything else is text.
        return <textarea id={id} rows={Math.min(6, text.split("\n").length)} value={text} placeholder="text, or JSON of a list or an object" aria-invalid={!!wrong}
          onInput={(event) => {
            const given = event.currentTarget.value;
            if (/^\s*[[{]/.test(given)) return setParsed(name, given);
            const { [name]: _, ...others } = invalid.value;
            invalid.value = others;
            set(name, given === "" ? undefined : given);
          }} />;
      default:
        return <textarea id={id} rows={Math.min(6, text.split("\n").length)} value={text} placeholder={placeholder}
          onInput={(event) => set(name, event.currentTarget.value === "" ? undefined : event.currentTarget.value)} />;
    }
  };
  return (
    <div class="field">
      <label for={id} title={declared.description}>
        {name} {need !== "undeclared" && <span class="kind">{declared.type}{need === "required" ? ", required" : ""}</span>}
      </label>
      {control()}
      {wrong && <p class="why" role="alert">{wrong.why}</p>}
      {declared.description && <p class="hint">{declared.description}</p>}
    </div>
  );
}

/** A case as the text of its Markdown. */
function caseText(name: string, values: Record<string, unknown>): string {
  // JSON is YAML, and a fence longer than any in the values cannot be closed by one.
  const lines = Object.entries(values).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`).join("\n");
  const longest = Math.max(2, ...(lines.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `\n## ${name}\n\n${fence}yaml inputs\n${lines || "{}"}\n${fence}\n`;
}

async function saveCase() {
  const name = caseName.value.trim().replace(/\s+/g, " "), { file, exists } = cases.value;
  if (!name) return say("a case needs a name", "error");
  if (!file) return say("a built-in prompt has no file of cases", "error");
  if (exists) await openFile(file);
  else if (!files.value[file]) files.value = { ...files.value, [file]: { saved: "", hash: null, readOnly: false, text: "" } };
  if (!files.value[file]) return;
  edit(file, `${files.value[file].text.replace(/\n*$/, "\n")}${caseText(name, place.value.values)}`.replace(/^\n+/, ""));
  await save(file);
  caseName.value = "";
  await loadCases(place.value.prompt);
}

export function Form() {
  const definition = result.value?.definition;
  if (!definition) return null;
  const { required, optional, custom } = definition.variables;
  // A template may use variables that nothing declares.
  const declared = new Set([...required, ...optional, ...custom].map((one) => one.name));
  const used = (definition.names?.variables ?? []).map((path) => path.split(/[.[]/)[0]).filter((name) => name !== "system" && !declared.has(name));
  const undeclared: Declared[] = [...new Set(used)].map((name) => ({ name, type: "undeclared" }));
  const count = declared.size + undeclared.length;
  const given = Object.keys(place.value.values).length;
  return (
    <details class="form" open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>Inputs <span class="kind">{count === 0 ? "none" : `${given} of ${count} given`}</span></summary>
      <div class="tools">
        {cases.value.cases.length > 0 && (
          <select aria-label="Fill from a test case" value="" onChange={(event) => {
            const one = cases.value.cases[Number(event.currentTarget.value)];
            if (one) go({ values: one.inputs });
            event.currentTarget.value = "";
          }}>
            <option value="">Fill from a case…</option>
            {cases.value.cases.map((one, at) => <option key={at} value={at}>{one.name}</option>)}
          </select>
        )}
        {definition.languages.length > 0 && (
          <select aria-label="Language" value={place.value.language} onChange={(event) => go({ language: event.currentTarget.value })}>
            <option value="">default language</option>
            {definition.languages.map((language) => <option key={language}>{language}</option>)}
          </select>
        )}
        {result.value?.has_hooks && (
          <label class="check"><input type="checkbox" checked={place.value.hooks} onChange={(event) => go({ hooks: event.currentTarget.checked })} />
            run hooks</label>
        )}
        {given > 0 && <button class="act" onClick={() => go({ values: {} })}>Clear</button>}
        <input aria-label="Name of a new case" placeholder="Name of a new case" value={caseName.value}
          onInput={(event) => (caseName.value = event.currentTarget.value)} />
        <button class="act" onClick={() => void saveCase()}>Save as a case</button>
      </div>
      {required.map((one) => <Field key={one.name} declared={one} need="required" />)}
      {optional.map((one) => <Field key={one.name} declared={one} need="optional" />)}
      {custom.map((one) => <Field key={one.name} declared={one} need="custom" />)}
      {undeclared.map((one) => <Field key={one.name} declared={one} need="undeclared" />)}
    </details>
  );
}
