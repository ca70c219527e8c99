//! `cuebook help`

use std::io::Write;
use std::process::ExitCode;

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Value as Json, json};

use crate::args::{Cli, HelpArgs, Options};
use crate::output::{Outcome, print_json, print_text};
use crate::{markdown, pager, terminal};

/// Pages on what no single command or error is about: a name, what it is about, and the page.
pub const TOPICS: [(&str, &str, &str); 16] = [
    ("batch", "render, run and judge the rows of a data file", include_str!("../../topics/batch.md")),
    ("convert", "convert a prompt to another dialect", include_str!("../../topics/convert.md")),
    ("diff", "compare two versions of a prompt", include_str!("../../topics/diff.md")),
    ("directives", "directives, their inputs and signatures", include_str!("../../topics/directives.md")),
    ("editors", "set up an editor", include_str!("../../topics/editors.md")),
    ("explain", "find where each part of a prompt came from", include_str!("../../topics/explain.md")),
    ("hooks", "Python code that runs during a render", include_str!("../../topics/hooks.md")),
    ("includes", "include other prompts, sections and directives", include_str!("../../topics/includes.md")),
    ("mcp", "serve a project to MCP clients", include_str!("../../topics/mcp.md")),
    ("prompty", ".prompty files", include_str!("../../topics/prompty.md")),
    ("sections", "section trees", include_str!("../../topics/sections.md")),
    ("testing", "write test cases, and try injection strings", include_str!("../../topics/testing.md")),
    ("threads", "run directives and prompts with a model", include_str!("../../topics/threads.md")),
    ("tokens", "count tokens, and see what a cache can reuse", include_str!("../../topics/tokens.md")),
    ("tools", "write and run tools", include_str!("../../topics/tools.md")),
    ("trust", "sign items, and trust keys", include_str!("../../topics/trust.md")),
];

pub fn run(args: &HelpArgs, options: &Options) -> Outcome {
    let mut command = Cli::grouped();
    // Without it the usage line of a subcommand would not name the program.
    command.build();
    let Some(topic) = args.topic.first() else {
        write!(anstream::stdout(), "{}", command.render_long_help().ansi())?;
        return Ok(ExitCode::SUCCESS);
    };
    if topic == "codes" && options.json {
        print_json(&Code::ALL.iter().map(|code| document(*code)).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if topic == "codes" {
        let mut out = anstream::stdout().lock();
        for code in Code::ALL {
            writeln!(out, "{code}  {:24}  {}", code.name(), code.summary())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(code) = Code::find(topic) {
        if options.json {
            print_json(&document(code))?;
        } else {
            show(code.page(), args)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some((name, summary, page)) = TOPICS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(topic)) {
        if options.json {
            print_json(&json!({"topic": name, "summary": summary, "page": page}))?;
        } else {
            show(page, args)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut found = command;
    for (index, name) in args.topic.iter().enumerate() {
        let next = found.find_subcommand(name).cloned();
        let Some(next) = next else {
            let names: Vec<String> =
                found.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            let codes = Code::ALL.iter().flat_map(|code| [code.as_str(), code.name()]);
            let topics = TOPICS.iter().map(|(name, ..)| *name).filter(|_| index == 0);
            let known: Vec<&str> = names.iter().map(String::as_str).chain(topics).chain(codes).collect();
            let shown = args.topic[..=index].join(" ");
            let diagnostic = Diagnostic::new(Code::BadInput, format!("no help for `{shown}`"));
            let hint = did_you_mean(&nearest(name, known.iter().copied())).unwrap_or_else(|| {
                "`cuebook help` lists the commands, `cuebook help codes` the error codes".into()
            });
            return Err(Error::new(ErrorKind::PromptNotFound, diagnostic.hint(hint)).into());
        };
        found = next;
    }
    write!(anstream::stdout(), "{}", found.render_long_help().ansi())?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a page: laid out for a terminal, and as it was written elsewhere.
fn show(page: &str, args: &HelpArgs) -> std::io::Result<()> {
    match terminal::stdout_is_terminal() {
        true => pager::show(&markdown::page(page), !args.no_pager),
        false => print_text(page),
    }
}

/// What scripts get to know of a code.
fn document(code: Code) -> Json {
    json!({
        "code": code.as_str(),
        "rule": code.name(),
        "severity": code.severity().as_str(),
        "summary": code.summary(),
        "page": code.page(),
    })
}
