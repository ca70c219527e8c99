//! Values from the command line: `--var`, `--vars`, `--agent` and `--context`.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook::chat::Media;
use cuebook::dialect::directive::Returns;
use cuebook::error::{did_you_mean, nearest};
use cuebook::files;
use cuebook::prompt::{Rich, Visibility};
use cuebook::sections::{SectionState, VisibilityOverrides};
use cuebook::source::Source;
use cuebook::{
    Agent, Book, Code, Context, Diagnostic, Error, ErrorKind, Hint, Prepared, Rendered, Result,
    UnknownVariables, Variables,
};
use cuebook_lab::BookExt as _;
use cuebook_run::policy::limits::ThreadLimits;
use serde_json::Value as Json;

use crate::args::Inputs;
use crate::output::say;

/// What `--vars` may be at most; variables are values, and a prompt is not a database.
const MAX_BYTES: u64 = 256 << 20;

/// What to do next in a folder without prompts.
pub const NO_PROMPTS: &str = "this folder has no prompts yet: create an example with cuebook init, write one into \
                              prompts/NAME/template.md, or name another project with --root";

/// Everything that a render gets from the command line.
pub struct Given {
    /// The prompt.
    pub prompt: String,
    /// The variables.
    pub variables: Variables,
    /// The circumstances.
    pub context: Context,
    /// The file that is to remember which sections were opened, once the render has succeeded.
    session: Option<PathBuf>,
    /// The sections that are to be opened now.
    expanded: Vec<Vec<String>>,
}

impl Given {
    /// Remembers which sections were opened.
    pub fn remember(&self) -> Result<()> {
        match &self.session {
            Some(path) => VisibilityOverrides::update(path, |session| {
                self.expanded.iter().for_each(|section| open(session, section));
            })
            .map(drop),
            None => Ok(()),
        }
    }

    /// Says which of the sections that are to be opened are not to be seen all the same.
    pub fn mention_unseen(&self, rendered: &Rendered) {
        for section in rendered.sections().iter().flat_map(|disclosed| &disclosed.sections) {
            if section.state != SectionState::Shown(Visibility::Full) && self.expanded.contains(&section.path)
            {
                let (path, state) = (section.path.join("."), section.state.as_str());
                let why = section.why.describe();
                say(format_args!("warning: --expand {path} has no effect: the section is {state} ({why})"));
            }
        }
    }
}

/// Opens a section. What is below something that is closed does not show, so the way there is opened as well.
fn open(session: &mut VisibilityOverrides, section: &[String]) {
    for above in 1..=section.len() {
        session.set(&section[..above], Visibility::Full);
    }
}

/// The circumstances that the command line tells, without what only a particular prompt can understand.
fn circumstances(inputs: &Inputs) -> Result<Context> {
    let mut context = Context {
        strict: inputs.strict,
        without_hooks: inputs.no_hooks,
        // Names are checked here: those of a file that serves many prompts are not refused.
        unknown: UnknownVariables::Ignore,
        ..Context::default()
    };
    if let Some(path) = &inputs.agent {
        context.agent = Agent::read(&read_text(path)?)?;
    }
    context.overrides_tag = inputs.tag.clone();
    context.message = inputs.message.clone();
    context.fit = inputs.fit;
    let language = inputs.language.iter().map(|language| format!("language={language}"));
    for argument in inputs.context.iter().cloned().chain(language) {
        set_context(&mut context, &argument)?;
    }
    Ok(context)
}

/// Reads the values and makes sure that the prompt has variables of these names.
pub fn read(prompt: Option<&str>, inputs: &Inputs, book: &Book) -> Result<Given> {
    let mut context = circumstances(inputs)?;
    let prompt = match (prompt, &context.agent.prompt_id) {
        (Some(prompt), _) => prompt.to_owned(),
        (None, Some(prompt)) => {
            // A file names an id; only what was typed may be a path.
            book.library().choose(prompt).map(drop).or_else(|error| match error.kind() {
                ErrorKind::PromptConflict => Ok(()),
                _ if error.code() != Code::PromptNotFound => Err(error),
                _ => Err(named_by_agent(&error, inputs.agent.as_deref())),
            })?;
            prompt.clone()
        }
        (None, None) => {
            let hint = match book.targets(&[]) {
                Ok(targets) if targets.is_empty() => NO_PROMPTS,
                _ => "name one; `cuebook list` shows all of them",
            };
            return Err(bad_input("no prompt was given", hint));
        }
    };
    let mut values = match &inputs.vars_file {
        Some(path) => read_file(path)?,
        None => Variables::new(),
    };
    let from_file: Vec<String> = values.names().map(str::to_owned).collect();
    let mut from_line = Vec::new();
    for argument in &inputs.vars {
        let (name, value) = parse(argument)?;
        from_line.push(name.clone());
        values = values.set(name, value);
    }
    for argument in &inputs.files {
        let (name, path) = file_option(argument)?;
        from_line.push(name.to_owned());
        let rich =
            book.prepare(&prompt, &context)?.prompt().variable(name).and_then(|variable| variable.rich);
        values = values.set(name, file_value(path, rich)?);
    }
    if !values.is_empty() {
        check_names(&prompt, &from_line, &from_file, &context, book)?;
    }
    let expanded = disclose(&prompt, inputs, &mut context, book)?;
    let session = inputs.session.clone().filter(|_| !inputs.expand.is_empty());
    Ok(Given { prompt, variables: values, context, session, expanded })
}

/// The error about a prompt that an `agent.json` names, with the file.
fn named_by_agent(error: &Error, agent: Option<&Path>) -> Error {
    let agent = agent.unwrap_or(Path::new("agent.json")).display();
    let mut diagnostic = error.diagnostic().clone();
    diagnostic.message = format!("{} (`prompt_id` of {agent} names it)", diagnostic.message);
    let kept = ["prompt_id", "nearest", "searched"];
    let kept = kept.into_iter().filter_map(|name| Some((name, error.field(name)?.clone())));
    kept.fold(Error::new(error.kind(), diagnostic), |error, (name, value)| error.with(name, value))
}

/// `NAME=PATH` of the option `--file`.
fn file_option(argument: &str) -> Result<(&str, &str)> {
    argument.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty()).ok_or_else(|| {
        bad_input(format!("--file {argument}: expected NAME=PATH"), "write --file photo=cat.png")
    })
}

/// The values of `--vars`, `--var` and `--file`, for a template that declares nothing.
pub fn read_values(inputs: &Inputs) -> Result<serde_json::Map<String, Json>> {
    let mut values = match &inputs.vars_file {
        Some(path) => read_object(path)?,
        None => serde_json::Map::new(),
    };
    for argument in &inputs.vars {
        values.extend([parse(argument)?]);
    }
    for argument in &inputs.files {
        let (name, path) = file_option(argument)?;
        values.insert(name.to_owned(), file_value(path, None)?);
    }
    Ok(values)
}

/// What a file holds, for a variable that takes this.
fn file_value(path: &str, rich: Option<Rich>) -> Result<Json> {
    Ok(match rich {
        Some(Rich::Image | Rich::File | Rich::Audio) => Media::of_file(Path::new(path))?.to_json(),
        Some(Rich::Thread) => Variables::read_value(&read_text(Path::new(path))?)?,
        None => Json::String(read_text(Path::new(path))?.text().to_owned()),
    })
}

/// Values for several prompts, read once.
pub struct Shared<'i> {
    inputs: &'i Inputs,
    context: Context,
    from_file: Vec<(String, Json)>,
    from_line: Vec<(String, Json)>,
}

impl<'i> Shared<'i> {
    /// Reads the values.
    pub fn read(inputs: &'i Inputs) -> Result<Shared<'i>> {
        let mut context = circumstances(inputs)?;
        if let Some(path) = &inputs.session {
            context.visibility = VisibilityOverrides::read(path)?;
        }
        let from_file = match &inputs.vars_file {
            Some(path) => read_object(path)?.into_iter().collect(),
            None => Vec::new(),
        };
        let from_line = inputs.vars.iter().map(|argument| parse(argument)).collect::<Result<_>>()?;
        Ok(Shared { inputs, context, from_file, from_line })
    }

    /// The circumstances.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The circumstances, to be changed.
    pub fn context_mut(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Refuses what means nothing to any of the prompts.
    /// `none` is the text for no value: `neither version`, for example.
    pub fn refuse_slips(&self, prompts: &[&Prepared], none: &str) -> Result<()> {
        let names: BTreeSet<String> =
            prompts.iter().flat_map(|prompt| prompt.known_names()).cloned().collect();
        let takes_any_name = prompts.iter().any(|prompt| prompt.takes_any_name());
        let is_known = |name: &str| takes_any_name || names.contains(name);
        let near = |name: &str| did_you_mean(&nearest(name, names.iter().map(String::as_str)));
        let from_files = self.inputs.files.iter().map(|argument| file_option(argument).map(|(name, _)| name));
        let from_files: Vec<&str> = from_files.collect::<Result<_>>()?;
        let mut line = self.from_line.iter().map(|(name, _)| name.as_str()).chain(from_files);
        if let Some(name) = line.find(|name| !is_known(name)) {
            let known: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| *name != "system").collect();
            let hint = near(name).unwrap_or_else(|| format!("their variables are {}", known.join(", ")));
            let diagnostic =
                Diagnostic::new(Code::UnknownVariable, format!("{none} has a variable `{name}`")).hint(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("variable", name));
        }
        for (name, _) in self.from_file.iter().filter(|(name, _)| !is_known(name)).take(MAX_COMPARED) {
            if let Some(hint) = near(name) {
                say(format_args!("warning: --vars: unknown variable `{name}`: {hint}"));
            }
        }
        let trees: Vec<_> = prompts.iter().filter_map(|prompt| prompt.tree()).collect();
        let Inputs { expand, session, tag, fit, .. } = self.inputs;
        if trees.is_empty() && (!expand.is_empty() || session.is_some() || tag.is_some() || fit.is_some()) {
            let hint = "--expand, --session, --tag and --fit work on section trees: cuebook help sections";
            return Err(bad_input(format!("{none} is a section tree"), hint));
        }
        for wanted in expand {
            if trees.iter().all(|tree| tree.find_all(wanted).next().is_none()) {
                let sections = trees.iter().flat_map(|tree| tree.sections());
                let known: Vec<&str> = sections.map(|node| node.dotted()).collect();
                let hint = did_you_mean(&nearest(wanted, known.iter().copied()))
                    .unwrap_or_else(|| format!("their sections are {}", listed(&known)));
                let message = format!("{none} has a section `{wanted}`");
                let diagnostic = Diagnostic::new(Code::BadSection, message).hint(hint);
                return Err(Error::new(ErrorKind::PromptValidation, diagnostic));
            }
        }
        Ok(())
    }

    /// What one of the prompts understands of all that.
    pub fn of(&self, prompt: &Prepared) -> Result<(Variables, Context)> {
        let mut values = Variables::new();
        let (names, takes_any_name) = (prompt.known_names(), prompt.takes_any_name());
        let is_known = |name: &str| takes_any_name || names.contains(name);
        for (name, value) in self.from_file.iter().chain(&self.from_line) {
            if is_known(name) {
                values = values.set(name.clone(), value.clone());
            }
        }
        for argument in &self.inputs.files {
            let (name, path) = file_option(argument)?;
            if is_known(name) {
                let rich = prompt.prompt().variable(name).and_then(|variable| variable.rich);
                values = values.set(name, file_value(path, rich)?);
            }
        }
        let mut context = self.context.clone();
        match prompt.tree() {
            Some(tree) => {
                let wanted = self.inputs.expand.iter().flat_map(|wanted| tree.find_all(wanted));
                wanted.for_each(|node| open(&mut context.visibility, &node.path));
            }
            None => (context.fit, context.overrides_tag) = (None, None),
        }
        Ok((values, context))
    }
}

/// How many sections a hint lists.
const MAX_LISTED: usize = 20;

/// What was opened before, and what is to be opened now, which it returns. A section that does not exist, and options that mean
/// nothing to this prompt, are slips.
fn disclose(prompt: &str, inputs: &Inputs, context: &mut Context, book: &Book) -> Result<Vec<Vec<String>>> {
    let mut expanded = Vec::new();
    if inputs.expand.is_empty() && inputs.session.is_none() && inputs.tag.is_none() && inputs.fit.is_none() {
        return Ok(expanded);
    }
    let prepared = book.prepare(prompt, context)?;
    let Some(tree) = prepared.tree() else {
        let message = format!("the prompt `{}` is not a section tree", prepared.prompt().id);
        let hint = "--expand, --session, --tag and --fit work on section trees: cuebook help sections";
        return Err(bad_input(message, hint));
    };
    if let Some(path) = &inputs.session {
        context.visibility = VisibilityOverrides::read(path)?;
    }
    for wanted in &inputs.expand {
        let mut found = tree.find_all(wanted).peekable();
        if found.peek().is_none() {
            let known: Vec<&str> = tree.sections().iter().map(|node| node.dotted()).collect();
            let near = nearest(wanted, known.iter().copied());
            let hint = did_you_mean(&near).unwrap_or_else(|| format!("its sections are {}", listed(&known)));
            let message = format!("the prompt `{}` has no section `{wanted}`", prepared.prompt().id);
            let diagnostic = Diagnostic::new(Code::BadSection, message).hint(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("nearest", near));
        }
        for node in found {
            open(&mut context.visibility, &node.path);
            expanded.push(node.path.clone());
        }
    }
    Ok(expanded)
}

/// The first of some names, and how many more there are.
fn listed(names: &[&str]) -> String {
    match names.split_at_checked(MAX_LISTED) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => names.join(", "),
    }
}

pub fn bad_input(message: impl Into<String>, hint: impl Into<Hint>) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
}

/// `NAME=TEXT` or `NAME:=JSON` of the option `--var`.
fn parse(argument: &str) -> Result<(String, Json)> {
    parse_option("--var", argument)
}

/// `NAME=TEXT` or `NAME:=JSON` of an option.
pub fn parse_option(option: &str, argument: &str) -> Result<(String, Json)> {
    let form = "write NAME=TEXT for text, or NAME:=JSON for numbers, booleans, lists and objects";
    let Some((name, value)) = argument.split_once('=') else {
        return Err(bad_input(format!("{option} {argument} has no `=`"), form));
    };
    let (name, json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name.trim().is_empty() {
        return Err(bad_input(format!("{option} {argument} has no name"), form));
    }
    if !json {
        return Ok((name.to_owned(), Json::String(value.to_owned())));
    }
    // What does not even begin like JSON was meant as text; what does has a mistake, which is shown.
    if serde_json::from_str::<Json>(value).is_err() && !value.trim_start().starts_with(['{', '[', '"']) {
        let shown = if value.chars().count() > 60 { "…" } else { value };
        let hint = format!("pass text with `=` alone: {option} {name}={shown}");
        return Err(bad_input(format!("the value of {option} {name} is not valid JSON: {shown}"), hint));
    }
    let value = Variables::read_value(&Source::new(format!("{option} {name}"), value))?;
    Ok((name.to_owned(), value))
}

/// Reads a file that was named on the command line. Its limit is ours, and no setting changes it.
/// Limits of a thread: `NAME=NUMBER`.
pub fn limits(arguments: &[String]) -> Result<serde_json::Map<String, Json>> {
    let read = |argument: &String| {
        let limit = argument.split_once('=').and_then(|(name, value)| {
            let (name, value) = (name.trim(), value.trim());
            if name == "spend_currency" {
                // The one limit that is a word.
                return Some((name.to_owned(), Json::from(value)));
            }
            let number: Json = serde_json::from_str(value).ok()?;
            (number.is_number() && !name.is_empty()).then(|| (name.to_owned(), number))
        });
        limit.ok_or_else(|| {
            let name = argument.split('=').next().map(str::trim).filter(|name| !name.is_empty());
            let hint = format!("write a number, such as --limit {}=30", name.unwrap_or("turns"));
            bad_input(format!("--limit {argument}: expected NAME=NUMBER"), hint)
        })
    };
    let mut limits = serde_json::Map::new();
    for argument in arguments {
        let (name, value) = read(argument)?;
        let one = serde_json::Map::from_iter([(name, value)]);
        // The receiver would point at the prompt's own limits, or at nothing.
        ThreadLimits::defaults()
            .with(&one, &format!("--limit {argument}"))
            .map_err(|error| Error::new(ErrorKind::Usage, error.diagnostic().clone()))?;
        limits.extend(one);
    }
    Ok(limits)
}

/// The text of a file that an option names.
pub fn read_text(path: &Path) -> Result<Arc<Source>> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Err(files::not_there(path, &path.to_string_lossy()));
    }
    files::read_input(path, &path.to_string_lossy(), MAX_BYTES).map_err(|error| match error.code() {
        Code::FileTooLarge => {
            let hint = "pass less data: Cuebook keeps all variables in memory";
            Error::new(error.kind(), error.diagnostic().clone().hint(hint))
        }
        _ => error,
    })
}

fn read_file(path: &Path) -> Result<Variables> {
    Variables::read(&read_source(path)?)
}

/// The object that a JSON or YAML file holds, or stdin with `-`.
pub fn read_object(path: &Path) -> Result<serde_json::Map<String, Json>> {
    Variables::read_object(&read_source(path)?)
}

/// The text of a file, or of stdin with `-`.
fn read_source(path: &Path) -> Result<Arc<Source>> {
    if path != Path::new("-") {
        return read_text(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| files::io_error("stdin", &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("stdin has more than {MAX_BYTES} bytes");
        return Err(bad_input(message, "pass less data: Cuebook keeps all variables in memory"));
    }
    files::source_from_bytes(bytes, "stdin")
}

const CONTEXT_NAMES: [&str; 9] = [
    "returns",
    "agent_id",
    "agent_name",
    "model",
    "session_id",
    "workspace_path",
    "language",
    "session",
    "session_state",
];

fn set_context(context: &mut Context, argument: &str) -> Result<()> {
    let Some((name, value)) = argument.split_once('=') else {
        return Err(bad_input(format!("--context {argument} has no `=`"), "write --context language=ja"));
    };
    let object = match name.trim_end_matches(':') {
        "session" => Some(&mut context.session),
        "session_state" => Some(&mut context.session_state),
        _ => None,
    };
    if let Some(object) = object {
        let read = Variables::read_value(&Source::new(format!("--context {name}"), value)).ok();
        let Some(Json::Object(values)) = read else {
            let hint = format!("write --context {}:='{{\"turns\": 3}}'", name.trim_end_matches(':'));
            return Err(bad_input(format!("--context {argument}: the value is not a JSON object"), hint));
        };
        *object = values;
        return Ok(());
    }
    if name == "returns" {
        context.returns = Returns::named(value);
        return match context.returns {
            Some(_) => Ok(()),
            None => Err(bad_input(
                format!("--context {argument}: unknown way to return outputs"),
                "write returns=call or returns=block",
            )),
        };
    }
    let field = match name {
        "agent_id" => &mut context.agent.id,
        "agent_name" => &mut context.agent.name,
        "model" => &mut context.model,
        "session_id" => &mut context.session_id,
        "workspace_path" => &mut context.workspace_path,
        "language" => &mut context.language,
        _ => {
            let name = name.trim_end_matches(':');
            if CONTEXT_NAMES.contains(&name) {
                let message = format!("--context {argument}: `{name}` is text, but `:=` passes JSON");
                return Err(bad_input(message, format!("write --context {name}=TEXT")));
            }
            let hint = did_you_mean(&nearest(name, CONTEXT_NAMES))
                .unwrap_or_else(|| format!("known: {}", CONTEXT_NAMES.join(", ")));
            return Err(bad_input(format!("--context: unknown name `{name}`"), hint));
        }
    };
    *field = Some(value.to_owned());
    Ok(())
}

/// How many unknown names of a file are compared with the names of the prompt.
const MAX_COMPARED: usize = 100;

/// A misspelt name on the command line would silently change nothing. A file may serve many prompts, so there it is only
/// mentioned if it looks like a slip.
fn check_names(prompt: &str, line: &[String], file: &[String], context: &Context, book: &Book) -> Result<()> {
    let prepared = book.prepare(prompt, context)?;
    let names = prepared.known_names();
    let similar = |name: &str| nearest(name, names.iter().map(String::as_str));
    let takes_any_name = prepared.takes_any_name();
    let is_known = |name: &String| takes_any_name || names.contains(name);
    for name in line {
        if !is_known(name) {
            let id = &prepared.prompt().id;
            let hint = did_you_mean(&similar(name)).unwrap_or_else(|| {
                let known: Vec<&str> =
                    names.iter().map(String::as_str).filter(|name| *name != "system").collect();
                match known.is_empty() {
                    true => "this prompt has no variables".to_owned(),
                    false => format!("its variables are {}", known.join(", ")),
                }
            });
            let diagnostic =
                Diagnostic::new(Code::UnknownVariable, format!("the prompt `{id}` has no variable `{name}`"))
                    .hint(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("variable", name));
        }
    }
    for name in file.iter().filter(|name| !is_known(name)).take(MAX_COMPARED) {
        if let Some(hint) = did_you_mean(&similar(name)) {
            say(format_args!("warning: --vars: unknown variable `{name}`: {hint}"));
        }
    }
    Ok(())
}
