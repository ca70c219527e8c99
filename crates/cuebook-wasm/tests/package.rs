//! Builds the module and the npm package below the target folder, and runs its tests in Node.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

#[path = "package/cases.rs"]
mod cases;
#[path = "../../skip.rs"]
mod skip;
#[path = "package/toolchain.rs"]
mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolchain::{Toolchain, run};

/// What the tests need from the registry of npm. The package itself needs nothing.
const NEEDED: [&str; 3] = ["typescript@7", "@types/node@>=20", "esbuild@0.28"];

/// The oldest major version of Node that the package supports.
const OLDEST: u32 = 20;

fn install(folder: &Path) -> Result<(), String> {
    let version = run(Command::new("node").arg("--version"))?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST) {
        return Err(format!("node is version {}, and not {OLDEST} or newer", version.trim()));
    }
    let (ready, wanted) = (folder.join("ready"), NEEDED.join("\n"));
    if fs::read_to_string(&ready).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    fs::write(folder.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]).args(NEEDED);
    run(npm.current_dir(folder))?;
    fs::write(ready, wanted).unwrap();
    Ok(())
}

/// The folder of the tests, with the packages that they need, and the module.
fn setup() -> Result<(PathBuf, PathBuf), String> {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let folder = target.join("wasm-package");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    install(&folder)?;
    let toolchain = Toolchain::find(&folder, env!("CARGO_PKG_RUST_VERSION"))?;
    let module = toolchain.build("cuebook-wasm", cfg!(debug_assertions), &target.join("wasm")).unwrap();
    Ok((folder, module))
}

#[test]
fn the_package_renders_as_the_engine_does() {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, module) = match setup() {
        Ok(setup) => setup,
        Err(why) => return skip::missing_peer(why),
    };
    let modules = folder.join("node_modules");
    let mut build = Command::new("node");
    build.arg(krate.join("build.mjs")).arg("--module").arg(&module).arg("--modules").arg(&modules);
    run(build.arg("--out").arg(modules.join("cuebook-wasm"))).unwrap();
    let tests = folder.join("tests");
    let _ = fs::remove_dir_all(&tests);
    fs::create_dir_all(&tests).unwrap();
    for entry in fs::read_dir(krate.join("tests/node")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), tests.join(entry.file_name())).unwrap();
    }
    fs::write(tests.join("cases.json"), cases::all().to_string()).unwrap();
    let guide = krate.join("../../docs/src/guide/typescript.md");
    run(Command::new("node").arg(tests.join("chapter.mjs")).arg(guide).arg(tests.join("worker.ts"))).unwrap();
    run(Command::new("node").arg(modules.join("typescript/bin/tsc")).arg("-p").arg(&tests)).unwrap();
    let mut node = Command::new("node");
    node.args(["--test", "--test-timeout=120000", "--test-reporter", "spec"]).current_dir(&tests);
    let printed = run(node.args(["out/equal.test.js", "out/limits.test.js", "out/worker.test.js"])).unwrap();
    assert!(printed.contains("pass "), "{printed}");
}
