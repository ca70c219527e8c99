//! Where things lie: the build folder, what is made in it, and our own program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use crate::command::{Result, run};

/// The folder of this program's profile in the build folder. Tests lie one folder deeper, in `deps`.
fn built() -> Result<PathBuf> {
    let here = env::current_exe().map_err(|error| error.to_string())?;
    let mut above = here.ancestors().skip(1).skip_while(|folder| folder.ends_with("deps"));
    Ok(above.next().ok_or("the benchmark is not in a build folder")?.to_owned())
}

/// The build folder.
pub fn target() -> Result<PathBuf> {
    let target = built()?.parent().map(Path::to_owned);
    target.ok_or_else(|| "the benchmark is not in a build folder".to_owned())
}

/// The folder of what a peer needs.
pub fn environment(name: &str, version: &str) -> Result<PathBuf> {
    Ok(target()?.join("tmp").join(format!("{name}-{version}")))
}

/// The folder of results.
pub fn results() -> Result<PathBuf> {
    let folder = target()?.join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The root of the workspace that this program was built from.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Cargo, as it was when this program was built or started by it.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    // Cargo describes a package to the tests of that package. Build scripts of others would see a change, and all would be built anew.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The folder of this program's profile below the build folder: `dist` for figures that count.
pub fn profile_folder() -> Result<String> {
    let built = built()?;
    let folder = built.file_name().ok_or("the benchmark is not in a build folder")?;
    Ok(folder.to_string_lossy().into_owned())
}

/// The `cuebook` command, built as this program was. Cargo looks whether it is up to date.
pub fn program() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf>> = OnceLock::new();
    let build = || {
        let (target, folder) = (target()?, profile_folder()?);
        run(cargo()
            .args(["build", "--quiet", "-p", "cuebook-cli", "--target-dir"])
            .arg(&target)
            .args(["--profile", if folder == "debug" { "dev" } else { &folder }]))?;
        let program = target.join(folder).join(format!("cuebook{}", env::consts::EXE_SUFFIX));
        if program.is_file() { Ok(program) } else { Err(format!("{} was not built", program.display())) }
    };
    BUILT.get_or_init(build).clone()
}
