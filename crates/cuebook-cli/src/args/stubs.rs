//! `cuebook stubs`

use std::path::PathBuf;

use clap::Args;

/// `stubs`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook stubs                      print the module
  cuebook stubs --out prompts.py     write it, then in a program: from prompts import Book

With the module's Book, mypy and pyright report a missing variable, a wrong type and an unknown id. A prompt that declares outputs has a dataclass.")]
pub struct StubsArgs {
    /// Where to write the module. An existing file is replaced if this command wrote it [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
