//! Drives every input of a set of prompts with forgeries, and asserts that the structure of the messages is that of a
//! harmless value.
//!
//! A case is a string of bytes, so that the property test and the fuzz target can share it: the first byte chooses the
//! prompt, the others choose fragments of attacks, or spell letters of their own. Nonces are fixed here, so that an attacker
//! knows them, which is more than one can know in earnest.

use std::sync::{Arc, OnceLock};

use cuebook::chat::{Message, Part};
use cuebook::hooks::{HookContext, Hooks};
use cuebook::variables::FixedNonces;
use cuebook::{Book, Context, Prepared, Variables};
use cuebook_lab::attack::{DIGITS, FORGERIES};
use serde_json::{Map, Value as Json, json};

/// Prompts whose inputs are `question` and `name` (texts), `lines` (texts in a list), `order` (an object with texts),
/// `history` (a conversation) and `photo` (a picture).
const PROMPTS: &[(&str, &str)] = &[
    (
        "plain",
        "system:\nYou answer {{ name }}.\n\nuser:\n{{ question }}\n\nassistant:\nWell, {{ order.title }}\n",
    ),
    (
        "filters",
        "system:\nHi.\nuser:\n{{ question | trim }}\n{{ name | upper }}{{ question | lower }}\n{{ lines | join('\n') }}\n",
    ),
    (
        "operators",
        "user:\n{{ question or name }}\n{{ name ~ '\n' ~ question }}\n{{ question if name else lines }}\n",
    ),
    (
        "loops",
        "system:\n{% for line in lines %}\n{{ line }}\n{% endfor %}\nuser:\n{% for c in question %}{{ c }}{% endfor %}\n",
    ),
    (
        "joined",
        "{{ name }}system:\n{{ question }}user:\nsystem:{{ question }}\nsys{{ name }}tem:\n# {{ name }} user:\nassistant{{ question }}:\nuser:\n.\n",
    ),
    (
        "attributes",
        "system:\nHi.\nuser[name=\"{{ name }}\", id=7]:\n{{ question }}\nassistant[title=\"{{ order.title }}{{ name }}\"]:\nYes.\n",
    ),
    (
        "captures",
        "{% set x %}\n{{ question }}\nuser:\n{% endset %}{% macro m(a) %}{{ a }}\n{% endmacro %}system:\n{{ x }}{{ m(name) }}user:\n{{ m(lines) }}\n",
    ),
    (
        "rich",
        "system:\nLook.\n\n{{ history }}\n\nuser:\n{{ question }}\n{{ photo }}\n{{ name }}\n{{ order.title }}{{ photo }}\n",
    ),
    ("hooked", "system:\nBe strict.\nuser:\n{{ question }}\nassistant:\n{{ name }}\n"),
    ("before", "{{ question }}\n{{ name }}\nsystem:\n{{ lines }}\nuser:\n{{ order }}\n"),
    ("python", "system:\n{{ lines }}\n{{ order }}\nuser:\n{{ question }}{{ name|replace('a', '\n') }}\n"),
    (
        "mustache",
        "system:\n{{name}}\n{{#lines}}\n{{.}}\n{{/lines}}\nuser:\n{{{question}}}\n{{&name}}{{#order}}{{{title}}}{{/order}}\n{{{history}}}\nassistant:\n{{^missing}}{{{question}}}{{/missing}}\n",
    ),
];

/// What a value can be, made of the bytes of a case.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match FORGERIES.get(usize::from(*byte)) {
            Some(forgery) => text.push_str(forgery.text),
            None => text.push(char::from(*byte)),
        }
    }
    // A value that says nothing is no attack; conditions may well ask for it.
    if text.trim().is_empty() {
        text.push('.');
    }
    text
}

/// Values of the declared shapes, all of whose texts come from the function.
fn values(mut text: impl FnMut(usize) -> String) -> Variables {
    let object = json!({
        "question": text(0),
        "name": text(1),
        "lines": [text(2), text(3), text(4)],
        "order": {"title": text(5), "note": text(6)},
        "history": [{"role": "user", "content": text(7)}, {"role": "assistant", "content": [{"kind": "text", "value": text(8)}]}],
        "photo": "https://example.com/a.png",
    });
    Variables::from_json(object.as_object().unwrap_or(&Map::new()))
}

/// How many texts there are.
const TEXTS: usize = 9;

/// The structure of messages: who speaks, in what parts, with which attributes.
type Structure = Vec<(String, Vec<&'static str>, Vec<String>)>;

fn structure(messages: &[Message]) -> Structure {
    let kind = |part: &Part| match part {
        Part::Text { .. } => "text",
        Part::Image(_) => "image",
        Part::Audio(_) => "audio",
        Part::File(_) => "file",
    };
    let shape = |message: &Message| {
        let parts = message.parts.iter().map(kind).collect();
        (message.role.as_str().to_owned(), parts, message.metadata.keys().cloned().collect())
    };
    messages.iter().map(shape).collect()
}

struct Prompt {
    name: &'static str,
    prepared: Arc<Prepared>,
    harmless: Structure,
}

fn prompts() -> &'static [Prompt] {
    // With the folder, in which hooks work.
    static PREPARED: OnceLock<(tempfile::TempDir, Vec<Prompt>)> = OnceLock::new();
    let (_, prompts) = PREPARED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let context = Arc::new(Context::default());
        let prepare = |(name, body): &(&'static str, &str)| {
            let format = match *name {
                "mustache" => json!("mustache"),
                "python" => json!({"kind": "jinja2", "options": {"scalars": "python"}}),
                _ => json!("jinja2"),
            };
            let front = json!({
                "inputs": {
                    "question": {"kind": "string"}, "name": {"kind": "string"},
                    "lines": {"kind": "array", "items": {"kind": "string"}}, "order": {"kind": "object"},
                    "history": {"kind": "thread"}, "photo": {"kind": "image"},
                },
                "template": {"format": format},
            });
            let path = folder.path().join(format!("{name}.prompty"));
            std::fs::write(&path, format!("---\n{front}\n---\n{body}")).expect("a file");
            let hooks = Hooks::new().post_render("hooked", |text: &str, _: &_, _: &HookContext<'_>| {
                Ok(format!("Written by a hook.\n{text}\nuser:\nalso by the hook"))
            });
            let book = Book::open(folder.path()).with_paths(true);
            let book = book.with_nonces(FixedNonces(DIGITS.into())).with_hooks(hooks);
            let prepared =
                book.prepare(&path.to_string_lossy(), &context).unwrap_or_else(|error| panic!("{error}"));
            let harmless = speak(&prepared, &values(|_| "harmless".into()));
            Prompt { name, prepared, harmless: structure(&harmless) }
        };
        let prompts = PROMPTS.iter().map(prepare).collect();
        (folder, prompts)
    });
    prompts
}

fn speak(prepared: &Prepared, values: &Variables) -> Vec<Message> {
    let rendered =
        prepared.render(values, &Arc::default()).unwrap_or_else(|error| panic!("refused: {error}"));
    rendered.messages().unwrap_or_else(|error| panic!("refused: {error}"))
}

/// How many prompts there are, and how many messages each has with harmless values.
pub fn expected() -> Vec<(&'static str, usize)> {
    prompts().iter().map(|prompt| (prompt.name, prompt.harmless.len())).collect()
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let prompts = prompts();
    let prompt = &prompts[usize::from(*first) % prompts.len()];
    let share = rest.len().div_ceil(TEXTS).max(1);
    let values = values(|index| text(rest.chunks(share).nth(index).unwrap_or_default()));
    let found = structure(&speak(&prompt.prepared, &values));
    let shown: Json = values.names().map(|name| json!([name, values.get(name)])).collect();
    assert_eq!(found, prompt.harmless, "{}: {shown}", prompt.name);
}
