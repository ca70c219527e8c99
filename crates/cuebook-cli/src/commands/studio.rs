//! `cuebook studio`

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use cuebook::Book;
use cuebook::library::Config;
use cuebook_serve::{Studio, serve_studio};
use serde_json::json;
use tempfile::TempPath;

use crate::args::{Options, StudioArgs};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &StudioArgs, options: &Options) -> Outcome {
    let book = options.book()?.with_paths(false);
    if let Some(prompt) = &args.prompt {
        // A misspelt id is an error here, where its user reads it.
        book.list_candidates(prompt)?;
    }
    let (library, for_editors) = (book.library().root().to_owned(), options.clone());
    let open = move |folder: Option<PathBuf>| {
        let root = folder.map_or_else(|| library.clone(), |folder| Config::find_root(&folder));
        for_editors.with_hooks(Book::open(root))
    };
    let studio = Studio {
        book: Arc::new(book),
        program: std::env::current_exe()?,
        store: args.store.store.clone(),
        open: Arc::new(open),
    };
    // What follows the token is the state of the page.
    let prompt = args.prompt.as_ref().map(|id| format!("&prompt={}", encoded(id))).unwrap_or_default();
    // The page that leads to the address has the token, so it is deleted when the studio stops.
    let mut page = None;
    serve_studio(studio, &args.port.to_string(), |url| {
        let url = format!("{url}{prompt}");
        match options.json {
            true => drop(print_json(&json!({ "url": url }))),
            false => say(format_args!("the studio is at {url}\nCtrl-C stops it")),
        }
        let has_desktop = terminal::is_interactive() && !args.no_open && has_browser();
        if has_desktop {
            match open_browser(&url) {
                Ok(opened) => page = Some(opened),
                Err(error) => {
                    say(format_args!("no browser could be started ({error}); open the address yourself"));
                }
            }
        }
    })?;
    drop(page);
    Ok(ExitCode::SUCCESS)
}

/// An id as part of an address.
fn encoded(id: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    id.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Whether this machine shows windows to its user.
fn has_browser() -> bool {
    cfg!(target_os = "macos")
        || cfg!(windows)
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Opens a private file that leads to the address. Arguments of a process can be read by other users, and the address has the token.
fn open_browser(url: &str) -> std::io::Result<TempPath> {
    let mut page = tempfile::Builder::new().prefix("cuebook-studio-").suffix(".html").tempfile()?;
    write!(
        page,
        "<!doctype html><meta charset=utf-8><title>Cuebook</title><meta http-equiv=refresh content=\"0;url={url}\">"
    )?;
    let path = page.into_temp_path();
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let mut child = Command::new(program)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::spawn(move || child.wait());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_part_of_the_address() {
        assert_eq!(encoded("desk/refund"), "desk/refund");
        assert_eq!(encoded("a b&token=x#é"), "a%20b%26token%3Dx%23%C3%A9");
    }
}
