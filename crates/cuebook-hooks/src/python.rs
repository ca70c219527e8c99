//! Finds the Python that runs hooks, and what of the disk it needs to see.
//!
//! A real interpreter is not asked anything: where its library lies follows from where it lies itself. Only a script in its
//! place (the shims of pyenv and the like), or one that lies where no interpreter should, is run once to say what it stands
//! for. It is one that the user chose or granted, it never lies in the project, and it gets a clean environment.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuebook::error::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook::items::Spaces;
use cuebook::library::HooksConfig;
use cuebook::trust::{self, Grants};

/// The oldest Python that hooks run in.
pub const OLDEST: (u8, u8) = (3, 9);

/// How long a script may take to say which interpreter it starts.
const PATIENCE: Duration = Duration::from_secs(10);

/// The variables that an interpreter gets that has to be asked: shims need them.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "PYENV_ROOT"];

/// What is asked of an interpreter that has to be asked.
const QUESTION: &str =
    "import sys; print(sys.executable, sys.base_prefix, '%d.%d' % sys.version_info[:2], sep='\\n')";

/// A Python that can run hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// What is started.
    pub program: PathBuf,
    /// Major and minor version.
    pub version: (u8, u8),
    /// Files and folders that it needs to see.
    pub readable: Vec<PathBuf>,
}

/// Answers of interpreters that had to be asked, by what was run.
static ANSWERS: Mutex<Option<HashMap<PathBuf, InterpreterInfo>>> = Mutex::new(None);

/// What an interpreter says of itself.
#[derive(Debug, Clone)]
struct InterpreterInfo {
    program: PathBuf,
    prefix: PathBuf,
    version: (u8, u8),
}

impl Interpreter {
    /// Finds the interpreter that settings name, if the user chose it or granted it to the project.
    pub fn granted(config: &HooksConfig, spaces: &Spaces) -> Result<Interpreter> {
        if let Some((request, state)) = &config.ungranted_python {
            return Err(request.needed(*state));
        }
        let path = std::env::var_os("PATH");
        let program = locate(&config.python, spaces.project(), path.as_deref())?;
        if let Some(request) = trust::interpreter_request(spaces.project(), &program)? {
            Grants::of(spaces)?.require(&request)?;
        }
        let interpreter = Interpreter::find(&config.python, spaces.project(), path.as_deref())?;
        if let Some(folder) = interpreter.readable.iter().find(|folder| trust::holds_secrets(spaces, folder))
        {
            let why = format!("it would show your home directory to hooks: {}", folder.display());
            return Err(unusable(&config.python, why));
        }
        if let Some(path) = config.readable().iter().find(|path| trust::holds_secrets(spaces, path)) {
            let message = format!("`hooks.readable` would show your keys to hooks: {}", path.display());
            let hint = "list only what hooks need, such as the `.git` folder of a repository";
            return Err(Error::new(ErrorKind::Config, Diagnostic::new(Code::BadConfig, message).hint(hint)));
        }
        Ok(interpreter)
    }

    /// Finds the interpreter that the setting `hooks.python` names: a path, below `root` if it is relative, or a name that
    /// is looked for in the folders of `path`.
    pub fn find(setting: &str, root: &Path, path: Option<&OsStr>) -> Result<Interpreter> {
        let given = locate(setting, root, path)?;
        let of_project = trust::is_inside(root, &given);
        let interpreter = Interpreter::at(&given, of_project).map_err(|why| unusable(setting, why))?;
        if interpreter.version < OLDEST {
            let (major, minor) = interpreter.version;
            return Err(unusable(
                setting,
                format!(
                    "{} is Python {major}.{minor}, but hooks need {}.{} or newer",
                    given.display(),
                    OLDEST.0,
                    OLDEST.1
                ),
            ));
        }
        Ok(interpreter)
    }

    /// What comes with a project (`of_project`) runs in the sandbox or not at all, so it is not asked anything.
    fn at(given: &Path, of_project: bool) -> Result<Interpreter, String> {
        let ask = |program: &Path| match of_project {
            true => Err(format!("{} is not a Python interpreter with its library", program.display())),
            false => ask(program),
        };
        let reported = if is_script(given) { Some(ask(given)?) } else { None };
        let given = reported.as_ref().map_or(given, |reported| &reported.program);
        let resolved = given.canonicalize().map_err(|error| format!("{}: {error}", given.display()))?;
        let environment = Environment::of(given);
        let (prefix, version) = match (find_library(&resolved), &reported) {
            (Some(found), _) => found,
            (None, Some(reported)) => (reported.prefix.clone(), reported.version),
            (None, None) => {
                let reported = ask(given)?;
                (reported.prefix, reported.version)
            }
        };
        let mut readable = libraries(&prefix);
        match resolved.parent() {
            // The folder of programs that belongs to the library, not any folder with programs.
            Some(folder) if folder.starts_with(&prefix) && folder != prefix => {
                readable.push(folder.to_owned())
            }
            _ => readable.push(resolved.clone()),
        }
        let program = match environment {
            None => resolved,
            Some(environment) => {
                readable.extend(environment.folders()?);
                // Links from the environment to its interpreter may go through further folders.
                readable.extend(links(given));
                given.to_owned()
            }
        };
        readable.retain(|path| path.exists());
        readable.sort();
        readable.dedup();
        Ok(Interpreter { program, version, readable })
    }
}

/// A virtual environment.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment that a program belongs to: its settings lie beside it, or in the folder above.
    fn of(program: &Path) -> Option<Environment> {
        let beside = program.parent()?;
        let folder =
            [beside, beside.parent()?].into_iter().find(|folder| folder.join("pyvenv.cfg").is_file())?;
        Some(Environment { folder: folder.to_owned() })
    }

    /// The folders that its interpreter needs to see. None may be a link that leads out of the environment: it would show
    /// any folder to hooks.
    fn folders(&self) -> Result<Vec<PathBuf>, String> {
        let inside =
            self.folder.canonicalize().map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let mut folders = Vec::new();
        for name in ["bin", "lib", "lib64", "pyvenv.cfg"] {
            let path = self.folder.join(name);
            let Ok(resolved) = path.canonicalize() else { continue };
            if resolved.parent() != Some(&*inside) {
                return Err(format!("{} leads out of its environment", path.display()));
            }
            folders.push(path);
        }
        Ok(folders)
    }
}

/// What a setting names: a path, below `root` if it is relative, or a name in the folders of `path`. Folders that are
/// relative or lie in the project are skipped: a project could put any program there.
fn locate(setting: &str, root: &Path, path: Option<&OsStr>) -> Result<PathBuf> {
    if setting.contains('/') {
        let given = root.join(setting);
        return match is_program(&given) {
            true => Ok(given),
            false => Err(unusable(setting, format!("the program {} does not exist", given.display()))),
        };
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let mut found = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(setting));
    found
        .find(|program| is_program(program) && !trust::is_inside(root, program))
        .ok_or_else(|| unusable(setting, format!("`{setting}` is not on the PATH")))
}

/// The first folder above a program that holds a library of Python, and its version.
fn find_library(program: &Path) -> Option<(PathBuf, (u8, u8))> {
    let name = program.file_name()?.to_string_lossy();
    // Anything may lie beside a Python, and it would be taken for one.
    let named = name.starts_with("python").then(|| version_in(&name))?;
    for folder in program.ancestors().skip(1) {
        let mut versions = Vec::new();
        for library in libraries(folder) {
            let Ok(entries) = fs::read_dir(&library) else { continue };
            versions.extend(entries.flatten().filter_map(|entry| {
                let version = version_in(&entry.file_name().to_string_lossy())?;
                entry.path().join("os.py").is_file().then_some(version)
            }));
        }
        versions.sort_unstable();
        versions.dedup();
        match (named, versions.as_slice()) {
            (_, []) => {}
            (Some(named), versions) if versions.contains(&named) => return Some((folder.to_owned(), named)),
            (None, [only]) => return Some((folder.to_owned(), *only)),
            // Several, and the name does not say which: it has to be asked.
            _ => return None,
        }
    }
    None
}

/// `(3, 11)` of `python3.11`.
fn version_in(name: &str) -> Option<(u8, u8)> {
    let (major, minor) = name.strip_prefix("python")?.split_once('.')?;
    // `python3.13t` is a build without the global lock.
    Some((major.parse().ok()?, minor.trim_end_matches(['t', 'd']).parse().ok()?))
}

/// The folders of libraries below a prefix.
fn libraries(prefix: &Path) -> Vec<PathBuf> {
    ["lib", "lib64"].map(|name| prefix.join(name)).into_iter().filter(|path| path.is_dir()).collect()
}

/// Every link that leads on from a path, and where it ends.
fn links(path: &Path) -> Vec<PathBuf> {
    let mut path = path.to_owned();
    let mut links = Vec::new();
    while let Ok(target) = fs::read_link(&path) {
        // A path in a circle was refused when it was resolved; this only bounds what we do ourselves.
        if links.len() == 40 {
            break;
        }
        path = tidy(&path.parent().unwrap_or(Path::new("/")).join(target));
        links.push(path.clone());
    }
    links
}

/// A path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            component => tidy.push(component),
        }
    }
    tidy
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let executable = true;
    metadata.is_file() && executable
}

fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// Runs a program that claims to be Python, and lets it say what it is.
fn ask(program: &Path) -> Result<InterpreterInfo, String> {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(reported) = answers.as_ref().and_then(|answers| answers.get(program)) {
        return Ok(reported.clone());
    }
    let output = run(program)?;
    let mut lines = output.lines();
    let reported = (|| {
        let (executable, prefix, version) = (lines.next()?, lines.next()?, lines.next()?);
        let (major, minor) = version.split_once('.')?;
        Some(InterpreterInfo {
            program: Some(PathBuf::from(executable)).filter(|path| path.is_absolute())?,
            prefix: prefix.into(),
            version: (major.parse().ok()?, minor.parse().ok()?),
        })
    })();
    let Some(reported) = reported else {
        return Err(format!("{} is not Python", program.display()));
    };
    if is_script(&reported.program) {
        return Err(format!("{} leads to another script, {}", program.display(), reported.program.display()));
    }
    answers.get_or_insert_default().insert(program.to_owned(), reported.clone());
    Ok(reported)
}

fn run(program: &Path) -> Result<String, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{} cannot be used: {why}", program.display());
    let mut child = Command::new(program)
        .args(["-I", "-S", "-c", QUESTION])
        // Shims choose by files of the folder that they run in, and by variables: a project must not decide that.
        .current_dir("/")
        .env_clear()
        .envs(KEPT.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(&format!("it did not answer within {} seconds", PATIENCE.as_secs())));
            }
            Err(error) => return Err(failed(&error)),
        }
    };
    // A background process that it left could hold the pipes open for ever, but never more than this is read.
    let mut output = String::new();
    if status.success() {
        let stdout = child.stdout.take().map(|stdout| stdout.take(64 << 10));
        stdout
            .map(|mut stdout| stdout.read_to_string(&mut output))
            .transpose()
            .map_err(|error| failed(&error))?;
        return Ok(output);
    }
    let mut bytes = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(64 << 10).read_to_end(&mut bytes);
    }
    let said = String::from_utf8_lossy(&bytes);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(failed(&last.map_or_else(|| status.to_string(), str::to_owned)))
}

fn unusable(setting: &str, why: String) -> Error {
    let (major, minor) = OLDEST;
    let diagnostic = Diagnostic::new(Code::PythonNotFound, format!("hooks cannot run: {why}")).hint(format!(
        "install Python {major}.{minor} or newer (`apt install python3`, `dnf install python3`, `brew install python`), or \
         name one in ~/.ai/config/cuebook.toml: `python = \"/path/to/python3\"` under `[hooks]`"
    ));
    Error::new(ErrorKind::Hook, diagnostic).with("python", setting)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with the landmarks of an installation.
    fn installation(folder: &Path, version: &str) -> PathBuf {
        let program = folder.join("bin").join(format!("python{version}"));
        write(&program, "\x7fELF");
        write(&folder.join(format!("lib/python{version}/os.py")), "");
        program
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Finds what a name on a PATH stands for, for a project in another folder.
    fn find_on(path: &Path) -> Result<Interpreter> {
        Interpreter::find("python3", Path::new("/nowhere"), Some(path.as_os_str()))
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn an_interpreter_is_known_by_where_it_lies_without_being_run() {
        let (_guard, folder) = folder();
        let program = installation(&folder.join("opt"), "3.12");
        symlink("python3.12", folder.join("opt/bin/python3")).unwrap();
        let found = find_on(&folder.join("opt/bin")).unwrap();
        assert_eq!(found.program, program);
        assert_eq!(found.version, (3, 12));
        assert_eq!(found.readable, [folder.join("opt/bin"), folder.join("opt/lib")]);
    }

    #[test]
    fn a_link_in_a_home_folder_does_not_open_that_folder() {
        let (_guard, folder) = folder();
        installation(&folder.join("opt"), "3.12");
        symlink(folder.join("opt/bin/python3.12"), folder.join("python")).unwrap();
        let found = Interpreter::find("./python", &folder, None).unwrap();
        assert_eq!(found.readable, [folder.join("opt/bin"), folder.join("opt/lib")]);
    }

    #[test]
    fn an_environment_is_started_at_its_own_place_and_sees_its_base() {
        let (_guard, folder) = folder();
        let base = installation(&folder.join("opt"), "3.11");
        symlink(&base, folder.join("via")).unwrap();
        let venv = folder.join("project/.venv");
        write(&venv.join("pyvenv.cfg"), "home = /somewhere");
        fs::create_dir_all(venv.join("bin")).unwrap();
        fs::create_dir_all(venv.join("lib/python3.11/site-packages")).unwrap();
        symlink("../../../via", venv.join("bin/python")).unwrap();
        let found = Interpreter::find(".venv/bin/python", &folder.join("project"), None).unwrap();
        assert_eq!(found.program, venv.join("bin/python"));
        assert_eq!(found.version, (3, 11));
        let expected = [
            folder.join("opt/bin"),
            base,
            folder.join("opt/lib"),
            venv.join("bin"),
            venv.join("lib"),
            venv.join("pyvenv.cfg"),
            folder.join("via"),
        ];
        assert_eq!(found.readable, expected);
    }

    #[test]
    fn a_script_in_its_place_is_read_for_its_target() {
        let (_guard, folder) = folder();
        let program = installation(&folder.join("opt"), "3.10");
        let answer = format!(
            "#!/bin/sh\nprintf '%s\\n' {} {} 3.10\n",
            program.display(),
            folder.join("opt").display()
        );
        write(&folder.join("shims/python3"), &answer);
        let path = folder.join("shims");
        let found = find_on(&path).unwrap();
        assert_eq!((found.program, found.version), (program.clone(), (3, 10)));
        // It is asked once.
        write(&folder.join("shims/python3"), "#!/bin/sh\nexit 1\n");
        assert_eq!(find_on(&path).unwrap().program, program);
        // A project's own folders are no part of the PATH.
        assert!(Interpreter::find("python3", &folder, Some(path.as_os_str())).is_err());
    }

    #[test]
    fn unusable_files_are_named_with_a_fix() {
        let (_guard, folder) = folder();
        installation(&folder.join("old"), "3.8");
        write(&folder.join("broken"), "#!/bin/sh\necho 'pyenv: python3: command not found' >&2\nexit 127\n");
        let message_in = |project: &Path, setting: &str| {
            let error =
                Interpreter::find(setting, project, Some(folder.join("none").as_os_str())).unwrap_err();
            assert_eq!(error.code(), Code::PythonNotFound);
            assert!(error.diagnostic().hint.as_ref().unwrap().contains("apt install python3"));
            error.diagnostic().message.replace(folder.to_str().unwrap(), "…")
        };
        let message = |setting: &str| message_in(&folder, setting);
        assert_eq!(message("python3"), "hooks cannot run: `python3` is not on the PATH");
        assert_eq!(message("./nothing"), "hooks cannot run: the program …/./nothing does not exist");
        assert_eq!(
            message("old/bin/python3.8"),
            "hooks cannot run: …/old/bin/python3.8 is Python 3.8, but hooks need 3.9 or newer"
        );
        let broken = folder.join("broken");
        assert_eq!(
            message_in(Path::new("/nowhere"), broken.to_str().unwrap()),
            "hooks cannot run: …/broken cannot be used: pyenv: python3: command not found"
        );
        // What comes with the project is not run to ask it something.
        assert_eq!(
            message("./broken"),
            "hooks cannot run: …/./broken is not a Python interpreter with its library"
        );
    }
}
