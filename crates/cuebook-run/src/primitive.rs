//! Primitives: the ends of chains, which do something in the world.

pub(crate) mod http;
mod mcp;
pub(crate) mod outcome;
mod sink;

use std::path::{Path, PathBuf};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_hooks::http::HttpClient;
use serde_json::{Map, Value as Json};

use crate::anchor::{ToolContext, bad_runtime};
use crate::caller::stop_call;
use crate::chain::Element;
use crate::config::{Encoding, Piece, Values, is_execution_setting, pieces, text_of, whole_placeholder};
use crate::environment::Environment;
use crate::fence::Fencing;
use crate::interpreter::Interpreter;
use crate::script;
use crate::settings::Settings;
use crate::subprocess::{self, End, Job};
use crate::watch::Watch;
use outcome::Outcome;

/// The primitive that starts a process.
pub(crate) const SUBPROCESS: &str = "rye/core/primitives/subprocess";
/// The primitive that makes a request.
pub(crate) const HTTP_CLIENT: &str = "rye/core/primitives/http_client";

/// Everything that a primitive needs to know.
pub(crate) struct Call<'c> {
    pub(crate) chain: &'c [Element],
    pub(crate) parameters: &'c Map<String, Json>,
    pub(crate) project: &'c Path,
    pub(crate) tool_context: &'c ToolContext,
    pub(crate) environment: &'c Environment,
    pub(crate) settings: &'c Settings,
    /// The fence around it, if a model calls.
    pub(crate) fence: Option<Fencing>,
    /// The program to start, as it was checked; none if there is no such program.
    pub(crate) program: Option<PathBuf>,
    pub(crate) watch: &'c dyn Watch,
}

/// Runs the primitive at the end of a chain.
pub(crate) fn run(call: &Call<'_>) -> Result<Outcome> {
    let Some(last) = call.chain.last() else { return Ok(Outcome::default()) };
    with_values(call, |values, params_json| match last.id() {
        SUBPROCESS => process(call, values, params_json),
        HTTP_CLIENT => {
            let request = http::Request::new(values, last)?;
            if speaks_mcp(call, values)? {
                return mcp::call(&request, mcp_client(call, values)?, call.fence.as_ref());
            }
            match sink::Sink::of(values, call, last)? {
                Some(sink) => http::stream(&request, sink, call.fence.as_ref(), call.watch),
                None => http::send(&request, call.fence.as_ref(), call.watch),
            }
        }
        other => Err(unknown(last, other)),
    })
}

/// Calls a function with what placeholders of a chain stand for, and with the parameters as JSON.
fn with_values<T>(call: &Call<'_>, then: impl FnOnce(&Values<'_>, String) -> Result<T>) -> Result<T> {
    // The tool's own entries win over those of its runtime.
    let mut config = Map::new();
    for element in call.chain.iter().rev() {
        config.extend(element.tool.config.clone());
    }
    let params_json = Json::Object(call.parameters.clone()).to_string();
    let mut context = call.tool_context.context.clone();
    context.insert("params_json".to_owned(), params_json.clone().into());
    let env = |name: &str| call.environment.get(name);
    let values = Values { context: &context, parameters: call.parameters, config: &config, env: &env };
    then(&values, params_json)
}

/// Makes sure that a chain ends where it must.
pub(crate) fn check(chain: &[Element]) -> Result<()> {
    match chain.last() {
        Some(last) if last.id() != SUBPROCESS && last.id() != HTTP_CLIENT => Err(unknown(last, last.id())),
        _ => Ok(()),
    }
}

/// A line that names the usual executor of a tool with this extension.
fn executor_line(extension: &str) -> &'static str {
    match extension {
        "sh" => "# __executor_id__ = \"rye/core/runtimes/bash/bash\"",
        "js" | "mjs" | "cjs" | "ts" => "const __executor_id__ = \"rye/core/runtimes/node/node\"",
        "yaml" | "yml" => "executor_id: rye/core/primitives/subprocess",
        "json" => "\"executor_id\": \"rye/core/primitives/subprocess\"",
        "toml" => "executor_id = \"rye/core/primitives/subprocess\"",
        _ => "__executor_id__ = \"rye/core/runtimes/python/script\"",
    }
}

fn unknown(last: &Element, id: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadRuntime, format!("Unknown primitive: {id}"))
        .file(&last.located.name)
        .hint(format!("it has no executor: name one, as in {}", executor_line(last.located.extension)));
    Error::new(ErrorKind::Execute, diagnostic)
}

/// The program that a call would start; none if it makes a request, or if no element names a program.
pub(crate) fn interpreter(call: &Call<'_>) -> Option<Interpreter> {
    if call.chain.last().map(Element::id) != Some(SUBPROCESS) {
        return None;
    }
    let found = with_values(call, |values, _| {
        let (program, cwd) = (program(call, values)?, cwd(call, values));
        let env = variables(call, values);
        let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        Ok(Interpreter::find(&program, Path::new(&cwd), call.project, path))
    });
    found.ok()
}

fn process(call: &Call<'_>, values: &Values<'_>, params_json: String) -> Result<Outcome> {
    let mut job = job(call, values, params_json)?;
    let mut client = speaks_mcp(call, values)?.then(|| mcp_client(call, values)).transpose()?;
    let finished = match &mut client {
        Some(client) => {
            job.input.clear();
            job.is_conversation = true;
            subprocess::converse(&job, client, call.watch)
        }
        None => subprocess::run(&job, call.watch),
    };
    if let (End::Cancelled | End::TimedOut, Some(mark)) = (&finished.end, call.environment.mark()) {
        // Processes that left the group, as everything does that `timeout` or `setsid` starts, were not stopped with it.
        stop_call(mark);
    }
    if let (End::Over, Some(outcome)) = (&finished.end, client.and_then(mcp::Client::into_outcome)) {
        return Ok(outcome);
    }
    let id = call.chain.first().map(Element::id).unwrap_or_default();
    match job.is_conversation && matches!(finished.end, End::Exited(0)) {
        true => Ok(outcome::of_silence(id, &finished)),
        false => Ok(outcome::of_process(id, &job, finished)),
    }
}

/// Whether a chain calls a tool of an MCP server.
fn speaks_mcp(call: &Call<'_>, values: &Values<'_>) -> Result<bool> {
    match values.config.get("protocol") {
        None | Some(Json::Null) => Ok(false),
        Some(Json::String(name)) if name == "mcp" => Ok(true),
        Some(other) => {
            let message = format!("`protocol` is {other}");
            Err(bad_runtime(runtime(call), message, "write mcp, or leave it out"))
        }
    }
}

/// Who calls the tool of the server.
fn mcp_client<'c>(call: &Call<'c>, values: &Values<'_>) -> Result<mcp::Client<'c>> {
    let Some(tool) = values.config.get("tool").and_then(Json::as_str).filter(|tool| !tool.is_empty()) else {
        let hint = "give `config` the name of a tool of the server, as in tool: search";
        return Err(bad_runtime(call.chain.first(), "`tool` is missing".to_owned(), hint));
    };
    Ok(mcp::Client::new(tool.to_owned(), call.parameters.clone(), call.settings.output, call.watch))
}

/// Without a runtime between it and the primitive, what is wrong is the tool's own.
fn runtime<'c>(call: &Call<'c>) -> Option<&'c Element> {
    call.chain.get(1).filter(|_| call.chain.len() > 2).or(call.chain.first())
}

/// The program that a chain names.
fn program(call: &Call<'_>, values: &Values<'_>) -> Result<String> {
    let config = values.config;
    let program = config.get("program").or_else(|| config.get("command")).and_then(Json::as_str);
    let missing = || {
        let hint = "give `config` a `command`";
        bad_runtime(runtime(call), "the tool names no program to start".to_owned(), hint)
    };
    program.map(|program| values.text(program, Encoding::Plain)).ok_or_else(missing)
}

/// The folder that a chain's program starts in.
fn cwd(call: &Call<'_>, values: &Values<'_>) -> String {
    match values.config.get("cwd").and_then(Json::as_str) {
        Some(cwd) => values.text(cwd, Encoding::Plain),
        None => call.tool_context.cwd().unwrap_or_else(|| call.project.to_string_lossy().into_owned()),
    }
}

/// The environment of a chain's program. A later entry of a name wins.
fn variables(call: &Call<'_>, values: &Values<'_>) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> =
        call.environment.variables().map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(Json::Object(more)) = values.config.get("env") {
        let more =
            more.iter().map(|(name, value)| (name.clone(), text_of(&values.fill(value, Encoding::Plain))));
        env.extend(more.filter(|(name, value)| !call.environment.keeps(name, value)));
    }
    env
}

/// What is to be started.
fn job(call: &Call<'_>, values: &Values<'_>, params_json: String) -> Result<Job> {
    let config = values.config;
    let wrong = |message: &str, hint: &str| bad_runtime(runtime(call), message.to_owned(), hint);
    let program = program(call, values)?;
    let tool = call.chain.first();
    let by_extension =
        config.get("args_for").and_then(|by| tool.and_then(|tool| by.get(tool.located.extension)));
    let nothing = Vec::new();
    let args = match by_extension.or_else(|| config.get("args")) {
        None | Some(Json::Null) => &nothing,
        Some(Json::Array(args)) => args,
        Some(_) => return Err(wrong("`args` must be a list", "write args: [one, two]")),
    };
    let mut env = variables(call, values);
    let is_runtime = tool.is_some_and(|tool| tool.tool.tool_type.as_deref() == Some("runtime"));
    let mut filled: Vec<String> = Vec::with_capacity(args.len());
    for (index, arg) in args.iter().enumerate() {
        let text = text_of(arg);
        let lone = whole_placeholder(&text);
        if lone == Some("params_json") {
            // Every user of the machine can read arguments, so the parameters are in the standard input only. The option
            // that they would belong to goes as well.
            filled.pop_if(|option| option.starts_with('-'));
            continue;
        }
        if pieces(&text).iter().any(|piece| matches!(piece, Piece::Name { name: "params_json", .. })) {
            let message =
                "`args` would contain the parameters, and other users of the machine can read arguments";
            return Err(wrong(
                message,
                "remove {params_json}: the program gets the parameters as JSON on stdin",
            ));
        }
        if script::is_script(&program, args, index) {
            // A script that is one placeholder is the caller's own if it is a parameter, and the author's otherwise.
            match lone.map(|name| (name, config.get(name))) {
                Some((_, Some(Json::String(written)))) => {
                    filled.push(script::fill(written, values, &mut env)?)
                }
                // A tool may leave its `command` to the caller: its author signed that. A runtime is no such tool.
                Some((name, None)) if is_execution_setting(name) && is_runtime => {
                    let message = format!("`{name}` has no value");
                    return Err(wrong(&message, "set it in the tool's `config`"));
                }
                Some((name, _)) if values.parameters.contains_key(name) => {
                    filled.push(script::given(values.text(&text, Encoding::Plain), &mut env));
                }
                Some(_) => filled.push(values.text(&text, Encoding::Plain)),
                None => filled.push(script::fill(&text, values, &mut env)?),
            }
            continue;
        }
        if lone.is_none() && script::is_program(&program, args, index) {
            let given = |piece: &Piece<'_>| matches!(piece, Piece::Name { name, .. } if values.parameters.contains_key(*name));
            if let Some(Piece::Name { written, .. }) = pieces(&text).into_iter().find(given) {
                let message = format!("{written} would become part of the program that `{program}` runs");
                let hint = "the program gets the parameters as JSON on stdin: read them there";
                return Err(wrong(&message, hint));
            }
        }
        filled.push(values.text(&text, Encoding::Plain));
    }
    let cwd = cwd(call, values);
    let seconds = |name: &str| -> Result<Option<f64>> {
        match config.get(name).map(|value| values.fill(value, Encoding::Plain)) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => match value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) {
                Some(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(Some(seconds)),
                _ => Err(wrong(&format!("`{name}` must be a number of seconds"), "write, say, 30")),
            },
        }
    };
    let input = match config.get("input").or_else(|| config.get("stdin")) {
        None | Some(Json::Null) => params_json.into_bytes(),
        Some(input) => text_of(&values.fill(input, Encoding::Plain)).into_bytes(),
    };
    if let Some(bad) = filled.iter().chain([&program, &cwd]).find(|text| text.contains('\0')) {
        let shown: String = bad.chars().take(40).collect();
        let diagnostic =
            Diagnostic::new(Code::BadParameters, format!("a NUL character in an argument: {shown:?}"));
        return Err(Error::new(ErrorKind::Execute, diagnostic.hint("program arguments cannot contain NUL")));
    }
    if let Some((name, _)) = env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
        let message = format!("{name:?} cannot be the name of an environment variable");
        return Err(wrong(&message, "write a name such as LOG_LEVEL"));
    }
    if let Some((name, _)) = env.iter().find(|(_, value)| value.contains('\0')) {
        let message = format!("a NUL character in the environment variable {name}");
        let diagnostic = Diagnostic::new(Code::BadParameters, message);
        return Err(Error::new(
            ErrorKind::Execute,
            diagnostic.hint("environment variables cannot contain NUL"),
        ));
    }
    let most = config.get("max_output").and_then(Json::as_u64).and_then(|most| usize::try_from(most).ok());
    Ok(Job {
        program,
        file: call.program.clone(),
        args: filled,
        env,
        fence: call.fence.clone(),
        cwd: cwd.into(),
        input,
        is_conversation: false,
        timeout: std::time::Duration::from_secs_f64(
            seconds("timeout")?.unwrap_or(call.settings.timeout.as_secs_f64()),
        ),
        grace: match seconds("kill_grace")? {
            Some(seconds) => std::time::Duration::from_secs_f64(seconds),
            None => call.settings.grace,
        },
        most: most.unwrap_or(call.settings.output).min(call.settings.output),
    })
}

/// The client for hosts that an author wrote down, and the one for hosts that a caller names; in the fence, the one for hosts
/// that the tool declares.
pub(crate) fn client(host_is_written: bool, fence: Option<&Fencing>) -> HttpClient {
    match fence {
        Some(fence) => HttpClient::of_hosts(fence.hosts()),
        None if host_is_written => HttpClient::of_every_host(),
        None => HttpClient::new(Vec::new()),
    }
}
