//! What a directive includes: `{include:ID}` shows the text of a piece of knowledge, `{include:directive:ID}` the body of another directive.
//!
//! A directive is signed, and so is everything that it includes: only items can be included, and each is verified by itself, as those
//! that a directive extends are. A file without a signature has no way in.
//!
//! What an included directive takes, the one that includes it takes as well; where both declare an input, the includer's declaration
//! counts. Its limits, permissions, outputs, hooks and context stay behind: only its body is included.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Directive, read};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::items::{Item, ItemId, ItemType, Verifier};
use crate::notation::knowledge::{self, Knowledge};
use crate::source::{OffsetMap, Place};
use crate::template::engine::Output;
use crate::template::input::Values;
use crate::template::jinja::names::Names;
use crate::template::merged_units::MergedUnits;
use crate::template::sink::{Full, Sink};
use crate::template::unit::Unit;

/// How many items one body may include, those that they include counted in as often as they show.
const MAX_INCLUDED: usize = 10_000;

/// An item that a directive includes.
#[derive(Debug)]
pub struct Included {
    item: Item,
    text: Text,
    /// How many items show where this one does.
    weight: usize,
    /// How many include each other in a row.
    height: usize,
}

#[derive(Debug)]
enum Text {
    Knowledge(Knowledge, Arc<Vec<Unit>>),
    Directive(Box<Directive>),
}

/// A tag that includes something: where it begins, where it stands, and what it includes.
pub(super) type Tag = (usize, Place, Arc<Included>);

/// One item on the way to another.
struct IncludeStep {
    kind: ItemType,
    id: String,
    place: Option<Place>,
}

struct IncludeWalk<'l> {
    load: &'l mut dyn FnMut(ItemType, &ItemId) -> Result<Item>,
    depth: usize,
    way: Vec<IncludeStep>,
    known: HashMap<(ItemType, String), Arc<Included>>,
}

impl Directive {
    /// Whether it includes anything.
    pub fn has_includes(&self) -> bool {
        self.template.includes().next().is_some()
    }

    /// The same directive with what it includes, and with what that takes. `load` finds and reads items and need not verify them; see
    /// [`Directive::verify_included`]. At most `depth` items may include each other in a row.
    ///
    /// # Errors
    ///
    /// `CB306` if something is not there, `CB307` if items include each other in a circle, `CB505` if they go too deep.
    pub fn include(
        self,
        id: &str,
        depth: usize,
        load: &mut dyn FnMut(ItemType, &ItemId) -> Result<Item>,
    ) -> Result<Directive> {
        if !self.has_includes() {
            return Ok(self);
        }
        let way = vec![IncludeStep { kind: ItemType::Directive, id: id.to_owned(), place: None }];
        let mut following = IncludeWalk { load, depth, way, known: HashMap::new() };
        let (directive, weight) = following.directive(self)?;
        if weight > MAX_INCLUDED {
            let message = format!("the directive includes more than {MAX_INCLUDED} items");
            let diagnostic = Diagnostic::new(Code::TooDeep, message).file(directive.source.name());
            let diagnostic = diagnostic.hint("include each item once");
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        Ok(directive)
    }

    /// Whether everything that it includes has a trusted signature.
    pub fn verify_included(&self, trust: &dyn Verifier) -> Result<()> {
        for (_, place, included) in self.tags() {
            trust.verify_item(&included.item).map_err(|error| {
                let reported = error.diagnostic().clone().related(place.clone(), "included here");
                error.replaced(reported)
            })?;
            if let Text::Directive(inner) = &included.text {
                inner.verify_included(trust)?;
            }
        }
        Ok(())
    }

    fn tags(&self) -> &[Tag] {
        self.included.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The items that it includes, and those that they include.
    pub fn included_items(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = Vec::new();
        for (_, _, included) in self.tags() {
            let known = items.iter().any(|item| item.located.name == included.item.located.name);
            if known {
                continue;
            }
            items.push(&included.item);
            if let Text::Directive(inner) = &included.text {
                items.extend(inner.included_items());
            }
        }
        items
    }

    /// The texts of what it includes, with what they mention.
    #[doc(hidden)]
    pub fn included_texts(&self) -> (Vec<Unit>, Vec<Names>) {
        let (mut units, mut names) = (Vec::new(), Vec::new());
        let mut seen: Vec<&Arc<Included>> = Vec::new();
        for (_, _, included) in self.tags() {
            if seen.iter().any(|known| Arc::ptr_eq(known, included)) {
                continue;
            }
            seen.push(included);
            match &included.text {
                Text::Knowledge(_, own) => {
                    units.extend(own.iter().cloned());
                    names.push(Names::default());
                }
                Text::Directive(inner) => {
                    units.extend(inner.units().iter().cloned());
                    names.push(inner.template.names());
                    let more = inner.included_texts();
                    units.extend(more.0);
                    names.extend(more.1);
                }
            }
        }
        (units, names)
    }

    /// Where an input was included that it does not declare itself.
    pub(super) fn included_at(&self, input: &str) -> Option<&Place> {
        self.borrowed.iter().find(|(name, _)| name == input).map(|(_, place)| place)
    }

    /// The error for a body whose includes were not followed: it would show the tags.
    #[doc(hidden)]
    pub fn refuse_unfollowed(&self) -> Result<()> {
        if self.included.is_some() {
            return Ok(());
        }
        let Some((tag, name)) = self.template.includes().next() else { return Ok(()) };
        let message = format!("`{name}` is included, but there is no project to find it in");
        let diagnostic = Diagnostic::new(Code::MissingInclude, message).at(self.source.place(tag));
        Err(Error::new(
            ErrorKind::PromptRead,
            diagnostic.hint("call `Directive::include` after reading the directive"),
        ))
    }

    /// Writes the body with everything that it includes.
    pub(super) fn write_body(
        &self,
        sink: &mut Sink,
        merged_units: &RefCell<MergedUnits>,
        values: &dyn Values,
        limit: usize,
        stripped: bool,
    ) -> Result<(), Full> {
        let values = IncludeValues { values, directive: self, merged_units, limit };
        match stripped {
            true => self.template.write_stripped(0, sink, &values),
            false => self.template.write(0, sink, &values),
        }
    }

    /// The body alone, at most `limit` characters.
    #[doc(hidden)]
    pub fn body_output(&self, values: &dyn Values, limit: usize, stripped: bool) -> Result<Output, Full> {
        let mut sink = Sink::new(limit, self.body.len(), 16);
        let merged_units = RefCell::new(MergedUnits::new(1, 0));
        self.write_body(&mut sink, &merged_units, values, limit, stripped)?;
        let (text, pieces) = sink.finish();
        Ok(Output { text, pieces, units: merged_units.into_inner().finish(self.units(), Arc::default()) })
    }
}

impl IncludeWalk<'_> {
    /// Follows what a directive includes. The number of items in it is reported too.
    fn directive(&mut self, mut directive: Directive) -> Result<(Directive, usize)> {
        let tags: Vec<_> = directive.template.includes().map(|(tag, name)| (tag, name.to_owned())).collect();
        let mut included: Vec<Tag> = Vec::with_capacity(tags.len());
        let mut weight = 1usize;
        let mut missing: Option<Error> = None;
        for (tag, name) in tags {
            let place = directive.source.place(tag.clone());
            let found = match self.item(&name, &place) {
                Ok(found) => found,
                // An author who fixes one of them wants to know the others as well.
                Err(error) if error.code() == Code::MissingInclude => {
                    missing = Some(match missing {
                        Some(known) => error.into_diagnostics().into_iter().fold(known, Error::and),
                        None => error,
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            weight = weight.saturating_add(found.weight);
            if let Text::Directive(inner) = &found.text {
                for input in &inner.inputs {
                    if directive.inputs.iter().all(|known| known.name != input.name) {
                        directive.borrowed.push((input.name.clone(), place.clone()));
                        directive.inputs.push(input.clone());
                    }
                }
            }
            included.push((tag.start, place, found));
        }
        directive.included = Some(Arc::new(included));
        match missing {
            Some(error) => Err(error),
            None => Ok((directive, weight)),
        }
    }

    fn item(&mut self, name: &str, place: &Place) -> Result<Arc<Included>> {
        let (kind, id) = match name.split_once(':') {
            None => (ItemType::Knowledge, name),
            Some(("knowledge", id)) => (ItemType::Knowledge, id),
            Some(("directive", id)) => (ItemType::Directive, id),
            Some(_) => {
                let message = format!("a directive cannot include `{name}`");
                let hint = "include signed items: {include:ID} for knowledge, {include:directive:ID} for another directive";
                let diagnostic = Diagnostic::new(Code::MissingInclude, message).at(place.clone()).hint(hint);
                return Err(Error::new(ErrorKind::PromptRead, diagnostic));
            }
        };
        let key = (kind, id.to_owned());
        if let Some(at) = self.way.iter().position(|step| step.kind == kind && step.id == id) {
            return Err(self.circle(at, place));
        }
        let known = self.known.get(&key).cloned();
        let height = known.as_ref().map_or(1, |known| known.height);
        if self.way.len() - 1 + height > self.depth {
            let message = format!("items include each other more than {} deep", self.depth);
            let hint = Hint::run(
                "flatten the includes, or raise `limits.include_depth` in cuebook.toml, and grant it",
                "cuebook allow",
            );
            let diagnostic = Diagnostic::new(Code::TooDeep, message).at(place.clone()).hint(hint);
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let item = ItemId::new(id)
            .and_then(|id| (self.load)(kind, &id))
            .map_err(|error| named(error, name, place))?;
        let source = item.source()?;
        let (text, weight, height) = match kind {
            ItemType::Directive => {
                let inner = read(&source).map_err(|error| within(error, place))?;
                self.way.push(IncludeStep { kind, id: id.to_owned(), place: Some(place.clone()) });
                let followed = self.directive(inner);
                self.way.pop();
                let (inner, weight) = followed?;
                let tallest = inner.tags().iter().map(|(_, _, below)| below.height).max().unwrap_or(0);
                (Text::Directive(Box::new(inner)), weight, tallest + 1)
            }
            _ => {
                let found = knowledge::read(&source).map_err(|error| within(error, place))?;
                let unit = Unit::new(found.source.clone(), OffsetMap::default(), Vec::new(), Vec::new());
                (Text::Knowledge(found, Arc::new(vec![unit])), 1, 1)
            }
        };
        let included = Arc::new(Included { item, text, weight, height });
        self.known.insert(key, included.clone());
        Ok(included)
    }

    fn circle(&self, at: usize, place: &Place) -> Error {
        let circle = &self.way[at..];
        let mut shown: Vec<&str> = circle.iter().map(|step| step.id.as_str()).collect();
        shown.push(shown[0]);
        let message = format!("include cycle: {}", shown.join(" → "));
        let mut diagnostic = Diagnostic::new(Code::IncludeCycle, message)
            .at(place.clone())
            .label("completes the cycle")
            .hint("break the cycle: move the shared text into a knowledge item");
        for step in &circle[1..] {
            if let Some(place) = &step.place {
                diagnostic = diagnostic.related(place.clone(), format!("`{}` is included here", step.id));
            }
        }
        Error::new(ErrorKind::PromptRead, diagnostic)
    }
}

/// An error about an item that is included and cannot be had.
fn named(error: Error, name: &str, place: &Place) -> Error {
    let reported = error.diagnostic().clone();
    match reported.code {
        Code::ItemNotFound => {
            let message = format!("no item `{name}` found: {}", reported.message);
            let diagnostic = Diagnostic::new(Code::MissingInclude, message).at(place.clone());
            Error::new(ErrorKind::PromptRead, diagnostic.hint_opt(reported.hint))
        }
        _ if reported.place.is_some() => within(error, place),
        _ => error.replaced(reported.at(place.clone()).label("included here")),
    }
}

/// An error in an item, with where that is included.
fn within(error: Error, place: &Place) -> Error {
    let reported = error.diagnostic().clone().related(place.clone(), "included here");
    error.replaced(reported)
}

/// The values of a render, and what the body includes.
struct IncludeValues<'i> {
    values: &'i dyn Values,
    directive: &'i Directive,
    merged_units: &'i RefCell<MergedUnits>,
    limit: usize,
}

impl Values for IncludeValues<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.values.input(key)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.values.env(name)
    }

    fn include(&self, tag: usize, sink: &mut Sink) -> Option<Result<(), Full>> {
        let (_, _, included) = self.directive.tags().iter().find(|(start, ..)| *start == tag)?;
        let written = match &included.text {
            Text::Directive(inner) => inner.body_output(self.values, self.limit, true),
            Text::Knowledge(knowledge, units) => whole(knowledge, units, self.limit),
        };
        let write = |output: Output| {
            let all = 0..output.text.len();
            self.merged_units.borrow_mut().write(sink, &output, all, None)
        };
        Some(written.and_then(write))
    }
}

/// The text of a piece of knowledge.
#[doc(hidden)]
pub fn whole(knowledge: &Knowledge, units: &Arc<Vec<Unit>>, limit: usize) -> Result<Output, Full> {
    let mut sink = Sink::new(limit, knowledge.body().len(), 1);
    sink.literal(0, knowledge.body_start() as u32, knowledge.body().as_bytes())?;
    let (text, pieces) = sink.finish();
    Ok(Output { text, pieces, units: units.clone().into() })
}
