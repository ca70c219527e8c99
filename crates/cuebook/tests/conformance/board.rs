//! Where the cases lie, and how many of them passed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// The folder with one suite's cases. Where there is none the suite says so and passes; under `CI=true` that is a failure.
pub fn folder(suite: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("CUEBOOK_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
    };
    let folder = root.join(suite);
    if folder.is_dir() {
        return Some(folder);
    }
    let message =
        format!("{suite}: skipped, because {} does not exist (CUEBOOK_CONFORMANCE)", folder.display());
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{message}");
    println!("{message}");
    None
}

/// Reads a file of cases.
pub fn read(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads Prompty's vectors: all of them, or the part that is there.
pub fn vectors(folder: &Path) -> Vec<Json> {
    let complete = folder.join("vectors-complete.json");
    let file = if complete.is_file() { complete } else { folder.join("vectors.json") };
    read(&file)["vectors"].as_array().cloned().unwrap_or_default()
}

/// Passed, failed and decided cases, by table.
#[derive(Default)]
pub struct Board {
    suite: &'static str,
    tables: BTreeMap<String, [usize; 3]>,
    /// Cases that are not run yet, by table, and why.
    later: BTreeMap<String, (usize, &'static str)>,
    wrong: Vec<String>,
    /// Cases that we decided against: table, case, and the number of the decision.
    decided: &'static [(&'static str, &'static str, u32)],
}

impl Board {
    pub fn new(suite: &'static str, decided: &'static [(&'static str, &'static str, u32)]) -> Board {
        Board { suite, decided, ..Board::default() }
    }

    /// Notes the outcome of a case. A case that was decided against must differ.
    pub fn note(&mut self, table: &str, case: &str, outcome: Result<(), String>) {
        // A name that ends with a star stands for all that begin like it.
        let is = |name: &str| match name.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == name,
        };
        let decision = self.decided.iter().find(|(t, c, _)| *t == table && is(c));
        let counts = self.tables.entry(table.to_owned()).or_default();
        match (outcome, decision) {
            (Ok(()), None) => counts[0] += 1,
            (Err(_), Some(_)) => counts[2] += 1,
            (Err(why), None) => {
                counts[1] += 1;
                self.wrong.push(format!("{}/{table}: {case}: {why}", self.suite));
            }
            // A family of names is a guess at cases that are not public; those of them that agree simply pass.
            (Ok(()), Some((_, name, _))) if name.ends_with('*') => counts[0] += 1,
            (Ok(()), Some((_, _, number))) => {
                counts[1] += 1;
                self.wrong.push(format!("{}/{table}: {case} passes, against decision {number}", self.suite));
            }
        }
    }

    /// Notes a case whose stage is not built yet.
    pub fn later(&mut self, table: &str, why: &'static str) {
        self.later.entry(table.to_owned()).or_insert((0, why)).0 += 1;
    }

    /// Prints the board and fails if a case did.
    pub fn finish(self) {
        for (table, [passed, failed, decided]) in &self.tables {
            println!("{}/{table}: {passed} passed, {failed} failed, {decided} decided", self.suite);
        }
        for (table, (count, why)) in &self.later {
            println!("{}/{table}: {count} not run: {why}", self.suite);
        }
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }
}
