//! `cuebook stubs`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A language that typed prompts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StubsLanguage {
    /// A module of Python
    Python,
    /// A module of TypeScript
    Ts,
}

/// `stubs`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook stubs                      print the module for Python
  cuebook stubs --out prompts.py     write it, then in a program: from prompts import Book
  cuebook stubs --out prompts.ts     write the module for TypeScript, then: Book.open<Prompts>(\".\")
  cuebook stubs --out prompts.ts --zod --watch
                                     with schemas of zod, and again after every change

With the module, a compiler reports a missing variable, a wrong type and an unknown id. A prompt that declares outputs has a type for them.")]
pub struct StubsArgs {
    /// The language [default: that of the file that --out names, or python]
    #[arg(long, value_name = "LANGUAGE")]
    pub lang: Option<StubsLanguage>,

    /// Where to write the module. An existing file is replaced if this command wrote it [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Also write a schema of zod for each type of TypeScript
    #[arg(long)]
    pub zod: bool,

    /// Write the module again whenever a prompt changes
    #[arg(long, requires = "out", conflicts_with = "json")]
    pub watch: bool,
}

impl StubsArgs {
    /// The language that is asked for.
    pub fn language(&self) -> StubsLanguage {
        let is_typescript = || {
            let extension = self.out.as_ref().and_then(|out| out.extension()?.to_str());
            matches!(extension, Some("ts" | "mts" | "cts"))
        };
        self.lang.unwrap_or_else(|| if is_typescript() { StubsLanguage::Ts } else { StubsLanguage::Python })
    }
}
