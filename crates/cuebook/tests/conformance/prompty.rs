//! Prompty's own vectors and the goldens of its Jinja subset.

mod discovery;
mod load;
mod parse;
mod process;
mod render;
mod wire;

use std::path::Path;

use serde_json::Value as Json;

use crate::board::{Board, read, vectors};

/// A case's own part, with the folder that its fixtures lie in.
pub struct Case<'c> {
    pub vector: &'c Json,
    pub folder: &'c Path,
}

/// What runs a case.
type Run = fn(&Case<'_>) -> Result<(), String>;

impl Case<'_> {
    pub fn input(&self) -> &Json {
        &self.vector["input"]
    }

    pub fn expected(&self) -> &Json {
        &self.vector["expected"]
    }
}

/// Runs every vector and every golden.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("prompty", &[]);
    for entry in &vectors(folder) {
        let operation = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let case = Case { vector: &entry["vector"], folder };
        let name = case.vector["name"].as_str().unwrap();
        let (table, run): (_, Run) = match (operation("contract").as_str(), operation("operation").as_str()) {
            ("LoadConformance", "load") => ("load", load::load),
            ("Renderer", "render") => ("render", render::render),
            ("Renderer", "renderSegments") => ("segments", render::segments),
            ("Parser", "parse") => ("parse", parse::parse),
            ("WireConformance", "toRequest") => ("wire", wire::to_request),
            ("Processor", "process") => ("process", process::process),
            ("Processor", "processStream") => ("stream", process::stream),
            ("DiscoveryConformance", "mapModel") => ("discovery", discovery::map_model),
            ("DiscoveryConformance", "enrich") => ("enrichment", discovery::enrich),
            ("TurnConformance", "run" | "runTurn" | "replay") => {
                board.later(&operation("operation"), "run by the tests of crate cuebook-run");
                continue;
            }
            _ => ("unknown", |_| Err("nobody knows this operation".into())),
        };
        // A case of a form that the runner does not know must not take the others with it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&case)));
        board.note(table, name, outcome.unwrap_or_else(|_| Err("the runner gave up on it".into())));
    }
    for golden in &goldens(folder, "subset_render_golden.json") {
        board.note("subset", golden["name"].as_str().unwrap(), render::golden(golden));
    }
    for golden in &goldens(folder, "subset_segments_golden.json") {
        board.note("subset-segments", golden["name"].as_str().unwrap(), render::segments_golden(golden));
    }
    board
}

/// The goldens of a file; none if the folder does not have it.
fn goldens(folder: &Path, name: &str) -> Vec<Json> {
    let file = folder.join(name);
    if !file.is_file() {
        return Vec::new();
    }
    read(&file).as_array().cloned().unwrap_or_default()
}
