//! The peers that render: each is a process with the real package, which measures itself, so that the pipe costs nothing.
//!
//! What a peer needs is installed below the target folder, once, in the exact version that is named here. A peer that cannot be
//! had stays in every row, with the reason.

pub mod npm;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::command::{Result, run};
use crate::measure::Turns;
use crate::place;
use crate::python::{Packages, Script};

/// Names of columns.
pub const MINIJINJA: &str = "minijinja";
pub const JINJA2: &str = "Jinja2";
pub const MINIJINJA_PYTHON: &str = "minijinja (Python)";
pub const PROMPTY_PYTHON: &str = "Prompty (Python)";
pub const PROMPTY_RUST: &str = "Prompty (Rust)";
pub const DOTPROMPT: &str = "dotprompt";
pub const WINK: &str = "WINK";
pub const RYE: &str = "Rye";
pub const MCP_SDK: &str = "MCP SDK";
pub const PYTHON: &str = "Python";

/// Exact versions; that of the engine is the one that the workspace has pinned.
pub const MINIJINJA_VERSION: &str = "3.0.5";
pub const JINJA2_VERSION: &str = "3.1.6";
pub const PROMPTY_VERSION: &str = "2.1.0";
pub const DOTPROMPT_VERSION: &str = "1.1.2";

/// Jinja2 comes with Prompty, so they share an environment.
const PYTHON_PACKAGES: Packages = Packages {
    exact: &[("prompty", PROMPTY_VERSION), ("jinja2", JINJA2_VERSION), ("minijinja", MINIJINJA_VERSION)],
    also: &["maturin>=1.9,<2", "pyarrow"],
    minor: 13,
};

/// A peer that renders.
pub struct Renderer {
    /// Its column.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    script: Result<Script>,
}

impl Renderer {
    fn new(name: &'static str, version: &'static str, script: Result<Script>) -> Renderer {
        Renderer { name, version, script }
    }

    /// Asks for something; a peer that answers that it failed, has.
    pub fn ask(&mut self, request: &Json) -> Result<Json> {
        let answer = self.script.as_mut().map_err(|why| why.clone())?.ask(request)?;
        match answer["failed"].as_str() {
            Some(why) => Err(why.to_owned()),
            None => Ok(answer),
        }
    }

    /// Why it could not be started.
    pub fn started(&self) -> Result<()> {
        self.script.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Its turns at what it has under a name.
    pub fn turns<'a>(&'a mut self, what: &'a str) -> Turns<'a> {
        Box::new(move || {
            self.ask(&json!({"time": what}))?.as_f64().ok_or_else(|| "the peer measured nothing".to_owned())
        })
    }
}

/// All that render.
pub struct Renderers {
    pub jinja2: Renderer,
    pub prompty_python: Renderer,
    pub prompty_rust: Renderer,
    pub dotprompt: Renderer,
}

impl Renderers {
    /// Installs and starts them, which takes minutes the first time.
    pub fn start() -> Renderers {
        let (jinja2, prompty_python) = python_renderers();
        let rust = || Script::of(&mut Command::new(prompty_program()?));
        Renderers {
            jinja2,
            prompty_python,
            prompty_rust: Renderer::new(PROMPTY_RUST, PROMPTY_VERSION, rust()),
            dotprompt: dotprompt(),
        }
    }
}

/// Jinja2 and Prompty in Python.
pub fn python_renderers() -> (Renderer, Renderer) {
    let start = |text: &str| Script::start(&python()?, text);
    (
        Renderer::new(JINJA2, JINJA2_VERSION, start(include_str!("peers/jinja2.py"))),
        Renderer::new(PROMPTY_PYTHON, PROMPTY_VERSION, start(include_str!("peers/prompty.py"))),
    )
}

/// Dotprompt.
pub fn dotprompt() -> Renderer {
    let script = dotprompt_command().and_then(|mut command| Script::of(&mut command));
    Renderer::new(DOTPROMPT, DOTPROMPT_VERSION, script)
}

/// The interpreter that has Jinja2 and Prompty.
pub fn python() -> Result<PathBuf> {
    PYTHON_PACKAGES.environment()
}

/// Our own Python package, and the Python package of minijinja.
pub fn packages(built: &Result<Package>) -> (Renderer, Renderer) {
    let ours = || {
        let built = built.as_ref().map_err(Clone::clone)?;
        Script::start(&built.python, include_str!("peers/cuebook.py"))
    };
    let other = || Script::start(&python()?, include_str!("peers/minijinja.py"));
    (
        Renderer::new("cuebook", env!("CARGO_PKG_VERSION"), ours()),
        Renderer::new(MINIJINJA_PYTHON, MINIJINJA_VERSION, other()),
    )
}

/// Our own Python package, built as this program was, and installed.
pub struct Package {
    /// The interpreter that has it.
    pub python: PathBuf,
    /// The wheel.
    pub wheel: PathBuf,
}

impl Package {
    /// Builds and installs it.
    pub fn build() -> Result<Package> {
        let (python, target) = (python()?, place::target()?);
        let folder = place::profile_folder()?;
        let wheels = target.join("bench/wheels");
        let _ = fs::remove_dir_all(&wheels);
        let mut build = Command::new(&python);
        build.args([
            "-m",
            "maturin",
            "build",
            "--quiet",
            "--profile",
            if folder == "debug" { "dev" } else { &folder },
        ]);
        run(build
            .arg("--target-dir")
            .arg(&target)
            .arg("--out")
            .arg(&wheels)
            .current_dir(place::workspace().join("crates/cuebook-py")))?;
        let mut wheels = fs::read_dir(&wheels).map_err(|error| error.to_string())?.flatten();
        let wheel = wheels.next().ok_or("maturin built no wheel")?.path();
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall"]);
        run(install.arg(&wheel))?;
        Ok(Package { python, wheel })
    }
}

/// A program of Prompty's Rust crates. Its own `release` has the settings of our `dist`.
pub fn prompty_program() -> Result<PathBuf> {
    let folder = place::environment("prompty-rust", PROMPTY_VERSION)?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        // A file that is written again is built again.
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            Ok(())
        } else {
            fs::write(path, text)
        }
    };
    let manifest = include_str!("peers/prompty/manifest.toml").replace("VERSION", PROMPTY_VERSION);
    fs::create_dir_all(&folder)
        .and_then(|()| write("Cargo.toml", &manifest))
        .and_then(|()| write("program.rs", include_str!("peers/prompty/program.rs")))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let built = folder.join("target");
    let mut cargo = place::cargo();
    // What Cargo set for this program is not meant for that one.
    cargo.env_remove("CARGO_MANIFEST_DIR").current_dir(&folder);
    run(cargo.args(["build", "--quiet", "--target-dir"]).arg(&built).arg("--release"))?;
    Ok(built.join("release").join(format!("peer{}", std::env::consts::EXE_SUFFIX)))
}

/// Node with dotprompt.
pub fn dotprompt_command() -> Result<Command> {
    let folder = npm::environment("dotprompt", DOTPROMPT_VERSION, &[("dotprompt", DOTPROMPT_VERSION)])?;
    let script = folder.join("peer.mjs");
    fs::write(&script, include_str!("peers/dotprompt.mjs"))
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let mut command = Command::new("node");
    command.arg(script);
    Ok(command)
}
