//! A script in a temporary folder, and a user who answers its questions.

#![allow(dead_code, missing_docs)] // Each test binary uses a part of it.

#[path = "../../../skip.rs"]
pub mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuebook::error::{Error, Result};
use cuebook::hooks::{
    Answer, Call, HookContext, Host, HttpRequest, HttpResponse, ModelRequest, Refusal, Script, ScriptEngine,
    Subject, Values,
};
use cuebook::items::Spaces;
use cuebook::library::{HooksConfig, SandboxLevel};
use cuebook::prompt::{Limits, Permissions};
use cuebook::source::Source;
use cuebook_hooks::sandbox::Launcher;
use cuebook_hooks::{Interpreter, PythonHooks};
use serde_json::{Value as Json, json};

/// A script and everything that is needed to call its functions.
pub struct Bench {
    folder: tempfile::TempDir,
    pub hooks: Arc<PythonHooks>,
    pub script: Script,
    pub subject: Subject,
    pub permissions: Permissions,
    pub limits: Limits,
    pub session: Values,
    pub state: Values,
    pub host: FakeHost,
}

/// Answers what a hook asks, and remembers what it printed.
#[derive(Default)]
pub struct FakeHost {
    pub printed: Mutex<Vec<(String, String)>>,
    pub requests: Mutex<Vec<HttpRequest>>,
    pub prompts: Mutex<Vec<ModelRequest>>,
    pub slowness: Duration,
    /// How many hooks have asked for the template `meeting`, which is there only when four have.
    pub meeting: AtomicUsize,
}

impl Host for FakeHost {
    fn read_file(&self, path: &str) -> Result<String, Refusal> {
        match path {
            "missing" => Err(Refusal::new("FileNotFoundError", "read_file: missing does not exist")),
            "surprise" => Err(Refusal::new("NoSuchException", "odd")),
            path => Ok(format!("text of {path}")),
        }
    }

    fn http_request(&self, request: HttpRequest) -> Result<HttpResponse, Refusal> {
        let url = request.url.clone();
        self.requests.lock().unwrap().push(request);
        Ok(HttpResponse { status: 200, url, headers: vec![("x".into(), "y".into())], body: "hello".into() })
    }

    fn llm_call(&self, request: ModelRequest) -> Result<String, Refusal> {
        let answer = format!("answer to {}", request.prompt);
        self.prompts.lock().unwrap().push(request);
        Ok(answer)
    }

    fn render_template(&self, name: &str, values: Option<&Values>) -> Result<String, Refusal> {
        std::thread::sleep(self.slowness);
        if name == "meeting" {
            self.meeting.fetch_add(1, Ordering::SeqCst);
            while self.meeting.load(Ordering::SeqCst) < 4 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(format!(
            "<{name} {}>",
            values.map_or("none".into(), |values| Json::Object(values.clone()).to_string())
        ))
    }

    fn get_variable(&self, path: &str, _: std::time::Instant) -> Result<Json, Refusal> {
        Ok(json!({"path": path}))
    }

    fn printed(&self, subject: &Subject, function: &str, text: &str) {
        assert!(!subject.to_string().is_empty());
        self.printed.lock().unwrap().push((function.into(), text.into()));
    }
}

/// The Python that tests run with; `None`, and a word about it, if it is missing.
pub fn python() -> Option<String> {
    let found = Interpreter::find("python3", Path::new("/nowhere"), std::env::var_os("PATH").as_deref());
    match found {
        Ok(found) => Some(found.program.to_str()?.to_owned()),
        Err(error) => {
            skip::missing_peer(error);
            None
        }
    }
}

pub fn launcher() -> Launcher {
    Launcher::at(env!("CARGO_BIN_EXE_cuebook-launcher"))
}

/// The spaces of an empty project.
pub fn spaces() -> Spaces {
    Spaces::new(Path::new("/nowhere"), None)
}

pub fn config(python: &str) -> HooksConfig {
    HooksConfig { python: python.into(), sandbox: SandboxLevel::None, ..HooksConfig::default() }
}

impl Bench {
    /// A prompt `p` with this script, if there is a Python to run it.
    pub fn new(text: &str) -> Option<Bench> {
        let python = python()?;
        Some(Bench::with_config(text, config(&python)))
    }

    pub fn with_config(text: &str, config: HooksConfig) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("prompts/p")).unwrap();
        fs::create_dir_all(folder.path().join("workspace")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = root.join("prompts/p/prompt.py");
        fs::write(&path, text).unwrap();
        let hooks = PythonHooks::new(launcher(), config, Spaces::new(&root, None));
        let script = Script {
            source: Source::new("prompts/p/prompt.py", text),
            path,
            folder: root.join("prompts/p"),
            pack: None,
            modules: None,
            mentions_system: true,
            mentions_git: false,
            fingerprint: "1".into(),
        };
        Bench {
            folder,
            hooks: Arc::new(hooks),
            script,
            subject: Subject::Prompt { id: "p".into() },
            permissions: Permissions::default(),
            limits: Limits::default(),
            session: Values::new(),
            state: Values::new(),
            host: FakeHost::default(),
        }
    }

    pub fn granting(mut self, permissions: &[&str]) -> Bench {
        for name in permissions {
            assert!(self.permissions.set(name, true));
        }
        self
    }

    pub fn time(mut self, milliseconds: u64) -> Bench {
        self.limits.max_execution_time = Duration::from_millis(milliseconds);
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    /// A file below the folder of everything; the prompt lies in `prompts/p` and the workspace in `workspace`.
    pub fn file(self, path: &str, text: &str) -> Bench {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn run(&self, call: Call<'_>) -> Result<Answer> {
        let workspace = self.path("workspace");
        let settings = HooksConfig::default();
        let context = HookContext::new(
            self.subject.clone(),
            (self.permissions, self.limits),
            (&workspace, &settings),
            (&self.session, &self.state),
            &self.host,
        );
        self.hooks.run(&self.script, call, &context)
    }

    pub fn try_pre_render(&self, variables: Json) -> Result<Json> {
        let mut variables = values(variables);
        match self.run(Call::PreRender { variables: &variables })? {
            Answer::Changes(changes) => {
                variables.retain(|name, _| !changes.removed.contains(name));
                variables.extend(changes.set);
                Ok(Json::Object(variables))
            }
            answer => panic!("{answer:?}"),
        }
    }

    pub fn try_post_render(&self, text: &str) -> Result<String> {
        match self.run(Call::PostRender { text, variables: &values(json!({"v": 1})) })? {
            Answer::Text(text) => Ok(text),
            answer => panic!("{answer:?}"),
        }
    }

    pub fn try_provide(&self) -> Result<Json> {
        match self.run(Call::Provide)? {
            Answer::Values(values) => Ok(Json::Object(values)),
            answer => panic!("{answer:?}"),
        }
    }

    #[track_caller]
    pub fn pre_render(&self, variables: Json) -> Json {
        self.try_pre_render(variables).unwrap_or_else(|error| panic!("{}", explain(&error)))
    }

    #[track_caller]
    pub fn post_render(&self, text: &str) -> String {
        self.try_post_render(text).unwrap_or_else(|error| panic!("{}", explain(&error)))
    }

    #[track_caller]
    pub fn provide(&self) -> Json {
        self.try_provide().unwrap_or_else(|error| panic!("{}", explain(&error)))
    }

    /// The error of `pre_render`.
    #[track_caller]
    pub fn error(&self) -> Error {
        match self.try_pre_render(json!({"a": 1})) {
            Ok(values) => panic!("returned {values}"),
            Err(error) => error,
        }
    }

    /// Code and message of the error of `pre_render`.
    #[track_caller]
    pub fn message(&self) -> String {
        let error = self.error();
        format!("{}: {}", error.code(), error.diagnostic().message)
    }

    pub fn printed(&self) -> String {
        self.host.printed.lock().unwrap().drain(..).map(|(_, text)| text).collect()
    }
}

pub fn explain(error: &Error) -> String {
    cuebook::error::report(error.diagnostics(), false)
}

pub fn hint(error: &Error) -> &str {
    error.diagnostic().hint.as_deref().unwrap_or_default()
}

pub fn values(json: Json) -> Values {
    json.as_object().unwrap().clone()
}
