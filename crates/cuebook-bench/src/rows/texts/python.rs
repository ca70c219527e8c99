//! Rows of the Python package: what it costs to get there from Python, next to packages of Python that render.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuebook::{Book, Context, Variables};
use serde_json::{Value as Json, json};

use super::{Loaded, peer, same, trimmed};
use crate::measure::{Turns, is_rehearsal, turns};
use crate::peers::{
    JINJA2, JINJA2_VERSION, MINIJINJA_PYTHON, MINIJINJA_VERSION, PROMPTY_PYTHON, PROMPTY_VERSION, Package,
    Renderer, WINK, python,
};
use crate::race::Race;
use crate::rows::prompts;
use crate::sections;
use crate::table::{Peer, Row, Target, Unit};

/// Nanoseconds that a small prompt takes longer than in Rust, at most.
const MOST_ABOVE_RUST: f64 = 1000.0;
/// Nanoseconds of an import, at most.
const MOST_IMPORT: f64 = 10e6;
/// How often a process imports each package.
const IMPORTS: usize = 30;
/// Bytes of the wheel, at most.
const MOST_BYTES: f64 = 15e6;
/// Rows of the table that is rendered: some tenths of a second.
const TABLE_ROWS: usize = 500_000;
/// How often it is rendered. The best counts.
const TABLE_ROUNDS: usize = 5;
/// Nanoseconds of a row of a table, at most: two million in a second.
const MAX_PER_ROW: f64 = 500.0;
/// How many times as fast two threads are as one, at least.
const TWO_THREADS: f64 = 1.8;

/// The rows.
pub fn rows(jinja2: &mut Renderer, prompty: &mut Renderer) -> Result<Vec<Row>, Box<dyn Error>> {
    let built = Package::build();
    let (mut package, mut minijinja) = crate::peers::packages(&built);
    let (small, agent) = (Loaded::new(prompts::small())?, Loaded::new(prompts::agent())?);
    let mut rows = vec![
        small
            .python(&mut package, &mut minijinja, jinja2, prompty)?
            .target(Target::AboveFloor(MOST_ABOVE_RUST, Unit::Time)),
        agent
            .python(&mut package, &mut minijinja, jinja2, prompty)?
            .target(Target::AtMost { times: 1.0 / 6.0, peer: JINJA2 }),
        sections::python_row(built.as_ref().map(|built| built.python.as_path()).map_err(Clone::clone))?,
    ];
    rows.extend(small.table(&mut package));
    rows.push(import(&built));
    let bytes = built.and_then(|built| {
        let size = fs::metadata(&built.wheel).map_err(|error| error.to_string())?.len();
        Ok(size as f64)
    });
    let mut wheel = Row::new("Python: wheel", "the bytes of the wheel, which needs no other package", bytes);
    wheel.unit = Unit::Memory;
    rows.push(wheel.target(Target::Below(MOST_BYTES, Unit::Memory)));
    Ok(rows)
}

/// The time of `import` in a process of its own, as Python measures it.
fn import(built: &Result<Package, String>) -> Row {
    let ours = built.as_ref().map(|built| built.python.clone()).map_err(Clone::clone);
    let rounds = if is_rehearsal() { 2 } else { IMPORTS };
    let race = Race::new(
        "Python: import",
        "`import` of the package in a new process",
        ours.and_then(|python| imports(&python, "cuebook")),
    )
    .peer(Peer::new(MINIJINJA_PYTHON, MINIJINJA_VERSION), python().and_then(|at| imports(&at, "minijinja")))
    .peer(Peer::new(JINJA2, JINJA2_VERSION), python().and_then(|at| imports(&at, "jinja2")))
    .peer(Peer::new(PROMPTY_PYTHON, PROMPTY_VERSION), python().and_then(|at| imports(&at, "prompty")))
    .peer(
        Peer::new(WINK, sections::peer::VERSION),
        sections::peer::python().and_then(|at| imports(&at, "weakincentives.prompt")),
    );
    race.rounds(rounds).run().target(Target::Below(MOST_IMPORT, Unit::Time)).target(Target::Ahead)
}

/// Turns of an import. The first one, which compiles the modules, does not count.
fn imports(python: &Path, module: &str) -> Result<Turns<'static>, String> {
    let code = format!(
        "from time import perf_counter_ns as now; start = now(); import {module}; print(now() - start)"
    );
    let python: PathBuf = python.to_owned();
    let turn = move || {
        let output = Command::new(&python).args(["-I", "-c", &code]).output();
        let output = output.map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.trim().parse().map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    turn()?;
    Ok(Box::new(turn))
}

impl Loaded {
    /// A render with `Book.render`, which finds the prompt for each call. The floor is that call in Rust.
    fn python(
        &self,
        package: &mut Renderer,
        minijinja: &mut Renderer,
        jinja2: &mut Renderer,
        prompty: &mut Renderer,
    ) -> Result<Row, Box<dyn Error>> {
        let text = self.render()?.text().to_owned();
        let same_text = |answer: &Json| same(&json!(text.trim_end()), &trimmed(&answer["text"]), "text");
        let book = Book::open(self._project.path());
        let values = self.case.values.as_object().cloned().unwrap_or_default();
        let in_rust = || book.render("case", &Variables::from_json(&values), &Context::default());
        in_rust()?;
        let bare = "the bare template engine: it looks at no files, checks no inputs and records no origins";
        let name = format!("Python: {}", self.case.name);
        let what = "`Book.render` of the Python package, from the call to the text";
        let race = Race::new(name, what, self.turns(package, "render", same_text))
            .floor("`Book::render` in Rust, with the variables copied", Ok(turns(in_rust)))
            .peer(peer(minijinja).yardstick().note(bare), self.turns(minijinja, "render", same_text))
            .peer(peer(jinja2).note(bare), self.turns(jinja2, "render", same_text))
            .peer(peer(prompty), self.turns(prompty, "render", same_text));
        Ok(race.run().target(Target::Ahead))
    }

    /// Rows of a table of pyarrow, in one thread and in two.
    fn table(&self, package: &mut Renderer) -> Vec<Row> {
        let (rows, rounds) = if is_rehearsal() { (TABLE_ROWS / 100, 1) } else { (TABLE_ROWS, TABLE_ROUNDS) };
        let load = json!({"file": self.file, "values": self.case.values, "rows": rows});
        let loaded = package.ask(&json!({"load": load})).map(|_| ());
        let what = format!("`render_batch` of a table of pyarrow with {rows} rows: the time of one row");
        let mut row = |what: &'static str| {
            loaded.clone()?;
            let mut turns = package.turns(what);
            (0..rounds).map(|_| turns()).try_fold(f64::MAX, |best, time| Ok(best.min(time?)))
        };
        let (one, two) = (row("table"), row("table on two cores"));
        vec![
            Row::new("Python: row of a table", what.clone(), one.clone())
                .target(Target::Below(MAX_PER_ROW, Unit::Time)),
            Row::new("Python: row of a table, two threads", what, two)
                .floor("the row in one thread, divided by two", one.map(|time| time / 2.0))
                .target(Target::Below(MAX_PER_ROW / TWO_THREADS, Unit::Time)),
        ]
    }
}
