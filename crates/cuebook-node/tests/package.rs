//! Builds the npm package below the target folder, compiles its test suite against the types of the package, and runs it.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

#[path = "../../skip.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Files of tests that take long.
const LONG: [&str; 5] = ["leak", "stubs", "testing", "adapters", "next"];

/// What the suite needs from the registry of npm, each in a major version that supports Node 20. The package itself needs nothing.
const NEEDED: [&str; 14] = [
    "typescript@7",
    "@types/node@>=20",
    "zod@4",
    "vitest@4",
    "jest@30",
    "esbuild@0.28",
    "openai@6",
    "@anthropic-ai/sdk@1",
    "@google/genai@2",
    "ai@6",
    "@modelcontextprotocol/sdk@1",
    "apache-arrow@21",
    "express@5",
    "@types/express@5",
];

/// What a service with Next.js needs. Its build needs a version of TypeScript that JavaScript can call.
const NEXT: [&str; 6] =
    ["next@16", "react@19", "react-dom@19", "typescript@5", "@types/node@>=20", "@types/react@19"];

/// The oldest major version of Node that the package supports.
const OLDEST: u32 = 20;
/// The major versions that the suite runs with.
const VERSIONS: [u32; 2] = [OLDEST, 22];

/// The folder of the profile that this test was built with, such as `target/debug`.
fn profile() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.success() { Ok(text) } else { Err(format!("{command:?} failed\n{text}")) }
}

/// The major version of a Node.
fn major(node: &Path) -> Result<u32, String> {
    let version = run(Command::new(node).arg("--version"))?;
    let digits = version.trim().strip_prefix('v').and_then(|rest| rest.split('.').next());
    digits.and_then(|major| major.parse().ok()).ok_or_else(|| format!("its version is {}", version.trim()))
}

/// The Nodes that the suite runs with: that of the machine, which is new enough, and those of the other versions that the package supports.
fn nodes(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let own = PathBuf::from("node");
    let version = major(&own)?;
    if version < OLDEST {
        return Err(format!("it is version {version}, and not {OLDEST} or newer"));
    }
    let mut nodes = vec![own];
    for other in VERSIONS.into_iter().filter(|other| *other != version) {
        let folder = folder.join(format!("node-{other}"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        install(&folder, &[&format!("node@{other}")])?;
        let node = folder.join("node_modules/node/bin/node");
        assert_eq!(major(&node), Ok(other));
        nodes.push(node);
    }
    Ok(nodes)
}

/// Installs the packages of others, once for each list of them.
fn install(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let ready = folder.join("ready");
    let wanted = packages.join("\n");
    if fs::read_to_string(&ready).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let _ = fs::remove_dir_all(folder.join("node_modules"));
    fs::write(folder.join("package.json"), "{\"private\": true}\n").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]).args(packages);
    run(npm.current_dir(folder))?;
    fs::write(ready, wanted).unwrap();
    Ok(())
}

/// The folder of the tests, with the packages that they need, and the Nodes that run them.
fn setup() -> &'static Result<(PathBuf, Vec<PathBuf>), String> {
    static SETUP: OnceLock<Result<(PathBuf, Vec<PathBuf>), String>> = OnceLock::new();
    SETUP.get_or_init(|| {
        let folder = profile().parent().unwrap().join("node");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let nodes = nodes(&folder).map_err(|why| format!("there is no node that can be used: {why}"))?;
        let next = folder.join("next");
        fs::create_dir_all(&next).map_err(|error| error.to_string())?;
        for (folder, packages) in [(&folder, &NEEDED[..]), (&next, &NEXT)] {
            install(folder, packages)
                .map_err(|why| format!("npm cannot install what the tests need: {why}"))?;
        }
        Ok((folder, nodes))
    })
}

/// The command, which other tests of the workspace have built, or which is built now.
fn command() {
    if !profile().join(format!("cuebook{}", std::env::consts::EXE_SUFFIX)).exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "-p", "cuebook-cli", "--target-dir"])
            .arg(profile().parent().unwrap());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        run(&mut build).unwrap();
    }
}

/// A copy of a folder with its folders, whose files share their bytes with the first one.
fn link_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => link_folder(&entry.path(), &to),
            false => fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn the_package_builds_and_its_tests_pass() {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, nodes) = match setup() {
        Ok(setup) => setup,
        Err(why) => return skip::missing_peer(why),
    };
    command();
    let modules = folder.join("node_modules");
    let mut build = Command::new("node");
    build.arg(krate.join("build.mjs")).arg("--native").arg(profile()).arg("--modules").arg(&modules);
    run(build.arg("--out").arg(modules.join("cuebook"))).unwrap();
    link_folder(&modules.join("cuebook"), &folder.join("next/node_modules/cuebook"));
    let tests = folder.join("tests");
    copy_folder(&krate.join("tests/node"), &tests);
    let mut chapter = Command::new("node");
    chapter.arg(tests.join("chapter.mjs")).arg(krate.join("../../docs/src/guide/typescript.md"));
    run(chapter.arg(tests.join("chapter.test.ts"))).unwrap();
    run(Command::new("node").arg(modules.join("typescript/bin/tsc")).arg("-p").arg(&tests)).unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(tests.join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".test.js"));
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let calls = if cfg!(debug_assertions) { "100000" } else { "1000000" };
    for (at, node) in nodes.iter().enumerate() {
        // Once is enough for what takes long, and for programs that start others with the `node` of the search path.
        let is_long = |file: &Path| LONG.iter().any(|name| file.ends_with(format!("{name}.test.js")));
        let mut command = Command::new(node);
        command.args(["--test", "--test-timeout=120000", "--test-reporter", "dot"]);
        command.args(files.iter().filter(|file| at == 0 || !is_long(file))).current_dir(&tests);
        run(command.env("CALLS_THAT_MUST_NOT_LEAK", calls)).unwrap();
    }
}

#[test]
fn a_package_that_is_too_large_is_refused() {
    let (folder, _) = match setup() {
        Ok(setup) => setup,
        Err(why) => return skip::missing_peer(why),
    };
    let (native, packed) = (folder.join("large/native"), folder.join("large/packed"));
    fs::create_dir_all(&native).unwrap();
    fs::write(native.join("cuebook"), "").unwrap();
    let pack = |profile: &str, bytes: usize| {
        let _ = fs::remove_dir_all(&packed);
        fs::create_dir_all(&packed).unwrap();
        // Bytes that cannot be compressed.
        let mut number = 1_u64;
        let random = (0..bytes.div_ceil(8)).flat_map(|_| {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            number.to_le_bytes()
        });
        fs::write(native.join("libcuebook_node.so"), random.collect::<Vec<u8>>()).unwrap();
        let mut build = Command::new("node");
        build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.mjs")).args([
            "--pack",
            "--profile",
            profile,
        ]);
        build.arg("--native").arg(&native).arg("--modules").arg(folder.join("node_modules"));
        let printed = run(build.arg("--out").arg(folder.join("large/cuebook")).current_dir(&packed));
        (printed, fs::read_dir(&packed).unwrap().count())
    };
    let (printed, files) = pack("dist", 1_000_000);
    assert!(printed.unwrap().contains("cuebook-0.1.0.tgz: 1.0 MB"));
    assert_eq!(files, 1);
    let (printed, files) = pack("dist", 15_100_000);
    assert!(printed.unwrap_err().contains("15.1 MB, which is more than 15 MB"));
    assert_eq!(files, 0);
    // Only what is shipped has to be small.
    assert_eq!(pack("release", 15_100_000).1, 1);
}
