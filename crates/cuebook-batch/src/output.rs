//! Writes the rows of an output. A file appears whole, under its name, when its last row is written.

#[cfg(feature = "parquet")]
mod parquet;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json};

use crate::kinds::Kind;
use crate::rows::{Format, without_parquet};

/// Takes rows.
pub trait Output: Send {
    /// Takes the next row.
    ///
    /// # Errors
    ///
    /// That it cannot be written.
    fn write(&mut self, line: Map<String, Json>) -> Result<()>;

    /// All rows were written: the file gets its name.
    ///
    /// # Errors
    ///
    /// That it cannot be written.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Opens an output with this name. Some formats need the types of its columns.
///
/// # Errors
///
/// `CB901` for a format that is not written, and the errors of files.
pub(crate) fn create(
    path: &Path,
    kinds: impl FnOnce() -> Result<Vec<(String, Kind)>>,
) -> Result<Box<dyn Output>> {
    #[cfg(not(feature = "parquet"))]
    let _ = kinds;
    match Format::of(path)? {
        Format::JsonLines => Ok(Box::new(JsonLines::create(path)?)),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::create(path, &kinds()?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(without_parquet(path)),
        Format::Csv => Err(not_as_csv(path)),
    }
}

fn not_as_csv(path: &Path) -> Error {
    let diagnostic = Diagnostic::new(Code::BadData, "an output is not written as CSV")
        .file(path.to_string_lossy())
        .hint("use .jsonl or .parquet: answers, lists and missing values have no clear form in CSV");
    Error::new(ErrorKind::Usage, diagnostic)
}

/// Checks that an output can be written under this name, before anything is paid for.
///
/// # Errors
///
/// As [`create`].
pub fn check(path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    match Format::of(path)? {
        Format::Csv => return Err(not_as_csv(path)),
        Format::Parquet if !crate::rows::HAS_PARQUET => return Err(without_parquet(path)),
        _ => {}
    }
    let pending = Pending::create(path).map_err(|error| files::write_error(&name, &error))?;
    pending.abandon();
    Ok(())
}

/// A file that gets its name when it is whole.
pub(crate) struct Pending {
    path: PathBuf,
    temporary: PathBuf,
}

impl Pending {
    fn create(path: &Path) -> io::Result<Pending> {
        files::plain_target(path)?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // One process writes an output at a time, so the file beside it has one name: what a process that died left is written over.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.part"));
        files::plain_target(&temporary)?;
        OpenOptions::new().create(true).append(true).open(&temporary)?;
        Ok(Pending { path: path.to_owned(), temporary })
    }

    /// Opens the file for writing from its beginning.
    pub(crate) fn open(path: &Path) -> Result<(Pending, File)> {
        let name = path.to_string_lossy();
        let opened = Pending::create(path).and_then(|pending| {
            let file = OpenOptions::new().write(true).truncate(true).open(&pending.temporary)?;
            Ok((pending, file))
        });
        opened.map_err(|error| files::write_error(&name, &error))
    }

    fn abandon(self) {
        // It is empty, and written over by the next output.
        let _ = fs::remove_file(&self.temporary);
    }

    /// Gives the file its name.
    pub(crate) fn finish(self, file: &File) -> Result<()> {
        let finish = || -> io::Result<()> {
            file.sync_all()?;
            fs::rename(&self.temporary, &self.path)?;
            let folder = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            files::sync_folder(folder.unwrap_or(Path::new(".")))
        };
        finish().map_err(|error| files::write_error(&self.path.to_string_lossy(), &error))
    }
}

struct JsonLines {
    pending: Pending,
    file: BufWriter<File>,
    name: String,
}

impl JsonLines {
    fn create(path: &Path) -> Result<JsonLines> {
        let (pending, file) = Pending::open(path)?;
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(JsonLines { pending, file, name: path.to_string_lossy().into_owned() })
    }
}

fn write_line(to: &mut impl Write, line: &Map<String, Json>) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

impl Output for JsonLines {
    fn write(&mut self, line: Map<String, Json>) -> Result<()> {
        write_line(&mut self.file, &line).map_err(|error| files::write_error(&self.name, &error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let file = self.file.into_inner().map_err(|error| files::write_error(&self.name, error.error()))?;
        self.pending.finish(&file)
    }
}

/// Rows that go to a writer as JSON lines, such as stdout.
pub struct Lines<W: Write + Send> {
    to: BufWriter<W>,
}

impl<W: Write + Send> Lines<W> {
    /// Writes to this writer.
    pub fn new(to: W) -> Lines<W> {
        Lines { to: BufWriter::with_capacity(1 << 16, to) }
    }
}

impl<W: Write + Send> Output for Lines<W> {
    fn write(&mut self, line: Map<String, Json>) -> Result<()> {
        write_line(&mut self.to, &line).map_err(|error| files::write_error("stdout", &error).caused_by(error))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.to.flush().map_err(|error| files::write_error("stdout", &error).caused_by(error))
    }
}
