//! Opens the project that the options name.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use cuebook::items::Spaces;
use cuebook::library::Config;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_hooks::model::CommandModel;
use cuebook_hooks::sandbox::Launcher;
use cuebook_run::DirectiveTools;
use cuebook_trace::Tracing;

use crate::args::Options;
use crate::{grants, output};

impl Options {
    /// The book of the project. Settings that need a grant are asked for on a terminal; elsewhere one warning names them.
    pub fn book(&self) -> Result<Book> {
        static REVIEWED: Once = Once::new();
        let book = self.book_unreviewed()?;
        // A command reports invalid settings itself.
        REVIEWED.call_once(|| drop(grants::review(book.library(), self)));
        Ok(book)
    }

    /// The same without asking for grants. A folder that was named and does not exist is an error, because it is probably a typo.
    pub fn book_unreviewed(&self) -> Result<Book> {
        match &self.root {
            Some(root) if !root.is_dir() => {
                let message = match root.symlink_metadata() {
                    Ok(_) => "the project is not a directory",
                    Err(_) => "the project's directory does not exist",
                };
                let diagnostic = Diagnostic::new(Code::Unreadable, message)
                    .file(root.to_string_lossy())
                    .hint("name another directory with --root, or create this one: cuebook init DIR");
                Err(Error::new(ErrorKind::Io, diagnostic))
            }
            Some(root) => Ok(self.with_hooks(Book::open(root).with_paths(true))),
            None => {
                let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
                Ok(self.with_hooks(Book::open(Config::find_root(&here)).with_paths(true)))
            }
        }
    }

    /// The spaces of items: of the project, of the user, and of the program.
    pub fn spaces(&self) -> Result<Spaces> {
        Ok(Spaces::of_project(self.book()?.library().root()))
    }

    /// Records what happens from here on, if that is wanted, until what is returned goes.
    pub fn start_trace(&self) -> Result<Option<cuebook_trace::Guard>> {
        let tracing = match self.trace.as_deref() {
            None | Some("") => return Ok(None),
            Some("console") => Tracing { console: true, ..Tracing::default() },
            Some("otel") => Tracing { otel: true, ..Tracing::default() },
            Some(folder) => Tracing { tracy: Some(PathBuf::from(folder)), ..Tracing::default() },
        };
        tracing.install().map(Some).map_err(|error| {
            let diagnostic = Diagnostic::new(Code::BadInput, format!("--trace: {error}"))
                .hint("name a folder, or write --trace console");
            Error::new(ErrorKind::Usage, diagnostic)
        })
    }

    /// Nothing of this starts anything: a render that needs Python does.
    pub fn with_hooks(&self, book: Book) -> Book {
        let mut hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
        if let Some(command) = &self.llm_command {
            let words = command.split_whitespace().map(str::to_owned).collect();
            hooks = hooks.model(Arc::new(CommandModel::new(words)));
        }
        if self.verbose {
            hooks = hooks.listener(Arc::new(output::hear));
        }
        book.with_hooks(hooks).with_directive_tools(DirectiveTools)
    }
}
