//! `cuebook mock`

use std::path::Path;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_mock::{Mock, Reply, Script};
use serde_json::json;

use crate::args::{MockArgs, Options};
use crate::inputs::read_text;
use crate::output::{Outcome, print_line, print_text};

pub fn run(args: &MockArgs, options: &Options) -> Outcome {
    let script = match &args.script {
        Some(path) => read_script(path)?,
        None => Script::new().reply(Reply::text("Hello from the mock model.").usage(10, 6)).forever(),
    };
    // A server that runs for days keeps no request.
    let mock = Mock::start_at(script.forget_requests(), &args.at).map_err(|error| {
        let message = format!("cannot listen on `{}`: {error}", args.at);
        let diagnostic = Diagnostic::new(Code::BadInput, message)
            .hint("choose a free address with --at, as in --at 127.0.0.1:8080");
        Error::new(ErrorKind::Io, diagnostic)
    })?;
    let provider = mock.provider_yaml(args.api);
    if options.json {
        print_line(&json!({"url": mock.url(), "api": args.api.as_str(), "provider": provider}))?;
    } else {
        print_text("# Save this as ~/.ai/config/providers/mock.yaml, and set MOCK_KEY to any value.\n")?;
        print_text(&provider)?;
    }
    loop {
        std::thread::park();
    }
}

fn read_script(path: &Path) -> Result<Script> {
    let invalid = |why: String| {
        let diagnostic = Diagnostic::new(Code::BadInput, format!("the script is invalid: {why}"))
            .file(path.to_string_lossy())
            .hint("write a list of replies, as in [{\"text\": \"Hello.\"}]");
        Error::new(ErrorKind::Usage, diagnostic)
    };
    let json = serde_json::from_str(read_text(path)?.text()).map_err(|error| invalid(error.to_string()))?;
    Script::from_json(&json).map_err(invalid)
}
