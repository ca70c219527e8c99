//! `cuebook lsp`

use std::path::PathBuf;
use std::process::ExitCode;

use cuebook::Book;
use cuebook::library::Config;

use crate::args::Options;
use crate::output::{Outcome, say};
use crate::terminal;

pub fn run(options: &Options) -> Outcome {
    if terminal::is_interactive() {
        say("serving an editor over stdin and stdout; an editor starts this command: cuebook help editors");
    }
    let open = |folder: Option<PathBuf>| {
        let here = || folder.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("."));
        let root = options.root.clone().unwrap_or_else(|| Config::find_root(&here()));
        options.with_hooks(Book::open(root))
    };
    let providers: cuebook_lab::service::MoreFindings = std::sync::Arc::new(super::check::providers);
    cuebook_lsp::serve(open, vec![providers])?;
    Ok(ExitCode::SUCCESS)
}
