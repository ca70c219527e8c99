//! Calls functions of Python scripts for the engine.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use cuebook::error::Result;
use cuebook::hooks::{Answer, Call, Changes, HookContext, Refusal, Script, ScriptEngine, Values};
use cuebook::items::Spaces;
use cuebook::library::HooksConfig;

use crate::errors::{self, FailedCall, NotStarted};
use crate::not_json::NotJson;
use crate::pool::{Key, Pool};
use crate::protocol::{self, Arguments, Fault, HostAnswer, Reply, Request, Sent};
use crate::python::Interpreter;
use crate::sandbox::{self, Launcher, Profile, Protection, Report};
use crate::worker::{CallFailure, Worker};

/// Runs the rest of the worker, under a name that is not shown in tracebacks.
const STUB: &str = "import sys;exec(compile(sys.argv[1],'<cuebook>','exec'),{'__name__':'cuebook'})";

/// What a worker runs. The first is compiled at once and the others when they are needed.
const TEXTS: [&str; 4] = [
    include_str!("python/bootstrap.py"),
    include_str!("python/context.py"),
    include_str!("python/imports.py"),
    include_str!("python/slow.py"),
];

/// Bytes that a reply may have beyond what was sent and what the limit allows.
const SLACK: usize = 64 << 10;

/// CPU time of a worker beyond what its calls may take.
const CPU: Duration = Duration::from_secs(60);

/// Runs hooks and variable providers that are written in Python, each in a worker process of its own that is kept warm.
#[derive(Debug)]
pub struct PythonHooks {
    launcher: Launcher,
    config: HooksConfig,
    spaces: Spaces,
    interpreter: Mutex<Option<Arc<Interpreter>>>,
    pool: Pool<Key, Worker>,
    report: Mutex<Option<Report>>,
    without: Vec<Protection>,
}

impl PythonHooks {
    /// Runs hooks of a project with these settings. A relative path to Python is one below the project. Nothing is started yet.
    pub fn new(launcher: Launcher, config: HooksConfig, spaces: Spaces) -> PythonHooks {
        let pool = Pool::new(config.workers, Duration::from_secs(config.idle_seconds));
        PythonHooks {
            launcher,
            config,
            spaces,
            interpreter: Mutex::new(None),
            pool,
            report: Mutex::new(None),
            without: Vec::new(),
        }
    }

    /// Leaves protections out, as if this system did not offer them.
    pub fn without(mut self, protections: impl IntoIterator<Item = Protection>) -> PythonHooks {
        self.without.extend(protections);
        self
    }

    /// What the fence of the last worker that was started is made of, if one was.
    pub fn report(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The Python that runs hooks.
    pub fn interpreter(&self) -> Result<Arc<Interpreter>> {
        let mut known = self.interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let found = Interpreter::granted(&self.config, &self.spaces)?;
        Ok(known.insert(Arc::new(found)).clone())
    }

    /// How many workers wait for a call.
    pub fn idle_workers(&self) -> usize {
        self.pool.waiting()
    }

    fn start(&self, script: &Script, key: &Key) -> Result<Worker> {
        let interpreter = self.interpreter()?;
        let profile = self.profile(&interpreter, script, key);
        let failed = |why| errors::not_started(&interpreter.program, &why);
        let sandboxed =
            sandbox::spawn(&self.launcher, &profile).map_err(|error| failed(NotStarted::Launch(error)))?;
        let report = sandboxed.report.clone();
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
        // A project's own code may be a clone's: it needs the fence as much as that of a pack.
        if report.level() < self.config.sandbox {
            return Err(errors::unprotected(script.pack.as_deref(), &report, self.config.sandbox));
        }
        Worker::new(sandboxed).map_err(|(broken, printed)| failed(NotStarted::CallFailure(broken, printed)))
    }

    fn profile(&self, interpreter: &Interpreter, script: &Script, key: &Key) -> Profile {
        let mut readable = interpreter.readable.clone();
        readable.extend([key.workspace.clone(), script.folder.clone()]);
        readable.extend(self.config.readable());
        readable.extend(script.path.parent().map(Path::to_owned));
        readable.sort();
        readable.dedup();
        let options = ["-I", "-S", "-B", "-X", "utf8", "-c", STUB];
        Profile {
            program: interpreter.program.clone(),
            arguments: options.into_iter().chain(TEXTS).map(OsString::from).collect(),
            environment: environment(&interpreter.program),
            readable,
            folder: key.workspace.clone(),
            memory: self.config.memory,
            total_memory: self.config.memory,
            processes: self.config.processes,
            open_files: self.config.open_files,
            temp_size: self.config.temp_size,
            cpu: most_cpu(key.time),
            without: self.without.clone(),
            tool: None,
        }
    }

    /// Makes the call with a worker that waits, or with a new one.
    fn call(&self, script: &Script, call: &Call<'_>, context: &HookContext<'_>, key: Key) -> Result<Reply> {
        let failed_call = failed_call(script, call, context);
        // Whether only a worker that has never been called will do.
        let mut fresh = false;
        loop {
            let mut waiting = std::iter::from_fn(|| if fresh { None } else { self.pool.take(&key) });
            let mut worker = match waiting.find(Worker::is_waiting) {
                Some(worker) => worker,
                None => {
                    fresh = true;
                    self.start(script, &key)?
                }
            };
            let deadline = context.deadline();
            let id = protocol::number();
            let request = request(script, call, context, &id, worker.loaded);
            let Some(request) = request else { return Err(failed_call.too_large("more than can be sent")) };
            let most = request.len() + allowance(context);
            let received = worker
                .call(&request, &id, (most, deadline), |function, reply| answer(context, function, reply));
            // What an earlier call has done to a worker must not be an error of this one. As long as nothing was asked, only
            // the worker knows that it was called, and it is gone.
            if !fresh
                && !worker.asked
                && matches!(received, Err(CallFailure::Ended(_) | CallFailure::Rubbish(_)))
            {
                fresh = true;
                continue;
            }
            if let Some(printed) = worker.printed() {
                context.printed(call.function(), &printed);
            }
            match received {
                Err(broken) => return Err(failed_call.broken(&broken)),
                Ok(reply) => {
                    worker.loaded = worker.loaded || was_loaded(&reply);
                    let usable = !reply.over && !is_out_of_memory(&reply);
                    if usable && !is_worn(&worker, key.time) {
                        self.pool.put(key, worker);
                    }
                    return Ok(reply);
                }
            }
        }
    }
}

impl ScriptEngine for PythonHooks {
    fn run(&self, script: &Script, call: Call<'_>, context: &HookContext<'_>) -> Result<Answer> {
        let key = Key {
            pack: script.pack.clone(),
            script: script.path.clone(),
            folder: script.folder.clone(),
            fingerprint: script.fingerprint.clone(),
            workspace: context.workspace.to_owned(),
            time: context.limits.max_execution_time,
        };
        let reply = self.call(script, &call, context, key)?;
        let failed_call = failed_call(script, &call, context);
        if let Some(fault) = &reply.error {
            return Err(failed_call.fault(fault));
        }
        if let Some(not_json) = reply.not_json {
            return Err(failed_call.fault(&Fault::NotJson(in_words(not_json, call.function()))));
        }
        let rubbish = || failed_call.broken(&CallFailure::Rubbish("a reply of the wrong kind"));
        match (call, reply) {
            (Call::PostRender { .. }, Reply { text: Some(text), .. }) => Ok(Answer::Text(text)),
            (Call::PreRender { variables }, Reply { values: Some(values), kept, .. }) => {
                changes(variables, values, &kept).map(Answer::Changes).ok_or_else(rubbish)
            }
            (Call::Provide, Reply { values: Some(values), .. }) => Ok(Answer::Values(values)),
            _ => Err(rubbish()),
        }
    }
}

fn failed_call<'c>(script: &'c Script, call: &Call<'_>, context: &'c HookContext<'_>) -> FailedCall<'c> {
    FailedCall {
        script,
        function: call.function(),
        subject: &context.subject,
        limits: &context.limits,
        permissions: &context.permissions,
    }
}

/// The frame of a call.
fn request(
    script: &Script,
    call: &Call<'_>,
    context: &HookContext<'_>,
    id: &str,
    loaded: bool,
) -> Option<Vec<u8>> {
    let granted = context.permissions;
    let functions = [
        ("read_file", granted.read_file),
        ("http_request", granted.http_request),
        ("llm_call", granted.llm_call),
        ("render_template", true),
        ("get_variable", true),
    ];
    let functions: Vec<&'static str> =
        functions.into_iter().filter_map(|(name, granted)| granted.then_some(name)).collect();
    let request = Request {
        id,
        function: call.function(),
        name: &module_name(&script.path),
        script: (!loaded).then(|| {
            let mut folders: Vec<Cow<'_, str>> =
                script.path.parent().map(Path::to_string_lossy).into_iter().collect();
            if !folders.contains(&script.folder.to_string_lossy()) {
                folders.push(script.folder.to_string_lossy());
            }
            Sent {
                path: script.path.to_string_lossy(),
                text: script.source.text(),
                folders,
                modules: script.modules.as_ref(),
            }
        }),
        arguments: match call {
            Call::PreRender { variables } => Arguments::Variables(variables),
            Call::PostRender { text, variables } => Arguments::Text(text, variables),
            Call::Provide => Arguments::Nothing,
        },
        workspace: context.workspace.to_string_lossy(),
        session: context.session,
        functions: &functions,
        state: context.session_state().ok(),
        most: allowance(context),
    };
    request.frame()
}

/// The name of a script's module: nothing that a module beside it or of the library could have.
fn module_name(path: &Path) -> Cow<'static, str> {
    match path.file_stem().map(|stem| stem.to_string_lossy()) {
        Some(stem) if stem != "prompt" => format!("cuebook_{stem}").into(),
        _ => "prompt".into(),
    }
}

/// Answers a question of a worker.
fn answer(context: &HookContext<'_>, function: &str, reply: &Reply) -> Vec<u8> {
    let answered = match &reply.not_json {
        None => context.ask(function, &reply.arguments),
        Some(NotJson { path, kind, .. }) => {
            let path = path.strip_prefix("[\"arguments\"]").unwrap_or(path);
            let message = format!("{function}: JSON cannot represent arguments{path} of type {kind}");
            Err(Refusal::new("TypeError", message))
        }
    };
    let frame = match answered {
        Ok(value) => HostAnswer::Value { value }.frame(),
        Err(refusal) => HostAnswer::from(&refusal).frame(),
    };
    let too_long = HostAnswer::Raise { raise: "OverflowError", message: "the answer is too long" };
    frame.or_else(|| too_long.frame()).unwrap_or_default()
}

/// The same with a path as one would write it in Python.
fn in_words(not_json: NotJson, function: &str) -> NotJson {
    let returned = if function == "provide" { "provide()" } else { "variables" };
    let path = match not_json.path.strip_prefix("[\"values\"]") {
        Some(path) => format!("{returned}{path}"),
        None => "text".to_owned(),
    };
    NotJson { path, ..not_json }
}

/// Bytes that a reply may have beyond those that were sent: a character takes at most four, and a short value a few more.
fn allowance(context: &HookContext<'_>) -> usize {
    context.limits.max_output_size.saturating_mul(8).saturating_add(SLACK).min(u32::MAX as usize / 2)
}

/// What `pre_render` did: it returned values that it changed or added, and kept others. `None` if a worker claims to have kept
/// what it was not sent.
fn changes(sent: &Values, set: Values, kept: &[String]) -> Option<Changes> {
    if kept.iter().any(|name| !sent.contains_key(name) || set.contains_key(name)) {
        return None;
    }
    let kept: HashSet<&str> = kept.iter().map(String::as_str).collect();
    let is_gone = |name: &&String| !kept.contains(name.as_str()) && !set.contains_key(name.as_str());
    let removed = sent.keys().filter(is_gone).cloned().collect();
    Some(Changes { set, removed })
}

/// Whether the script of a worker has been loaded, from what it replied.
fn was_loaded(reply: &Reply) -> bool {
    !matches!(&reply.error, Some(protocol::Fault::Raised(raised)) if raised.stage == "load")
}

/// Whether a worker reached its limit of memory, so that it is unknown what in it still works.
fn is_out_of_memory(reply: &Reply) -> bool {
    let Some(protocol::Fault::Raised(raised)) = &reply.error else { return false };
    raised.bases.iter().any(|base| base == "MemoryError")
}

/// CPU time of a worker. It must be enough for a call on all cores at any time; `is_worn` sees to that.
fn most_cpu(time: Duration) -> Duration {
    time.saturating_mul(2 * cores()).saturating_add(CPU)
}

/// Whether the next call could reach the limit of CPU time.
fn is_worn(worker: &Worker, time: Duration) -> bool {
    worker.busy.saturating_add(time).saturating_mul(cores()) > most_cpu(time)
}

/// How many threads can run at once. Asking the system takes longer than a call.
fn cores() -> u32 {
    static CORES: LazyLock<u32> = LazyLock::new(|| {
        available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
    });
    *CORES
}

/// The whole environment of a worker.
fn environment(python: &Path) -> Vec<(OsString, OsString)> {
    let mut path = python.parent().unwrap_or(Path::new("/usr/bin")).as_os_str().to_owned();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    let mut environment: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
    let fixed = [
        ("LANG", "C.UTF-8"),
        ("HOME", "/tmp"),
        ("TMPDIR", "/tmp"),
        // The workspace may belong to another user than the worker's, and git checks that.
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
        // It is read-only, and no person could answer a question.
        ("GIT_OPTIONAL_LOCKS", "0"),
        // Settings that exist and cannot be read would stop it.
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // The workspace may be a subfolder of a repository that is given as well, and each is mounted by itself.
        ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
    ];
    environment.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    environment.extend(std::env::var_os("TZ").map(|zone| ("TZ".into(), zone)));
    environment
}
