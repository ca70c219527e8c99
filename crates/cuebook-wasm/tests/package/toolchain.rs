//! A compiler for `wasm32-unknown-unknown`: that of this machine, if it has the standard library, or else the one that Debian builds its
//! browsers with, which is newer than Debian's other one. It comes with the source of the standard library. Its packages are unpacked below
//! the target folder.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-unknown-unknown";

/// The compiler, and the source of its standard library.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// The standard output of a program that succeeds.
pub fn run(command: &mut Command) -> Result<String, String> {
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match done.status.success() {
        true => Ok(words(&done.stdout)),
        false => Err(format!("{command:?} failed\n{}{}", words(&done.stdout), words(&done.stderr))),
    }
}

/// How cargo builds for the target.
#[derive(Debug, Default)]
pub struct Toolchain {
    words: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

impl Toolchain {
    /// Finds one, or installs one below a folder.
    pub fn find(folder: &Path, wanted: &str) -> Result<Toolchain, String> {
        let own = PathBuf::from(run(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        if own.join("lib/rustlib").join(TARGET).is_dir() {
            return Ok(Toolchain::default());
        }
        let root = folder.join("root");
        if !root.join("usr/bin/rustc").is_file() {
            install(folder, &root, wanted)?;
        }
        let libraries = below(&root.join("usr/lib"), 1)
            .into_iter()
            .find(|path| path.is_dir() && names(path).iter().any(|name| name.starts_with("librustc_driver")))
            .ok_or("the package of the compiler has no `librustc_driver`")?;
        let linker = below(&own.join("lib/rustlib"), 2)
            .into_iter()
            .find(|path| path.ends_with("bin/rust-lld"))
            .ok_or("this machine's Rust has no `rust-lld`")?;
        let rustc = root.join("usr/bin/rustc");
        let version = run(Command::new(&rustc).arg("--version").env("LD_LIBRARY_PATH", &libraries))?;
        let version = version.split(' ').nth(1).unwrap_or_default();
        if numbers(version) < numbers(wanted) {
            return Err(format!(
                "Debian's `{}` is version {version}, and Cuebook needs {wanted}",
                PACKAGES[0]
            ));
        }
        let mut linked = OsString::from("-Clinker=");
        linked.push(linker);
        Ok(Toolchain {
            words: ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="].map(OsString::from).into(),
            environment: vec![
                ("LD_LIBRARY_PATH", libraries.into()),
                ("RUSTC", rustc.into()),
                ("RUSTC_BOOTSTRAP", "1".into()),
                ("RUSTFLAGS", linked),
            ],
        })
    }

    /// Builds a crate in a target folder of its own, and returns the module. A quick build makes a larger and slower one.
    pub fn build(&self, krate: &str, is_quick: bool, target: &Path) -> Result<PathBuf, String> {
        let (profile, folder) = if is_quick { ("dev", "debug") } else { ("wasm", "wasm") };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--locked", "--target", TARGET, "-p", krate, "--profile", profile]);
        cargo.args(&self.words).arg("--target-dir").arg(target).envs(self.environment.iter().cloned());
        // Settings of the build of this test are not for that one.
        for name in
            ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"]
        {
            cargo.env_remove(name);
        }
        run(cargo.env("CARGO_INCREMENTAL", "0"))?;
        Ok(target.join(TARGET).join(folder).join(format!("{}.wasm", krate.replace('-', "_"))))
    }
}

/// The numbers of a version, such as `1.96.0`.
fn numbers(version: &str) -> Vec<u32> {
    version.split(['.', '-']).map_while(|number| number.parse().ok()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// What is in a folder and in so many levels of folders below.
fn below(folder: &Path, levels: usize) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names(folder).iter().map(|name| folder.join(name)).collect();
    if levels > 0 {
        let inner: Vec<PathBuf> = found.iter().flat_map(|path| below(path, levels - 1)).collect();
        found.extend(inner);
    }
    found
}

/// Downloads the packages with those that they need and this machine lacks, and unpacks them.
fn install(folder: &Path, root: &Path, wanted: &str) -> Result<(), String> {
    for program in ["apt-get", "dpkg-deb"] {
        run(Command::new(program).arg("--version")).map_err(|_| {
            format!("the standard library for {TARGET} is missing, and there is no `{program}`")
        })?;
    }
    // Old lists of packages offer an old compiler.
    let offered = run(Command::new("apt-cache").args(["policy", PACKAGES[0]])).unwrap_or_default();
    let offered =
        offered.lines().find_map(|line| line.trim().strip_prefix("Candidate: ")).unwrap_or_default();
    if numbers(offered) < numbers(wanted) {
        let _ = run(Command::new("apt-get").args(["update", "-qq"]));
    }
    let (files, unpacked) = (folder.join("packages"), folder.join("unpacked"));
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&files).map_err(|error| error.to_string())?;
    let mut known: BTreeSet<String> = PACKAGES.into_iter().map(str::to_owned).collect();
    let mut next: Vec<String> = known.iter().cloned().collect();
    while let Some(package) = next.pop() {
        let file = match download(&files, &package) {
            Ok(file) => file,
            // A name may stand for several packages, one of which is installed.
            Err(_) if !PACKAGES.contains(&package.as_str()) => continue,
            Err(why) => return Err(why),
        };
        let needs = run(Command::new("dpkg-deb").arg("-f").arg(&file).arg("Depends"))?;
        for need in needs.split([',', '|']).filter_map(|need| need.split_whitespace().next()) {
            // A compiler for C and its headers are on every machine that builds Cuebook.
            if need.starts_with("lib") && !is_installed(need) && known.insert(need.to_owned()) {
                next.push(need.to_owned());
            }
        }
        run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&unpacked))?;
    }
    let _ = fs::remove_dir_all(files);
    fs::rename(unpacked, root).map_err(|error| error.to_string())
}

fn is_installed(package: &str) -> bool {
    let status = Command::new("dpkg-query").args(["-W", "-f", "${Status}", package]).output();
    status.is_ok_and(|output| output.stdout.ends_with(b" installed"))
}

fn download(files: &Path, package: &str) -> Result<PathBuf, String> {
    let before = names(files);
    run(Command::new("apt-get").args(["download", "-qq", package]).current_dir(files))
        .map_err(|why| format!("Debian's package {package} cannot be downloaded: {why}"))?;
    let file = names(files).into_iter().find(|name| !before.contains(name));
    file.map(|name| files.join(name)).ok_or_else(|| format!("there is no package {package}"))
}
