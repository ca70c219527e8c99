//! Where the cases lie, and how many of them passed.

#[path = "../../../skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// The folder with one suite's cases. Where it is missing the suite says so and passes; under `CI=true` that is a failure.
pub fn folder(suite: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("CUEBOOK_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
    };
    let folder = root.join(suite);
    if folder.is_dir() {
        return Some(folder);
    }
    skip::missing_peer(format_args!("{suite}: {} does not exist (CUEBOOK_CONFORMANCE)", folder.display()));
    None
}

/// Reads a file of cases.
pub fn read(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // As programs read values: integers of any size keep their digits.
    let source = cuebook::source::Source::verbatim("cases.json", &text);
    cuebook::Variables::read_value(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads Prompty's vectors: all of them, or the part that is there.
pub fn vectors(folder: &Path) -> Vec<Json> {
    let complete = folder.join("vectors-complete.json");
    let file = if complete.is_file() { complete } else { folder.join("vectors.json") };
    read(&file)["vectors"].as_array().cloned().unwrap_or_default()
}

/// The cases of a table. A file need not have every table.
#[allow(dead_code, reason = "one of the test binaries that share this module has no such tables")]
pub fn table<'f>(file: &'f Json, name: &str) -> &'f [Json] {
    file[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// An error that names the expectations of a case that its runner does not know.
#[allow(dead_code, reason = "not every test binary that shares this module has such cases")]
pub fn only(expected: &Json, known: &[&str]) -> Result<(), String> {
    let names = expected.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(format!("nothing evaluates {}", unknown.join(", "))) }
}

/// Passed, failed, decided and skipped cases, by table.
#[derive(Default)]
pub struct Board {
    suite: &'static str,
    tables: BTreeMap<String, [usize; 4]>,
    /// Why cases of a table were skipped, and how many.
    skipped: BTreeMap<(String, &'static str), usize>,
    /// Parts of expectations that are not compared, by table, and why.
    remarks: Vec<(&'static str, &'static str)>,
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

    /// Notes a case that is not run. One that the runner of another crate runs is counted there.
    pub fn later(&mut self, table: &str, why: &'static str) {
        if why.starts_with("run by the tests of crate ") {
            return;
        }
        self.tables.entry(table.to_owned()).or_default()[3] += 1;
        *self.skipped.entry((table.to_owned(), why)).or_default() += 1;
    }

    /// Names a part of the expectations of a table that is not compared.
    #[allow(dead_code, reason = "not every test binary that shares this module has such tables")]
    pub fn remark(&mut self, table: &'static str, what: &'static str) {
        self.remarks.push((table, what));
    }

    /// How many cases were noted.
    #[allow(dead_code, reason = "not every test binary that shares this module counts")]
    pub fn count(&self) -> usize {
        self.tables.values().flatten().sum()
    }

    /// Prints the board and fails if a case did.
    pub fn finish(self) {
        for (table, [passed, failed, decided, skipped]) in &self.tables {
            let counts = format!("{passed} passed, {failed} failed, {decided} decided, {skipped} skipped");
            println!("{}/{table}: {counts}", self.suite);
        }
        for ((table, why), count) in &self.skipped {
            println!("{}/{table}: {count} not run: {why}", self.suite);
        }
        for (table, what) in self.remarks.iter().filter(|(table, _)| self.tables.contains_key(*table)) {
            println!("{}/{table}: not compared: {what}", self.suite);
        }
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }
}
