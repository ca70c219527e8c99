//! A book whose files are texts in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook::explain::Explanation;
use cuebook::files::Buffers;
use cuebook::items::Spaces;
use cuebook::variables::FixedClock;
use cuebook::{Book as Prompts, Code, Context, Diagnostic, Error, ErrorKind, Freshness, Result, Variables};
use serde_json::{Map, Value as Json};

use crate::moment::{HostClock, HostNonces};

/// Where the files seem to be.
const ROOT: &str = "/";

/// A book, and its files by their paths.
#[derive(Debug)]
pub struct Book {
    files: Buffers,
    by_id: Prompts,
    by_path: Prompts,
}

impl Book {
    /// A book of files, and of values that every template finds. Its prompts change with nothing.
    pub fn open(files: &Map<String, Json>, globals: &Map<String, Json>, clock: Option<&str>) -> Result<Book> {
        let mut buffers = Buffers::default();
        for (path, text) in files {
            let path = path.trim_start_matches('/').trim_start_matches("./");
            buffers.set(Path::new(ROOT).join(path), text.as_str().unwrap_or_default());
        }
        let clock = clock.map(FixedClock::at).transpose()?;
        let make = || {
            let book = Prompts::open(ROOT)
                .with_spaces(Spaces::new(Path::new(ROOT), None))
                .with_freshness(Freshness::Manual)
                .with_nonces(HostNonces);
            let book = match &clock {
                Some(clock) => book.with_clock(clock.clone()),
                None => book.with_clock(HostClock),
            };
            let globals = globals.iter();
            globals.fold(book, |book, (name, value)| book.with_global(name.clone(), value.clone()))
        };
        let (by_id, by_path) = (make(), make().with_paths(true));
        Ok(Book { files: buffers, by_id, by_path })
    }

    /// Renders a prompt, given by its id or by the path of its file.
    pub fn render(&self, call: &RenderCall) -> Result<Explanation> {
        self.files.during(|| {
            let prepared = match call.is_path {
                true => self.by_path.prepare(&absolute(&call.prompt), &call.context)?,
                false => self.by_id.prepare(&call.prompt, &call.context)?,
            };
            if prepared.runs_code(&call.context) {
                return Err(no_code(&prepared.prompt().id));
            }
            let rendered = prepared.render(&call.variables, &call.context)?;
            Ok(Explanation::new(prepared, rendered))
        })
    }

    /// Every prompt, or those of a type or with a tag.
    pub fn list(&self, kind: Option<&str>, tag: Option<&str>) -> Result<Json> {
        self.files.during(|| {
            let listings = self.by_id.list_prompts(kind, tag)?;
            Ok(listings.iter().map(cuebook::Listing::to_json).collect())
        })
    }

    /// The definition of a prompt.
    pub fn show(&self, prompt: &str, is_path: bool) -> Result<Json> {
        self.files.during(|| match is_path {
            true => self.by_path.get_definition(&absolute(prompt)),
            false => self.by_id.get_definition(prompt),
        })
    }
}

fn no_code(prompt: &str) -> Error {
    let message = format!("the prompt `{prompt}` has hooks in Python, which need a system that runs Python");
    let hint = "pass `withoutHooks: true`, or render in Node with the package `cuebook`";
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::BadInput, message).hint(hint))
}

fn absolute(path: &str) -> String {
    let path: PathBuf = Path::new(ROOT).join(path.trim_start_matches("./"));
    path.to_string_lossy().into_owned()
}

/// What a render gets.
pub struct RenderCall {
    pub prompt: String,
    pub is_path: bool,
    pub variables: Variables,
    pub context: Arc<Context>,
}
