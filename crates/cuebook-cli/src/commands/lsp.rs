//! `cuebook lsp`

use std::path::PathBuf;
use std::process::ExitCode;

use cuebook::library::Config;
use cuebook::{Book, Diagnostic};

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
    let providers: cuebook_lab::service::MoreFindings = std::sync::Arc::new(providers);
    cuebook_lsp::serve(open, vec![providers])?;
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with the files of providers. A finding that names its file only at the end of its message, such as a missing
/// signature, is shown in that file.
fn providers(book: &Book) -> Vec<Diagnostic> {
    let mut findings = super::check::providers(book);
    for finding in findings.iter_mut().filter(|finding| finding.file_name().is_none()) {
        let named = finding.message.rsplit(' ').next().map(str::to_owned);
        finding.file = named.filter(|name| book.library().root().join(name).is_file());
    }
    findings
}
