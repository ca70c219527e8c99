//! One render: what the engine asks for, and what is made of its output.

use std::cell::RefCell;
use std::sync::Arc;

use cuebook_template::{
    Cause, Environment, Foreign, Found, Given, Host, HostResult, Including, Mark, Options, Origin, Path,
};
use serde_json::{Map, Value as Json};

use super::program::Linked;
use super::{Computed, Output, Template, errors};
use crate::error::Result;
use crate::source::Source;
use crate::template::merged_units::MergedUnits;
use crate::template::meter;
use crate::template::sink::{Piece, Sink, Writer};
use crate::template::unit::{FENCE, PrintedValues, Unit, Units};
use crate::variables::Scope;

/// What a render is given.
#[derive(Clone, Copy)]
pub(super) enum Values<'v> {
    Object(&'v Map<String, Json>),
    Scope(&'v Arc<Scope>),
}

impl Values<'_> {
    /// The names that have a value.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Values::Object(object) => object.keys().cloned().collect(),
            Values::Scope(scope) => scope.names(),
        }
    }
}

struct Running<'r> {
    template: &'r Template,
    values: Values<'r>,
    limit: usize,
    /// What included prompts wrote.
    outputs: RefCell<Vec<Output>>,
    /// Included prompts of templates whose names the render computed, each with its number there. Their numbers here follow those of
    /// the program's own included prompts.
    included_prompts: RefCell<Vec<(Arc<Computed>, usize)>>,
}

/// Renders a template.
pub(super) fn render(template: &Template, values: Values<'_>, limit: usize) -> Result<Output> {
    let running = Running::new(template, values, limit);
    let output = running.run()?;
    Ok(running.finish(output))
}

/// The text of a render alone, in the memory of another text.
pub(super) fn render_text(
    template: &Template,
    values: Values<'_>,
    limit: usize,
    memory: String,
) -> Result<String> {
    let running = Running::new(template, values, limit);
    let (text, fuel) = running
        .during(|environment, main, options| environment.render_text_for(main, &running, options, memory))?;
    meter::set_steps_left(fuel);
    Ok(text)
}

impl Host for Running<'_> {
    fn variable(&self, name: &str) -> Option<Given<'_>> {
        match self.values {
            Values::Object(object) => object.get(name).map(Given::Borrowed),
            Values::Scope(scope) => scope.given_to_template(name),
        }
    }

    fn load(&self, name: &str, parent: &str) -> HostResult<Option<Found>> {
        match self.template.program.linked(name, parent).map_err(Cause::new)? {
            Some(Linked::Template(template)) => Ok(Some(Found::Template(template))),
            Some(Linked::IncludedPrompt(number)) => Ok(Some(Found::Foreign(number))),
            None if let Some(number) = self.late_included(name, parent) => Ok(Some(Found::Foreign(number))),
            None => Ok(self.template.compute(name, parent).map_err(Cause::new)?.map(Found::Template)),
        }
    }

    fn foreign(&self, number: usize, at: &Including<'_>) -> HostResult<Foreign> {
        let Values::Scope(scope) = self.values else { return Ok(Foreign::default()) };
        meter::set_steps_left(at.fuel());
        let place = self
            .template
            .unit(at.template())
            .map(|unit| unit.source().place(at.range().start as usize..at.range().end as usize));
        let output = match number.checked_sub(self.template.program.included_prompts.len()) {
            None => self.template.program.included_prompts.render(number, scope, self.limit, at, place),
            Some(late) => {
                let included = self.included_prompts.borrow().get(late).cloned();
                let (known, number) =
                    included.ok_or_else(|| Cause::new(super::included_prompts::missing()))?;
                known.included_prompts.render(number, scope, self.limit, at, place)
            }
        };
        let output = output.map_err(Cause::new)?;
        let parts = output.pieces.iter().map(|piece| (piece.start, paths_of(&output.units, piece.writer)));
        let mut outputs = self.outputs.borrow_mut();
        let foreign = Foreign {
            number: outputs.len() as u32,
            text: output.text.clone(),
            parts: parts.collect(),
            fuel: meter::steps_left().unwrap_or_default(),
        };
        outputs.push(output);
        Ok(foreign)
    }

    fn has_time(&self) -> HostResult<()> {
        meter::look_now().map_err(Cause::new)
    }
}

/// The variables that a piece of another render shows.
fn paths_of(units: &Units, writer: Writer) -> Vec<Path> {
    let Writer::Value { unit, offset } = writer else { return Vec::new() };
    let Some(emission) = units.get(unit).0.emission(offset) else { return Vec::new() };
    let path = |path: &String| {
        let root = path.split(['.', '[']).next().unwrap_or(path);
        Path { variable: root.to_owned(), inside: path[root.len()..].to_owned() }
    };
    emission.paths.iter().map(path).collect()
}

impl<'r> Running<'r> {
    fn new(template: &'r Template, values: Values<'r>, limit: usize) -> Running<'r> {
        Running { template, values, limit, outputs: RefCell::default(), included_prompts: RefCell::default() }
    }

    fn run(&self) -> Result<cuebook_template::Output> {
        let output = self.during(|environment, main, options| environment.render_for(main, self, options))?;
        meter::set_steps_left(output.fuel());
        Ok(output)
    }

    /// Runs the template, and explains its error.
    fn during<T>(
        &self,
        run: impl FnOnce(&Environment, &cuebook_template::Template, Options) -> cuebook_template::Result<T>,
    ) -> Result<T> {
        let Running { template, values, limit, .. } = *self;
        let program = &template.program;
        let main = program.main()?;
        let options = Options {
            fuel: Some(meter::steps_left().unwrap_or(template.settings.fuel)),
            characters: Some(limit),
            keep_empty: template.settings.keep_empty,
        };
        let done = super::included_prompts::during(|| run(&program.environment, main, options));
        done.map_err(|error| errors::explain(template, values, &error, limit))
    }

    /// The number of what a template whose name the render computed includes by its address.
    fn late_included(&self, name: &str, parent: &str) -> Option<usize> {
        let known = self.template.computed(parent)?;
        let number = *known.links.get(name)?;
        let mut included_prompts = self.included_prompts.borrow_mut();
        let is_same = |(other, of): &(Arc<Computed>, usize)| Arc::ptr_eq(other, &known) && *of == number;
        let at = included_prompts.iter().position(is_same);
        Some(
            self.template.program.included_prompts.len()
                + at.unwrap_or_else(|| {
                    included_prompts.push((known.clone(), number));
                    included_prompts.len() - 1
                }),
        )
    }

    fn finish(self, output: cuebook_template::Output) -> Output {
        let (text, marked, sources, origins) = output.into_parts();
        let statics: Vec<Unit> = sources
            .iter()
            .map(|source| {
                let unknown =
                    || Unit::new(Source::new(&*source.name, ""), Default::default(), Vec::new(), Vec::new());
                self.template.unit(&source.name).unwrap_or_else(unknown)
            })
            .collect();
        let mut records: Vec<(u32, u32, Origin)> = Vec::with_capacity(marked.len());
        let mut changes = Vec::new();
        let outputs = self.outputs.into_inner();
        let mut writer = |mark: Mark| match mark {
            Mark::Data { unit, offset } | Mark::Constant { unit, offset } => Writer::Literal { unit, offset },
            Mark::Changed { unit, offset, length } => {
                changes.push(offset..offset + length);
                Writer::Changed { unit, change: changes.len() as u32 - 1 }
            }
            Mark::Frame => Writer::Frame { frame: FENCE },
            Mark::Value { unit, tag, origin } => {
                records.push((unit, tag, origin));
                Writer::Value { unit, offset: records.len() as u32 - 1 }
            }
            // Written by the merged units.
            Mark::Foreign { .. } => Writer::Frame { frame: FENCE },
        };
        let mut pieces = Vec::with_capacity(marked.len());
        let mut has_foreign = false;
        for piece in &marked {
            has_foreign |= matches!(piece.mark, Mark::Foreign { .. });
            pieces.push(Piece { start: piece.start, writer: writer(piece.mark) });
        }
        let late = Arc::new(PrintedValues::new(records, changes, origins, statics.clone()));
        let units: Arc<Vec<Unit>> =
            Arc::new(statics.into_iter().map(|unit| unit.with_late(late.clone())).collect());
        if !has_foreign {
            return Output { text, pieces, units: units.into() };
        }
        let mut merged_units = MergedUnits::new(units.len(), 0);
        let mut sink = Sink::new(usize::MAX, text.len(), pieces.len());
        if self.template.settings.keep_empty {
            sink = sink.keeping_empty();
        }
        for (index, piece) in marked.iter().enumerate() {
            let start = piece.start as usize;
            let end = marked.get(index + 1).map_or(text.len(), |next| next.start as usize);
            let bytes = &text.as_bytes()[start..end];
            // The sink has room for everything.
            let _ = match (piece.mark, pieces[index].writer) {
                (Mark::Foreign { text, offset, .. }, _) => match outputs.get(text as usize) {
                    Some(output) => {
                        let from = offset as usize;
                        merged_units.write(&mut sink, output, from..from + (end - start), None)
                    }
                    None => Ok(()),
                },
                (_, Writer::Literal { unit, offset }) => sink.literal(unit, offset, bytes),
                (_, Writer::Changed { unit, change }) => sink.changed(unit, change, bytes),
                (_, Writer::Value { unit, offset }) => {
                    sink.begin_value(unit, offset);
                    sink.value(bytes)
                }
                _ => sink.frame(FENCE, bytes),
            };
        }
        let (text, pieces) = sink.finish();
        Output { text, pieces, units: merged_units.finish(units, Arc::default()) }
    }
}
