//! `cuebook mock`

use std::path::Path;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::json;

use crate::args::{MockArgs, Options};
use crate::inputs::read_text;
use crate::output::{Outcome, print_line, print_text, say};

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
        let (name, address, key) = variables(args.api);
        say(format_args!(
            "listening at {0}; Ctrl-C stops. To use it, in another terminal:\n  \
             {address}={0} {key}=mock cuebook run PROMPT --provider {name}",
            mock.url()
        ));
    }
    loop {
        std::thread::park();
    }
}

/// The built-in provider that speaks an interface, and the environment variables of its address and its key.
fn variables(api: Api) -> (&'static str, &'static str, &'static str) {
    match api {
        Api::OpenAiChat | Api::OpenAiResponses => ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        Api::Anthropic => ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        Api::Gemini => ("gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
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
