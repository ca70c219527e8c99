//! Comments at the top of a shell script: `# __executor_id__ = "rye/core/runtimes/bash/bash"`.
//!
//! Comments and not assignments, because a script's variables are its own, and because what a shell makes of quotes and
//! dollar signs is known only to a shell. They stand before the first command; values are written as in JSON or JavaScript,
//! each on one line.

use std::sync::Arc;

use super::literal::Scanner;
use super::{Constant, Constants, known_in_code};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

pub(super) fn constants(source: &Arc<Source>) -> Result<Constants> {
    let text = source.text();
    let mut found = Constants::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let here = start;
        start += line.len();
        let Some(comment) = line.trim_start().strip_prefix('#') else {
            if line.trim().is_empty() {
                continue;
            }
            break;
        };
        let Some((name, value)) = comment.split_once('=') else { continue };
        let name = name.trim();
        if !known_in_code(name) && name != "__tool_id__" {
            continue;
        }
        let at = here + line.len() - value.len();
        let end = here + line.trim_end().len();
        let mut scanner = Scanner::new(&text[..end.max(at)], at);
        let value = scanner.value(0);
        scanner.skip_space();
        let rest = scanner.at;
        match value {
            Ok(value) if rest >= end => {
                let first = at + text[at..end].len() - text[at..end].trim_start().len();
                found.insert(name.to_owned(), Constant { value, place: source.place(first..end) });
            }
            other => {
                let (at, why) = match other {
                    Err(no) => (no.at, no.why),
                    Ok(_) => (rest, "the value ends before this"),
                };
                let diagnostic = Diagnostic::new(Code::BadTool, format!("the value of `{name}` is invalid"))
                    .at(source.place(at..end.max(at)))
                    .label(why)
                    .hint(format!("write it as JSON on one line: # {name} = \"…\""));
                return Err(Error::new(ErrorKind::PromptRead, diagnostic));
            }
        }
    }
    Ok(found)
}
