//! Reads data files row by row, in constant memory.

mod csv;
mod jsonl;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::path::Path;

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json};

/// The most bytes of one row.
pub const MAX_ROW: usize = 16 << 20;

/// A row of a data file.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number; the first row is 1.
    pub number: u64,
    /// Its values by the names of their columns, in the order of the file.
    pub values: Map<String, Json>,
    /// Why it cannot be used; its values are incomplete then.
    pub fault: Option<Error>,
}

impl Row {
    /// A row of a program. `fault` is why its values are incomplete.
    pub fn new(number: u64, values: Map<String, Json>, fault: Option<&str>) -> Row {
        let fault = fault.map(|why| {
            let diagnostic = Diagnostic::new(Code::BadData, format!("row {number}: {why}"));
            Error::new(ErrorKind::PromptValidation, diagnostic).with("row", number)
        });
        Row { number, values, fault }
    }
}

/// The rows of a file.
pub trait Rows: Send {
    /// The next row; `None` at the end. An error ends the file: what follows cannot be read.
    fn next_row(&mut self) -> Option<Result<Row>>;

    /// The names of its columns, if the file says them before its rows.
    fn columns(&self) -> Option<&[String]> {
        None
    }

    /// Whether all its values are texts, so that the types of the prompt's variables say what they mean.
    fn are_texts(&self) -> bool {
        false
    }
}

/// A format of data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lines with fields between commas; the first line has the names.
    Csv,
    /// A JSON object in each line.
    JsonLines,
    /// Columns of Apache Parquet.
    Parquet,
}

/// The ends of file names.
const ENDS: [(&str, Format); 5] = [
    ("csv", Format::Csv),
    ("jsonl", Format::JsonLines),
    ("ndjson", Format::JsonLines),
    ("parquet", Format::Parquet),
    ("pq", Format::Parquet),
];

impl Format {
    /// The format that the name of a file says.
    ///
    /// # Errors
    ///
    /// `CB901` for another one.
    pub fn of(path: &Path) -> Result<Format> {
        let end = path.extension().map(|end| end.to_string_lossy().to_lowercase()).unwrap_or_default();
        if let Some((_, format)) = ENDS.iter().find(|(name, _)| *name == end) {
            return Ok(*format);
        }
        let near = nearest(&end, ENDS.iter().map(|(name, _)| *name));
        let hint = did_you_mean(&near).unwrap_or_else(|| "use .csv, .jsonl, .ndjson or .parquet".to_owned());
        let diagnostic = Diagnostic::new(Code::BadData, "the name of the file does not say its format");
        Err(Error::new(ErrorKind::Usage, diagnostic.file(path.to_string_lossy()).hint(hint)))
    }
}

/// Whether this program reads and writes Parquet.
pub const HAS_PARQUET: bool = cfg!(feature = "parquet");

/// That this program does not read or write Parquet.
pub fn without_parquet(path: &Path) -> Error {
    let diagnostic = Diagnostic::new(Code::BadData, "this build of Cuebook does not read or write Parquet")
        .file(path.to_string_lossy())
        .hint("build it with the feature: cargo build -p cuebook-cli --features batch-parquet, or use .jsonl or .csv");
    Error::new(ErrorKind::Usage, diagnostic)
}

/// Opens a data file.
///
/// # Errors
///
/// `CB901` if its format is unknown or its beginning unreadable, and the errors of files.
pub fn open(path: &Path) -> Result<Box<dyn Rows>> {
    let name = path.to_string_lossy().into_owned();
    let format = Format::of(path)?;
    let opened = || -> std::io::Result<File> {
        let metadata = std::fs::metadata(path)?;
        match files::not_a_file(&metadata) {
            Some(error) => Err(error),
            None => File::open(path),
        }
    };
    if !path.exists() {
        return Err(files::not_there(path, &name));
    }
    let file = opened().map_err(|error| files::io_error(&name, &error))?;
    match format {
        Format::Csv => csv::open(file, name),
        Format::JsonLines => Ok(Box::new(jsonl::JsonLines::new(file, name))),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::open(file, name),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(without_parquet(path)),
    }
}

/// What is wrong with a row of a file.
pub(crate) fn bad_row(name: &str, number: u64, line: Option<u64>, why: &str, hint: Option<String>) -> Error {
    let at = line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let diagnostic = Diagnostic::new(Code::BadData, format!("row {number}{at}: {why}")).file(name);
    Error::new(ErrorKind::PromptValidation, diagnostic.hint_opt(hint)).with("row", number)
}
