// The editor: the files of a prompt, with the language server behind it.

import { defaultKeymap } from "@codemirror/commands";
import { jinja } from "@codemirror/lang-jinja";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { python } from "@codemirror/lang-python";
import { yaml, yamlFrontmatter } from "@codemirror/lang-yaml";
import { syntaxHighlighting } from "@codemirror/language";
import { EditorSelection, EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { useSignalEffect } from "@preact/signals";
import { basicSetup, EditorView } from "codemirror";
import { useEffect, useRef } from "preact/hooks";
import { languageClient, shown, uriOf } from "./language";
import { Offsets } from "./offsets";
import { Difference } from "./parts";
import { conflicts, cursor, edit, files, go, openFile, place, result, save, settle, target, unsaved } from "./state";

function languageOf(name: string): Extension {
  if (name.endsWith(".py")) return python();
  if (name.endsWith(".json")) return json();
  if (/\.ya?ml$/.test(name)) return yaml();
  return yamlFrontmatter({ content: jinja({ base: markdown() }) });
}

const setMark = StateEffect.define<{ from: number; to: number } | null>();
const mark = Decoration.mark({ class: "cm-origin" });
const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(all, transaction) {
    all = all.map(transaction.changes);
    for (const change of transaction.effects) {
      if (change.is(setMark)) {
        all = change.value && change.value.from < change.value.to
          ? Decoration.set([mark.range(change.value.from, change.value.to)]) : Decoration.none;
      }
    }
    return all;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--paper)", color: "var(--ink)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--faint)", borderRight: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active)" },
  ".cm-origin": { backgroundColor: "var(--mark)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--select)" },
});

const nonce = document.querySelector<HTMLMetaElement>("meta[name=style-nonce]")?.content ?? "";

/** The files of the prompt: those that it was rendered from, and the rest of its folder that it declares. */
export function filesOf(): string[] {
  const definition = result.value?.definition;
  if (!definition) return place.value.file ? [place.value.file] : [];
  const names = new Set<string>();
  if (definition.template_file) names.add(definition.template_file);
  for (const file of (definition.names?.files ?? [])) names.add(file);
  const source = typeof definition.source === "string" ? definition.source : "";
  if (definition.dialect === "template" && (definition.hooks.length > 0 || definition.has_prompt_py)) names.add(`${source}/prompt.py`);
  if (place.value.file) names.add(place.value.file);
  return [...names];
}

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const current = useRef<{ name: string; table: { text: string; offsets: Offsets } | null }>({ name: "", table: null });

  const offsetsOf = (text: string) => {
    if (current.current.table?.text !== text) current.current.table = { text, offsets: new Offsets(text) };
    return current.current.table!.offsets;
  };

  const show = async (name: string) => {
    const file = await openFile(name);
    if (!file || !host.current || (place.value.file || filesOf()[0]) !== name) return;
    current.current = { name, table: null };
    const extensions: Extension[] = [
      basicSetup, languageOf(name), theme, syntaxHighlighting(classHighlighter), marked, EditorView.lineWrapping, EditorView.cspNonce.of(nonce),
      EditorView.contentAttributes.of({ "aria-label": `Source of ${name}` }),
      keymap.of([{ key: "Mod-s", preventDefault: true, run: () => { void save(name); return true; } }, ...defaultKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged || update.selectionSet) {
          const byte = offsetsOf(update.state.doc.toString()).byte(update.state.selection.main.head);
          cursor.value = { file: name, byte };
        }
      }),
      EditorState.readOnly.of(file.readOnly),
    ];
    if (!file.readOnly) {
      try {
        extensions.push((await languageClient()).plugin(uriOf(name), name.endsWith(".py") ? "python" : "markdown"));
      } catch { /* The editor works without the language server, which has said why. */ }
    }
    view.current?.destroy();
    view.current = new EditorView({
      doc: files.value[name].text, extensions, parent: host.current,
      dispatchTransactions: (transactions, view) => {
        const last = transactions.at(-1);
        // Before the editor parses and draws the change, so that the server renders meanwhile.
        if (last && transactions.some((one) => one.docChanged)) edit(name, last.newDoc.toString());
        view.update(transactions);
      },
    });
    shown(uriOf(name), view.current);
    reveal();
  };

  const reveal = () => {
    const wanted = target.value, editor = view.current;
    if (!wanted || !editor || wanted.file !== current.current.name) return;
    target.value = null;
    const offsets = offsetsOf(editor.state.doc.toString());
    const from = offsets.unit(wanted.start), to = offsets.unit(wanted.end);
    editor.dispatch({
      selection: EditorSelection.single(from), effects: [setMark.of({ from, to }), EditorView.scrollIntoView(from, { y: "center" })],
    });
    editor.focus();
  };

  useSignalEffect(() => {
    const name = place.value.file || filesOf()[0];
    target.value;
    if (!name) return;
    if (name !== current.current.name) void show(name);
    else reveal();
  });

  // A text that changed elsewhere: a conflict that was settled, or another program.
  useSignalEffect(() => {
    const name = current.current.name, file = files.value[name], editor = view.current;
    if (file && editor && editor.state.doc.toString() !== file.text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: file.text } });
    }
  });

  useEffect(() => () => view.current?.destroy(), []);

  const names = filesOf(), open = place.value.file || names[0];
  const isDirty = (name: string) => name in unsaved.value;
  const conflict = open ? conflicts.value[open] : undefined;
  return (
    <section class="pane editor" aria-label="Source">
      <div class="bar" role="tablist" aria-label="Files of the prompt">
        {names.map((name) => (
          <button key={name} role="tab" aria-selected={name === open} title={name} onClick={() => go({ file: name })}>
            {name.split("/").slice(-2).join("/")}{isDirty(name) ? " •" : ""}
          </button>
        ))}
        <span class="space" />
        {open && files.value[open]?.readOnly && <span class="badge">read only</span>}
        {open && isDirty(open) && <button class="act" onClick={() => void save(open)}>Save</button>}
      </div>
      {conflict && open && (
        <div class="notice bad" role="alert">
          <b>{open}</b> was changed by another program since you opened it. {conflict.text === null ? "It is gone." : "This is what differs from your text:"}
          {conflict.text !== null && <Difference before={conflict.text} after={files.value[open]?.text ?? ""} label="Differences between the text on disk and yours" />}
          <button class="act" onClick={() => settle(open, "mine")}>Keep my text</button>
          <button class="act" onClick={() => settle(open, "theirs")}>Use the text on disk</button>
        </div>
      )}
      <div class="host" ref={host} />
    </section>
  );
}
