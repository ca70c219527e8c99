//! Peers in TypeScript: packages of npm, in exact versions, and our own, built as this program was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use super::{DOTPROMPT, DOTPROMPT_VERSION, Renderer};
use crate::command::{Result, run};
use crate::place;
use crate::python::Script;

/// Names of columns.
pub const NUNJUCKS: &str = "Nunjucks";
pub const HANDLEBARS: &str = "Handlebars";
pub const PROMPTY_TYPESCRIPT: &str = "Prompty (TypeScript)";

const NUNJUCKS_VERSION: &str = "3.2.4";
const HANDLEBARS_VERSION: &str = "4.7.10";
const PROMPTY_PACKAGE: &str = "@prompty/core";
const PROMPTY_VERSION: &str = "2.0.0-beta.5";

/// What is installed next to our package: the peers, the compiler that builds it, and a library with tables.
const PACKAGES: &[(&str, &str)] = &[
    ("nunjucks", NUNJUCKS_VERSION),
    ("handlebars", HANDLEBARS_VERSION),
    ("dotprompt", DOTPROMPT_VERSION),
    ("apache-arrow", "21.0.0"),
    ("typescript", "7.0.2"),
    ("@types/node", "24.19.2"),
];

/// Our npm package, and those of others that render.
pub struct NpmRenderers {
    pub ours: Renderer,
    pub nunjucks: Renderer,
    pub handlebars: Renderer,
    pub dotprompt: Renderer,
    pub prompty: Renderer,
}

impl NpmRenderers {
    /// Installs and starts them.
    pub fn start() -> NpmRenderers {
        let folder = environment("npm-peers", env!("CARGO_PKG_VERSION"), PACKAGES);
        let start = |name: &str| peer(folder.as_ref().map_err(Clone::clone)?, name);
        let ours = || build(folder.as_ref().map_err(Clone::clone)?).and_then(|()| start("cuebook"));
        let prompty = || {
            let package = &[(PROMPTY_PACKAGE, PROMPTY_VERSION)];
            peer(&environment("prompty-typescript", PROMPTY_VERSION, package)?, PROMPTY_PACKAGE)
        };
        NpmRenderers {
            ours: Renderer::new("cuebook", env!("CARGO_PKG_VERSION"), ours()),
            nunjucks: Renderer::new(NUNJUCKS, NUNJUCKS_VERSION, start("nunjucks")),
            handlebars: Renderer::new(HANDLEBARS, HANDLEBARS_VERSION, start("handlebars")),
            dotprompt: Renderer::new(DOTPROMPT, DOTPROMPT_VERSION, start("dotprompt")),
            prompty: Renderer::new(PROMPTY_TYPESCRIPT, PROMPTY_VERSION, prompty()),
        }
    }
}

/// Starts the script for a package.
fn peer(folder: &Path, name: &str) -> Result<Script> {
    let script = folder.join("npm.mjs");
    fs::write(&script, include_str!("npm.mjs")).map_err(|error| format!("{}: {error}", script.display()))?;
    Script::of(Command::new("node").arg(script).arg(name))
}

/// Our package among those of a folder, with an addon of this program's profile.
fn build(folder: &Path) -> Result<()> {
    let (target, profile) = (place::target()?, place::profile_folder()?);
    let mut cargo = place::cargo();
    cargo.args(["build", "--quiet", "-p", "cuebook-node", "-p", "cuebook-cli", "--target-dir"]).arg(&target);
    run(cargo.args(["--profile", if profile == "debug" { "dev" } else { &profile }]))?;
    let modules = folder.join("node_modules");
    let mut node = Command::new("node");
    node.arg(place::workspace().join("crates/cuebook-node/build.mjs"));
    node.arg("--native").arg(target.join(profile)).arg("--modules").arg(&modules);
    run(node.arg("--out").arg(modules.join("cuebook")))
}

/// The bytes of our package as `npm pack` writes it.
pub fn packed() -> Result<f64> {
    let folder = place::environment("npm-peers", env!("CARGO_PKG_VERSION"))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--json", "--silent", "./node_modules/cuebook"]).current_dir(&folder);
    let output = npm.output().map_err(|error| format!("npm: {error}"))?;
    let packed: Json =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("npm pack: {error}"))?;
    let file = packed[0]["filename"].as_str().ok_or("npm pack names no file")?;
    let _ = fs::remove_file(folder.join(file));
    packed[0]["size"].as_f64().ok_or_else(|| "npm pack names no size".to_owned())
}

/// A folder below the target folder with packages of npm.
pub fn environment(name: &str, version: &str, packages: &[(&str, &str)]) -> Result<PathBuf> {
    let folder = place::environment(name, version)?;
    let is_there =
        || packages.iter().all(|(name, version)| installed(&folder, name).as_deref() == Some(*version));
    if is_there() {
        return Ok(folder);
    }
    let io = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(io)?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n").map_err(io)?;
    let wanted: Vec<String> = packages.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    let words = ["install", "--silent", "--no-audit", "--no-fund", "--save-exact"];
    let done = run(Command::new("npm").args(words).args(&wanted).current_dir(&folder));
    if done.is_err() || !is_there() {
        return Err(format!("npm cannot install {}", wanted.join(", ")));
    }
    Ok(folder)
}

fn installed(folder: &Path, name: &str) -> Option<String> {
    let manifest = fs::read_to_string(folder.join("node_modules").join(name).join("package.json")).ok()?;
    let manifest: Json = serde_json::from_str(&manifest).ok()?;
    Some(manifest["version"].as_str()?.to_owned())
}
