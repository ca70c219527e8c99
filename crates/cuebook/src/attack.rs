//! Attack: drives the inputs of a prompt with forgeries, and holds every render against that of a harmless value.
//!
//! One input at a time, and all at once: the messages (roles, number, order, parts), the sections and what is shown of them,
//! the tools, and every byte that authors and the engine wrote must be as they were; every byte of a value must be said to be
//! its variable's; and strict inputs must refuse what looks like a role marker, and nothing else.
//!
//! The values are the same ones each time, so an attack that was found is found again. Nothing is run that the context
//! does not allow: whoever wants hooks to take part says so.

mod drive;
mod forgery;
mod input;
mod structure;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

pub use forgery::{Aim, DIGITS, FORGERIES, Forgery, huge};

use crate::book::Book;
use crate::error::{Code, Diagnostic, Result};
use crate::prompt::Dialect;
use crate::source::Place;
use crate::variables::{Context, Variables};

/// What became of an attack.
#[derive(Debug)]
pub struct Attack {
    /// The prompt's id.
    pub prompt: String,
    /// The notation that it is written in.
    pub dialect: Dialect,
    /// Whether it has hooks or variable providers, and whether they took part.
    pub hooks: Option<bool>,
    /// What was driven: each input, and then all of them at once if there are several.
    pub inputs: Vec<Driven>,
    /// Everything that did not hold.
    pub breaches: Vec<Breach>,
}

/// What became of one input.
#[derive(Debug, Clone)]
pub struct Driven {
    /// Its name; `None` for all inputs at once.
    pub input: Option<String>,
    /// What it is declared to be.
    pub kind: &'static str,
    /// Whether it refuses what looks like a role marker.
    pub strict: bool,
    /// Whether a part of a value was seen in a text, as it was.
    pub shown: bool,
    /// How many values were tried.
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
}

impl Attack {
    /// How many values were tried.
    pub fn tried(&self) -> usize {
        self.inputs.iter().map(|driven| driven.tried).sum()
    }

    /// Whether everything held, and every input could be driven.
    pub fn held(&self) -> bool {
        self.breaches.is_empty() && self.inputs.iter().all(|driven| driven.problem.is_none())
    }

    /// The result as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "prompt": self.prompt,
            "dialect": self.dialect.as_str(),
            "hooks": self.hooks,
            "held": self.held(),
            "tried": self.tried(),
            "inputs": self.inputs.iter().map(Driven::to_json).collect::<Vec<_>>(),
            "breaches": self.breaches.iter().map(Breach::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Driven {
    fn to_json(&self) -> Json {
        let refused: BTreeMap<&str, usize> =
            self.refused.iter().map(|(code, count)| (code.as_str(), *count)).collect();
        json!({
            "input": self.input,
            "type": self.kind,
            "strict": self.strict,
            "shown": self.shown,
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
        let hint = format!(
            "the values were {}; before: {}; after: {}",
            shown(&self.values),
            self.before,
            self.after
        );
        let diagnostic = Diagnostic::new(Code::ForgedStructure, message).hint(hint);
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

/// Values in one line that fits on a screen.
fn shown(values: &Json) -> String {
    const MOST: usize = 400;
    let text = values.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Book {
    /// Drives every input of a prompt with forgeries. The variables are the values of the inputs that are not driven at the
    /// moment, and the shapes of those that are. `progress` hears how many values have been tried, and of how many.
    ///
    /// A book with [`FixedNonces`](crate::variables::FixedNonces) of [`DIGITS`] lets the attacker know even the nonces.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// let book = Book::open(".");
    /// let attack = book.attack("general_system", &Variables::new(), &Context::default(), |_, _| {})?;
    /// assert!(attack.held());
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn attack(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Attack> {
        let context: Arc<Context> = self.complete(context)?;
        let prepared = self.prepare(prompt_id, &context)?;
        drive::run(&prepared, variables, &context, &mut progress)
    }
}
