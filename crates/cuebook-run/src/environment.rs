//! The environment of a tool: a few variables that every program needs, and what the elements of its chain declare.
//!
//! A chain declares variables in `env_config`: `env` gives names their values, or lists names that are passed on. Nothing else
//! of this process's environment reaches a tool. A tool that a model calls never gets a provider's key, the token of a server
//! or the password of a store, even if it declares them.
//!
//! Elements are taken from the primitive to the tool, and a later one wins, so a tool's own entries beat those of its runtime.
//! The project's `.env` and an interpreter that lies in the project (`.venv/bin/python`) count only if the user granted them
//! (`cuebook allow`), and for the project's own tools only. A `.env` gives values to names that a tool declares. It never
//! replaces what is set already, and what would have an interpreter or the system load code (`BASH_ENV`, `PYTHONPATH`,
//! `LD_PRELOAD`) is not taken from it even then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cuebook::Result;
use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::is_inside;
use serde_json::{Map, Value as Json};

use crate::anchor::{PathChange, ToolContext, bad_runtime};
use crate::caller::{Caller, MARK, PARENT, mark};
use crate::chain::Element;
use crate::config::{Piece, pieces, text_of};
use crate::fence::Fencing;
use crate::granted::{Granting, Runnable};
use crate::interpreter::Interpreter;
use crate::secrets::Secrets;
use crate::store::{self, STORE};
use crate::subprocess::{self, End, Job};
use crate::watch::Ignore;

/// The environment of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// The names that the chain asked for.
    pub(crate) keys: Vec<String>,
    /// What the project asks for and does not get.
    pub(crate) warnings: Vec<String>,
    /// Values of the project's `.env`, for names that the chain declares.
    from_file: BTreeMap<String, String>,
    closed: Closed,
}

/// What a tool does not get, even if it declares it.
#[derive(Clone, Default)]
pub(crate) struct Closed {
    names: Vec<String>,
    secrets: Option<Secrets>,
}

impl Closed {
    /// What no tool gets that a model calls: variables with these names, and any that hold one of the secrets.
    pub(crate) fn to_models(names: &[String], secrets: Secrets) -> Closed {
        let names = names.iter().cloned().chain(secrets.names().map(str::to_owned)).chain(with_password());
        Closed { names: names.collect(), secrets: Some(secrets) }
    }

    fn keeps(&self, name: &str, value: &str) -> bool {
        self.names.iter().any(|closed| closed == name)
            || self.secrets.as_ref().is_some_and(|secrets| secrets.is_in(value))
    }
}

impl std::fmt::Debug for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closed").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Variables that every tool gets: where programs and folders are, who the user is, and how text is shown.
const USUAL: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR"];

/// How long a command that looks for an interpreter may take.
const LOOKING: Duration = Duration::from_secs(5);

impl Environment {
    /// Resolves what a chain asks for.
    pub(crate) fn resolve(
        spaces: &Spaces,
        chain: &[Element],
        tool_context: &ToolContext,
        closed: Closed,
        fence: Option<&Fencing>,
    ) -> Result<Environment> {
        let project = spaces.project();
        let mut granting = Granting::new(spaces);
        let mut environment = Environment { variables: usual(), closed, ..Environment::default() };
        for name in &tool_context.passed_on {
            if let Ok(value) = std::env::var(name) {
                environment.set(name, value);
            }
        }
        let own = chain.first().is_some_and(|tool| tool.located.space == SpaceKind::Project);
        if own {
            let text = granting.env_file()?.unwrap_or_default();
            for (name, value) in dot_env(&text) {
                if !loads_code(&name) {
                    environment.from_file.insert(name, value);
                }
            }
        }
        for element in chain.iter().rev() {
            let wanted = &element.tool.env_config;
            if let Some(interpreter) = wanted.get("interpreter") {
                let Json::Object(interpreter) = interpreter else {
                    let hint = "set `type` to local_binary, system_binary or command";
                    return Err(bad_runtime(Some(element), "`interpreter` must be a map".into(), hint));
                };
                let looking = InterpreterSearch { tool_context, fence, granting: &mut granting };
                environment.interpreter(interpreter, element, (project, own), looking)?;
            }
            environment.declare(wanted.get("env"), element, tool_context)?;
            environment.extend_paths(tool_context.paths(wanted.get("paths")));
        }
        environment.extend_paths(tool_context.env_paths()?);
        environment.warnings = granting.warnings;
        Ok(environment)
    }

    /// Takes what an element declares in `env`: names and their values, or names that are passed on if they are set.
    fn declare(&mut self, env: Option<&Json>, element: &Element, tool_context: &ToolContext) -> Result<()> {
        match env {
            None | Some(Json::Null) => {}
            Some(Json::Object(entries)) => {
                for (name, value) in entries {
                    let value = self.expand(&text_of(value), tool_context);
                    self.set(name, value);
                }
            }
            Some(Json::Array(names)) if names.iter().all(Json::is_string) => {
                for name in names.iter().filter_map(Json::as_str) {
                    if let Some(value) = self.get(name) {
                        self.set(name, value);
                    }
                }
            }
            Some(_) => {
                let hint = "write names with values, or a list of names to pass on";
                return Err(bad_runtime(
                    Some(element),
                    "`env` must be a map or a list of names".into(),
                    hint,
                ));
            }
        }
        Ok(())
    }

    /// Puts entries in front of and behind those of path variables, each once. None of them is empty: that would stand for the
    /// folder that a program is started in.
    fn extend_paths(&mut self, changes: Vec<PathChange>) {
        for (name, front, behind) in changes {
            let now = self.variables.get(&name).cloned().unwrap_or_default();
            let mut parts: Vec<String> = Vec::new();
            let there = now.split(':').filter(|part| !part.is_empty()).map(str::to_owned);
            for part in front.into_iter().chain(there).chain(behind) {
                if !part.is_empty() && !parts.contains(&part) {
                    parts.push(part);
                }
            }
            self.set(&name, parts.join(":"));
        }
    }

    fn set(&mut self, name: &str, value: String) {
        if self.closed.keeps(name, &value) {
            return;
        }
        self.variables.insert(name.to_owned(), value);
        if !self.keys.iter().any(|known| known == name) {
            self.keys.push(name.to_owned());
        }
    }

    /// The value of a variable that a signed file names.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name).cloned();
        let value = value.or_else(|| std::env::var(name).ok()).or_else(|| self.from_file.get(name).cloned());
        value.filter(|value| !self.closed.keeps(name, value))
    }

    /// Tells the tool which thread it runs for.
    pub(crate) fn belong_to(&mut self, within: &Caller<'_>) {
        if let Some(thread) = within.thread {
            self.variables.insert(PARENT.to_owned(), thread.to_string());
        }
        if let Some(holder) = within.holder {
            self.variables.insert(MARK.to_owned(), mark(holder, within.call));
        }
    }

    /// The folders of the fence in the place of the user's.
    pub(crate) fn move_inside(&mut self) {
        for name in ["HOME", "TMPDIR"] {
            self.variables.insert(name.to_owned(), "/tmp".to_owned());
        }
        for name in OWN {
            self.variables.remove(name);
        }
    }

    /// The mark of the call, if it is one of a thread.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.variables.get(MARK).map(String::as_str)
    }

    /// All variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter()
    }

    /// Whether a variable is kept from the tool.
    pub(crate) fn keeps(&self, name: &str, value: &str) -> bool {
        self.closed.keeps(name, value)
    }

    /// `{name}` of what is known, and `${VAR}` of what is set so far, in one pass.
    fn expand(&self, template: &str, tool_context: &ToolContext) -> String {
        let mut text = String::new();
        for piece in pieces(template) {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Name { name, written } => match tool_context.context.get(name) {
                    Some(value) => text.push_str(&text_of(value)),
                    None => text.push_str(written),
                },
                Piece::Variable { name, default } => {
                    let value = self.get(name).filter(|value| !value.is_empty());
                    text.push_str(&value.unwrap_or_else(|| default.unwrap_or_default().to_owned()));
                }
            }
        }
        text
    }

    fn interpreter(
        &mut self,
        wanted: &Map<String, Json>,
        element: &Element,
        (project, own): (&Path, bool),
        InterpreterSearch { tool_context, fence, granting }: InterpreterSearch<'_, '_>,
    ) -> Result<()> {
        let text = |name: &str| wanted.get(name).and_then(Json::as_str);
        let texts = |name: &str| -> Vec<&str> {
            wanted.get(name).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
        };
        let Some(var) = text("var") else {
            let hint = "name the variable for the interpreter's path";
            return Err(bad_runtime(Some(element), "`interpreter` has no `var`".into(), hint));
        };
        // The setting is a decision.
        if std::env::var_os(var).is_some_and(|value| !value.is_empty()) {
            let chosen = std::env::var(var).unwrap_or_default();
            self.set(var, chosen);
            return Ok(());
        }
        let names: Vec<&str> = text("binary").into_iter().chain(texts("candidates")).collect();
        let found: Option<String> = match text("type") {
            Some("local_binary") if own => {
                let roots = texts("search_roots");
                let roots =
                    roots.into_iter().map(|root| tool_context.original(Path::new(&tool_context.text(root))));
                let roots: Vec<PathBuf> = roots.chain([project.to_owned()]).collect();
                let folders = roots
                    .iter()
                    .flat_map(|root| texts("search_paths").into_iter().map(|path| root.join(path)));
                let mut files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
                files.find(|file| file.is_file()).map(|file| file.to_string_lossy().into_owned())
            }
            Some("local_binary") => None,
            Some("system_binary") => names.iter().find_map(|name| which(name, project)),
            Some("command") => {
                let command = text("resolve_cmd").map(|command| tool_context.text(command));
                let job = match command {
                    Some(command) => looking_job(&command, project, tool_context, fence, granting)?,
                    None => None,
                };
                job.and_then(|job| first_line(&job))
            }
            other => {
                let message = format!("invalid `interpreter.type`: {}", other.unwrap_or("missing"));
                let hint = "write local_binary, system_binary or command";
                return Err(bad_runtime(Some(element), message, hint));
            }
        };
        let path = self.get("PATH");
        let found = match found {
            Some(program)
                if granting.allows(&Interpreter::find(&program, project, project, path.as_deref()))? =>
            {
                Some(program)
            }
            _ => None,
        };
        // A name would be looked for in every folder of the PATH, also in those of the project.
        let fallback =
            || text("fallback").map(|name| which(name, project).unwrap_or_else(|| name.to_owned()));
        if let Some(value) = found.or_else(fallback) {
            self.set(var, value);
        }
        Ok(())
    }
}

/// Cuebook's own variables, for a tool that starts Cuebook itself: where threads and the user's space are.
const OWN: [&str; 2] = [STORE, "USER_SPACE"];

/// The variables that every tool gets.
fn usual() -> BTreeMap<String, String> {
    let is_usual = |name: &str| USUAL.contains(&name) || OWN.contains(&name) || name.starts_with("LC_");
    let named = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| is_usual(name))?;
        Some((name, value.into_string().ok()?))
    });
    let mut variables: BTreeMap<String, String> = named.collect();
    for name in with_password() {
        variables.remove(&name);
    }
    variables
}

/// The address of the store, if it holds a password.
fn with_password() -> impl Iterator<Item = String> {
    let holds = |name: &&str| std::env::var(name).is_ok_and(|place| store::password(&place).is_some());
    [STORE].into_iter().filter(holds).map(str::to_owned)
}

/// Where a program lies in `PATH`. Folders that are relative or lie in the project are skipped.
pub(crate) fn which(name: &str, project: &Path) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(name));
    let found = files.find(|file| file.is_file() && !is_inside(project, file))?;
    Some(found.to_string_lossy().into_owned())
}

/// Whether a variable makes programs load unsigned code.
fn loads_code(name: &str) -> bool {
    const STARTS: [&str; 11] =
        ["LD_", "DYLD_", "PYTHON", "NODE_", "PERL", "RUBY", "BASH_", "GIT_", "OPENSSL_", "SSL_", "GLIBC_"];
    const NAMES: [&str; 12] = [
        "JAVA_TOOL_OPTIONS",
        "MALLOC_CONF",
        "PATH",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "GCONV_PATH",
        "ZDOTDIR",
        "LUA_INIT",
    ];
    // A proxy sees and changes what a program loads from the network.
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
    is_proxy || NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

/// What looking for an interpreter needs to know.
struct InterpreterSearch<'l, 's> {
    tool_context: &'l ToolContext,
    fence: Option<&'l Fencing>,
    granting: &'l mut Granting<'s>,
}

/// A command that looks for an interpreter; none if it is a program of the project that the user did not grant. Where a model
/// calls, it runs in the sandbox like the tool.
fn looking_job(
    command: &str,
    project: &Path,
    tool_context: &ToolContext,
    fence: Option<&Fencing>,
    granting: &mut Granting<'_>,
) -> Result<Option<Job>> {
    let mut words = command.split_whitespace().map(str::to_owned);
    let Some(program) = words.next() else { return Ok(None) };
    let env = usual();
    let found = Interpreter::find(&program, project, project, env.get("PATH").map(String::as_str));
    let file = match granting.runnable(&found)? {
        None | Some(Runnable::Missing) => return Ok(None),
        Some(Runnable::File(file)) => file,
        Some(Runnable::Copy(name, bytes)) => tool_context.call_folder.add_program(&name, bytes)?,
    };
    Ok(Some(Job {
        program,
        file: Some(file),
        args: words.collect(),
        env: env.into_iter().collect(),
        fence: fence.cloned(),
        cwd: project.to_owned(),
        input: Vec::new(),
        is_conversation: false,
        timeout: LOOKING,
        grace: Duration::from_millis(100),
        most: 64 << 10,
    }))
}

/// The first line that a command prints.
fn first_line(job: &Job) -> Option<String> {
    let finished = subprocess::run(job, &Ignore);
    let End::Exited(0) = finished.end else { return None };
    let output = String::from_utf8_lossy(&finished.stdout.bytes);
    output.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// The entries of a project's `.env`: `NAME=value`, perhaps with `export` in front and quotes around the value.
fn dot_env(text: &str) -> Vec<(String, String)> {
    let entry = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        let usable = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        (usable && !line.starts_with('#') && !value.contains('\0'))
            .then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_not_loaded_from_an_unsigned_file() {
        for name in [
            "OPENSSL_CONF",
            "HTTPS_PROXY",
            "all_proxy",
            "BASH_ENV",
            "LD_PRELOAD",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PATH",
            "ENV",
            "PERL5LIB",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in ["API_KEY", "ENVIRONMENT", "LOG_LEVEL", "PATHS", "DATABASE_URL"] {
            assert!(!loads_code(name), "{name}");
        }
    }

    #[test]
    fn a_process_that_a_command_leaves_running_is_not_waited_for() {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("look.sh"), "sleep 60 & echo /bin/one; echo two").unwrap();
        let job = |program: &str, args: &[&str]| Job {
            program: program.to_owned(),
            file: Interpreter::find(program, project.path(), project.path(), None).file,
            args: args.iter().map(|arg| arg.to_string()).collect(),
            env: usual().into_iter().collect(),
            fence: None,
            cwd: project.path().to_owned(),
            input: Vec::new(),
            is_conversation: false,
            timeout: LOOKING,
            grace: Duration::from_millis(100),
            most: 64 << 10,
        };
        let started = std::time::Instant::now();
        assert_eq!(first_line(&job("sh", &["look.sh"])).as_deref(), Some("/bin/one"));
        assert!(started.elapsed() < Duration::from_secs(4));
        assert_eq!(first_line(&job("false", &[])), None);
        assert_eq!(first_line(&job("no-such-program", &[])), None);
    }

    #[test]
    fn a_dot_env_is_read_with_quotes_and_comments() {
        let text = "# c\nA=1\nexport B = \"two words\"\nC='x'\nnot a line\nD=\n =x\nE=a=b\n";
        let entries = dot_env(text);
        let shown: Vec<String> = entries.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["A=1", "B=two words", "C=x", "D=", "E=a=b"]);
    }
}
