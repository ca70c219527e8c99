//! Attack: tries injection strings in every input of a prompt, and compares each render with that of a harmless value.
//!
//! One input at a time, and all at once: the messages (roles, number, order, parts), the sections and what is shown of them,
//! the tools, and every byte that authors and the engine wrote must stay the same; every byte of a value must be attributed to
//! its variable; no value may close a tag that surrounds it; a conversation must not speak with a role that its input does not
//! take; and strict inputs must refuse what looks like a role marker, and nothing else.
//!
//! A refused value counts as not tried. An input of which every value was refused proves nothing, so the attack fails.
//!
//! The values are the same ones each time, so an attack that was found is found again. Hooks take part only if the context
//! allows them.

mod conversation;
mod drive;
mod forgery;
mod input;
mod structure;
mod tags;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

pub use forgery::{DIGITS, FORGERIES, ForgedKind, Forgery, huge};

use crate::book::Book;
use crate::error::{Code, Diagnostic, Error, Hint, Result, printable};
use crate::prompt::Traits;
use crate::source::Place;
use crate::variables::{Context, Variables};

/// What became of an attack.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attack {
    /// The prompt's id.
    pub prompt: String,
    /// The notation that it is written in.
    pub dialect: &'static Traits,
    /// Whether it has hooks or variable providers, and whether they took part.
    pub hooks: Option<bool>,
    /// What was driven: each input, and then all of them at once if there are several.
    pub inputs: Vec<InputReport>,
    /// How many values there are to try for each input.
    pub values: usize,
    /// Whether the inputs are so many that they share the values: each gets those for every kind of structure, and some of the
    /// others.
    pub is_shared: bool,
    /// Everything that did not hold.
    pub breaches: Vec<Breach>,
}

/// What became of one input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputReport {
    /// Its name; `None` for all inputs at once.
    pub input: Option<String>,
    /// What it is declared to be.
    pub kind: &'static str,
    /// Whether it refuses what looks like a role marker.
    pub strict: bool,
    /// Whether it takes texts. A boolean or a number does not, and is driven with values of its type.
    pub carries_text: bool,
    /// How many renders showed a part of the value, as it was.
    pub seen: usize,
    /// How many values were rendered. A refused value was not tried.
    pub tried: usize,
    /// How many of them took another way through the conditions of the templates than the harmless value did. What shows
    /// then is the author's all the same.
    pub branched: usize,
    /// How many were refused, by the code of the refusal: a type, a limit, `strict`.
    pub refused: BTreeMap<Code, usize>,
    /// How many did not hold.
    pub breaches: usize,
    /// Why it could not be driven: even a harmless value cannot be rendered.
    pub problem: Option<Diagnostic>,
}

/// A value that changed what it must not change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Breach {
    /// The input; `None` if all inputs had forgeries.
    pub input: Option<String>,
    /// The forgery, in words.
    pub forgery: String,
    /// What the variables were.
    pub values: Json,
    /// What is wrong.
    pub what: String,
    /// How it was with a harmless value.
    pub before: String,
    /// How it is with this one.
    pub after: String,
    /// Where.
    pub place: Option<Place>,
    /// The tag around the value that it closes, if that is what is wrong.
    pub tag: Option<String>,
}

impl Attack {
    /// How many values were tried.
    pub fn tried(&self) -> usize {
        self.inputs.iter().map(|driven| driven.tried).sum()
    }

    /// Whether everything held, and every input was driven.
    pub fn held(&self) -> bool {
        self.breaches.is_empty() && self.inputs.iter().all(|driven| driven.problem.is_none())
    }

    /// The result as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "prompt": self.prompt,
            "dialect": self.dialect.name,
            "hooks": self.hooks,
            "held": self.held(),
            "tried": self.tried(),
            "values": self.values,
            "shared": self.is_shared,
            "inputs": self.inputs.iter().map(InputReport::to_json).collect::<Vec<_>>(),
            "breaches": self.breaches.iter().map(Breach::to_json).collect::<Vec<_>>(),
        })
    }
}

impl InputReport {
    /// How many values were refused.
    pub fn refusals(&self) -> usize {
        self.refused.values().sum()
    }

    /// The problem of an input of which every value was refused.
    fn never_driven(&self) -> Option<Diagnostic> {
        if self.tried > 0 || self.refused.is_empty() {
            return None;
        }
        let codes: Vec<String> =
            self.refused.iter().map(|(code, count)| format!("{count} with {}", code.as_str())).collect();
        let message = format!("{}: Cuebook refused every value ({})", self.subject(), codes.join(", "));
        Some(Diagnostic::new(Code::NotDriven, message).hint(not_driven()))
    }

    /// The problem of an input of which even a harmless value cannot be rendered.
    fn not_driven(&self, error: &Error) -> Diagnostic {
        let cause = error.diagnostic();
        let message = format!(
            "{}: even a harmless value fails with {}: {}",
            self.subject(),
            cause.code.as_str(),
            cause.message
        );
        let diagnostic = Diagnostic::new(Code::NotDriven, message).hint(not_driven());
        match &cause.place {
            Some(place) => diagnostic.at(place.clone()),
            None => diagnostic,
        }
    }

    fn subject(&self) -> String {
        match &self.input {
            Some(input) => format!("no attack reached the input `{}`", printable(input)),
            None => "no attack reached the inputs together".to_owned(),
        }
    }

    fn to_json(&self) -> Json {
        let refused: BTreeMap<&str, usize> =
            self.refused.iter().map(|(code, count)| (code.as_str(), *count)).collect();
        json!({
            "input": self.input,
            "type": self.kind,
            "strict": self.strict,
            "carries_text": self.carries_text,
            "shown": self.seen > 0,
            "seen": self.seen,
            "tried": self.tried,
            "branched": self.branched,
            "refused": refused,
            "breaches": self.breaches,
            "problem": self.problem.as_ref().map(Diagnostic::to_json),
        })
    }
}

impl Breach {
    /// The breach as a finding.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let by = match &self.input {
            Some(input) => format!("a value of `{input}` ({})", self.forgery),
            None => format!("values ({})", self.forgery),
        };
        let message = format!("{by}: {}", self.what);
        let hint = format!("values: {}; before: {}; after: {}", shown(&self.values), self.before, self.after);
        let diagnostic = match &self.tag {
            Some(tag) => {
                let hint = format!(
                    "fence the value: {{{{ value|fence(\"{tag}\") }}}}; values: {}",
                    shown(&self.values)
                );
                Diagnostic::new(Code::ClosedTag, message).hint(hint)
            }
            None => Diagnostic::new(Code::ForgedStructure, message).hint(hint),
        };
        match &self.place {
            Some(place) => diagnostic.at(place.clone()),
            None => diagnostic,
        }
    }

    fn to_json(&self) -> Json {
        let mut object = self.to_diagnostic().to_json();
        object.insert("input".into(), json!(self.input));
        object.insert("forgery".into(), json!(self.forgery));
        object.insert("values".into(), self.values.clone());
        object.insert("before".into(), json!(self.before));
        object.insert("after".into(), json!(self.after));
        Json::Object(object)
    }
}

/// What to do about an input that could not be driven.
fn not_driven() -> Hint {
    Hint::command_line("pass values that render with --var, or check how the template uses this input")
        .for_programs("pass values that render, or check how the template uses this input")
}

/// Values in one line that fits on a screen.
fn shown(values: &Json) -> String {
    const MAX: usize = 400;
    let text = values.to_string();
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Drives every input of a prompt with forgeries. More than 20 inputs share the values. The variables are the values of the inputs that are not driven at the
/// moment, and the shapes of those that are. `progress` hears how many values have been tried, and of how many.
///
/// A book with [`FixedNonces`](crate::variables::FixedNonces) of [`DIGITS`] lets the attacker know even the nonces.
///
/// ```
/// # use cuebook::{Book, Context, Variables};
/// # use cuebook_lab::BookExt;
/// let book = Book::open(".");
/// let attack = book.attack("general_system", &Variables::new(), &Context::default(), |_, _| {})?;
/// assert!(attack.held());
/// # Ok::<(), cuebook::Error>(())
/// ```
pub fn attack(
    book: &Book,
    prompt_id: &str,
    variables: &Variables,
    context: &Context,
    mut progress: impl FnMut(usize, usize),
) -> Result<Attack> {
    let context: Arc<Context> = book.complete(context)?;
    let prepared = book.prepare(prompt_id, &context)?;
    drive::run(&prepared, variables, &context, &mut progress)
}
