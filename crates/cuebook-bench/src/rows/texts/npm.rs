//! Rows of the npm package: what it costs to get there from TypeScript, next to packages of npm that render.

use std::error::Error;

use cuebook::{Book, Context, Variables};
use serde_json::{Value as Json, json};

use super::{Loaded, messages, peer, same};
use crate::measure::{is_rehearsal, turns};
use crate::peers::npm::{NUNJUCKS, NpmRenderers, packed};
use crate::peers::{Renderer, dotprompt};
use crate::race::Race;
use crate::rows::prompts;
use crate::table::{Row, Target, Unit};

/// Nanoseconds that a small prompt takes longer than in Rust, at most.
const MOST_ABOVE_RUST: f64 = 1000.0;
/// Nanoseconds of an import, at most.
const MOST_IMPORT: f64 = 15e6;
/// How often a process imports each package.
const IMPORTS: usize = 30;
/// Bytes of the packed package, at most.
const MOST_BYTES: f64 = 15e6;
/// Rows of a batch.
const BATCH_ROWS: usize = 200_000;
/// How often a batch is rendered. The best counts.
const BATCH_ROUNDS: usize = 5;

/// The rows.
pub fn rows() -> Result<Vec<Row>, Box<dyn Error>> {
    let (mut npm, mut dotprompt) = (NpmRenderers::start(), dotprompt());
    let small = Loaded::new(prompts::small())?;
    let loop_of_items = Loaded::new(prompts::list())?;
    let agent = Loaded::new(prompts::agent())?;
    let mut rows = vec![
        small.npm(&mut npm, &mut dotprompt)?.target(Target::AboveFloor(MOST_ABOVE_RUST, Unit::Time)),
        loop_of_items.npm(&mut npm, &mut dotprompt)?,
        agent.npm(&mut npm, &mut dotprompt)?.target(Target::AtMost { times: 1.0 / 5.0, peer: NUNJUCKS }),
    ];
    rows.extend(small.batch(&mut npm.ours));
    rows.push(import(&mut npm));
    let bytes = npm.ours.started().and_then(|()| packed());
    let what = "the bytes of the package as `npm pack` writes it, with the command line";
    let mut packed = Row::new("TypeScript: package", what, bytes);
    packed.unit = Unit::Memory;
    rows.push(packed.target(Target::Below(MOST_BYTES, Unit::Memory)));
    Ok(rows)
}

/// White space differs: Handlebars removes lines that have only a block.
fn words(text: &Json) -> Json {
    text.as_str().map_or(Json::Null, |text| text.split_whitespace().collect())
}

impl Loaded {
    /// A render with `Book.render`, which finds the prompt for each call. The floor is that call in Rust.
    fn npm(&self, npm: &mut NpmRenderers, dotprompt: &mut Renderer) -> Result<Row, Box<dyn Error>> {
        let (rendered, said) = (self.render()?, self.answer_json()?);
        let text = json!(rendered.text());
        let same_text = |answer: &Json| same(&words(&text), &words(&answer["text"]), "text");
        let same_said = |answer: &Json| same(&messages(&said), &messages(&answer["messages"]), "messages");
        let book = Book::open(self._project.path());
        let values = self.case.values.as_object().cloned().unwrap_or_default();
        let in_rust = || book.render("case", &Variables::from_json(&values), &Context::default());
        in_rust()?;
        let bare = "the bare template engine: it checks no inputs and records no origins";
        let name = format!("TypeScript: {}", self.case.name);
        let what = "`Book.render` of the npm package, from the call to the text";
        let race = Race::new(name, what, self.turns(&mut npm.ours, "render", same_text))
            .floor("`Book::render` in Rust, with the variables copied", Ok(turns(in_rust)))
            .peer(peer(&npm.nunjucks).note(bare), self.turns(&mut npm.nunjucks, "render", same_text))
            .peer(peer(&npm.handlebars).note(bare), self.turns(&mut npm.handlebars, "render", same_text))
            .peer(
                peer(dotprompt).note("returns the same messages; it has no plain text"),
                self.turns(dotprompt, "messages", same_said),
            )
            .peer(
                peer(&npm.prompty).note("returns the same messages; it has no plain text"),
                self.turns(&mut npm.prompty, "render", same_said),
            );
        Ok(race.run())
    }

    /// Rows of a batch on one core: objects, and a table of the package `apache-arrow`.
    fn batch(&self, ours: &mut Renderer) -> Vec<Row> {
        let (rows, rounds) = if is_rehearsal() { (BATCH_ROWS / 100, 1) } else { (BATCH_ROWS, BATCH_ROUNDS) };
        let load = json!({"file": self.file, "values": self.case.values, "rows": rows});
        let loaded = ours.ask(&json!({"load": load})).map(|_| ());
        let mut row = |name: &str, of: &str, what: &'static str| {
            let best = loaded.clone().and_then(|()| {
                let mut turns = ours.turns(what);
                (0..rounds).map(|_| turns()).try_fold(f64::MAX, |best, time| Ok(best.min(time?)))
            });
            let what = format!("`renderBatch` of {rows} {of} in one other thread: the time of one row");
            Row::new(format!("TypeScript: {name}"), what, best)
        };
        vec![
            row("row of a batch", "objects", "batch"),
            row("row of a table", "rows of an Arrow table", "table"),
        ]
    }
}

/// The time of `import` in a process of its own.
fn import(npm: &mut NpmRenderers) -> Row {
    let NpmRenderers { ours, nunjucks, handlebars, dotprompt, .. } = npm;
    let what = "`import` of the package in a new process";
    let rounds = if is_rehearsal() { 2 } else { IMPORTS };
    let bare = "it is JavaScript, and has no program that the system loads";
    let race = Race::new("TypeScript: import", what, Ok(ours.turns("import")))
        .peer(peer(nunjucks).note(bare), Ok(nunjucks.turns("import")))
        .peer(peer(handlebars).note(bare), Ok(handlebars.turns("import")))
        .peer(peer(dotprompt).note(bare), Ok(dotprompt.turns("import")));
    race.rounds(rounds).run().target(Target::Below(MOST_IMPORT, Unit::Time))
}
