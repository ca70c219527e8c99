//! `cuebook execute`

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cuebook::error::report;
use cuebook::items::Spaces;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::{Answer, Engine, Request, Watch};
use serde_json::{Map, Value as Json};

use crate::args::{ExecuteArgs, Options};
use crate::output::{Outcome, print_json, print_text, say};
use crate::{inputs, terminal};

pub fn run(args: &ExecuteArgs, options: &Options) -> Outcome {
    let spaces = match &args.project {
        Some(project) => Spaces::of_project(&std::path::absolute(project)?),
        None => options.spaces()?,
    };
    let request = request(args, &spaces)?;
    let answer = Engine::new(spaces).answer(&request, &Interrupted::new());
    let failed = answer.json.get("status").and_then(Json::as_str) == Some("error");
    if options.json {
        print_json(&answer.json)?;
    } else {
        show(&answer)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn request(args: &ExecuteArgs, spaces: &Spaces) -> Result<Request> {
    let mut parameters = Map::new();
    if let Some(path) = &args.params_file {
        parameters = inputs::read_object(path)?;
    }
    for argument in &args.params {
        let (name, value) = inputs::parse_option("--param", argument)?;
        parameters.insert(name, value);
    }
    let mut limit_overrides = Map::new();
    for argument in &args.limits {
        let limit = argument.split_once('=').and_then(|(name, value)| {
            let number: Json = serde_json::from_str(value.trim()).ok()?;
            (number.is_number() && !name.trim().is_empty()).then(|| (name.trim().to_owned(), number))
        });
        let Some((name, number)) = limit else {
            let message = format!("--limit {argument} is no NAME=NUMBER");
            let diagnostic = Diagnostic::new(Code::BadInput, message).hint("write --limit turns=30");
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        };
        limit_overrides.insert(name, number);
    }
    Ok(Request {
        item_type: args.kind.clone(),
        item_id: args.id.clone(),
        project_path: Some(
            std::path::absolute(spaces.project()).unwrap_or_else(|_| spaces.project().to_owned()),
        ),
        parameters,
        dry_run: args.dry_run,
        thread: args.thread,
        is_async: args.is_async,
        model: args.model.clone(),
        limit_overrides,
    })
}

/// Shows an answer to people: what it says on stdout, what there is to say about it on stderr.
fn show(answer: &Answer) -> std::io::Result<()> {
    let json = &answer.json;
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    if text("status") == Some("validation_passed") {
        let chain: Vec<&str> = match json.get("chain") {
            Some(Json::Array(chain)) => chain.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let message = text("message").unwrap_or_default();
        return match chain.is_empty() {
            true => print_text(&format!("{message}\n")),
            false => print_text(&format!("{message}\n{}\n", chain.join(" → "))),
        };
    }
    match (json.get("data"), text("body")) {
        (_, Some(body)) => {
            say(text("your_directions").unwrap_or_default());
            line(body)?;
        }
        (Some(Json::Object(data)), None) if text("type") == Some("knowledge") => {
            line(data.get("body").and_then(Json::as_str).unwrap_or_default())?;
        }
        (Some(Json::Object(data)), None) if data.contains_key("return_code") => {
            let said = |name: &str| data.get(name).and_then(Json::as_str).unwrap_or_default();
            print_text(said("stdout"))?;
            // What a tool that failed said is part of the error.
            if answer.error.is_none() && !said("stderr").is_empty() {
                write!(std::io::stderr(), "{}", said("stderr"))?;
            }
        }
        (Some(Json::String(data)), None) => line(data)?,
        (Some(data), None) => print_json(data)?,
        (None, None) => {}
    }
    if let Some(error) = &answer.error {
        // What `render` calls a variable is a parameter here.
        let mut diagnostics = error.diagnostics().to_vec();
        for hint in diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.hint.as_mut()) {
            *hint = hint.replace("pass --var ", "pass --param ");
        }
        let _ = write!(anstream::stderr(), "{}", report(&diagnostics, true));
        say(format_args!("\nfor more about this: cuebook help {}", error.code()));
    }
    Ok(())
}

/// Prints text with a newline at its end.
fn line(text: &str) -> std::io::Result<()> {
    let end = if text.ends_with('\n') || terminal::stdout_is_terminal() { "" } else { "\n" };
    print_text(&format!("{text}{end}"))
}

/// Whoever presses Ctrl-C stops the tool, which is in a group of its own and would not hear of it; twice, it is stopped
/// without being asked first. Where nobody looks at this, which is while a request is on its way, twice ends this program.
struct Interrupted {
    /// Somebody has asked, and nobody has looked yet.
    asked: Arc<AtomicBool>,
    /// How often somebody has.
    times: AtomicUsize,
}

impl Interrupted {
    fn new() -> Interrupted {
        let asked = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            // Without it the program would end at once and leave the tool behind: worth having, not worth failing for.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, asked.clone());
            let _ = signal_hook::flag::register(signal, asked.clone());
        }
        Interrupted { asked, times: AtomicUsize::new(0) }
    }

    fn times(&self) -> usize {
        let new = usize::from(self.asked.swap(false, Ordering::Relaxed));
        self.times.fetch_add(new, Ordering::Relaxed) + new
    }
}

impl Watch for Interrupted {
    fn cancelled(&self) -> bool {
        self.times() > 0
    }

    fn impatient(&self) -> bool {
        self.times() > 1
    }
}
