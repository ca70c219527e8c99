//! A shape of input, and the project that it is made in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Makes the input of a size in a project, and gives the arguments of the command.
pub type Make = fn(&Project, usize) -> Result<Vec<String>, String>;

/// An input that can be made in any size.
#[derive(Clone)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// The command that works on it.
    pub command: &'static str,
    /// Its smallest size.
    pub least: usize,
    /// Its largest size: beyond it a limit refuses it, or making it takes too long.
    pub most: usize,
    /// The exit code of the command.
    pub code: i32,
    /// Makes it.
    pub make: Make,
}

impl Shape {
    /// A shape of which a command makes a success.
    pub fn new(name: &'static str, command: &'static str, most: usize, make: Make) -> Shape {
        Shape { name, command, least: 4, most, code: 0, make }
    }

    /// The same with another exit code.
    pub fn code(self, code: i32) -> Shape {
        Shape { code, ..self }
    }
}

/// A project and the home of its user.
pub struct Project {
    folder: TempDir,
    program: PathBuf,
}

impl Project {
    pub fn new(program: &Path) -> Result<Project, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for name in ["project", "home"] {
            fs::create_dir(folder.path().join(name)).map_err(|error| error.to_string())?;
        }
        let project = Project { folder, program: program.to_owned() };
        // Prompts of the largest sizes are longer than prompts usually may be.
        let defaults = "{\"limits\": {\"max_output_size\": 100000000}}";
        project.write("user_data/shared/prompts/defaults.json", defaults)?;
        Ok(project)
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> Result<(), String> {
        let path = self.root().join(path);
        let parent = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)).map_err(|error| error.to_string())
    }

    /// The program with arguments, in the project.
    pub fn cuebook(&self, arguments: &[String]) -> Command {
        self.command(&self.program.to_string_lossy(), arguments)
    }

    /// Runs a program that prepares the project.
    pub fn prepare(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let program = if program == "cuebook" { self.program.to_string_lossy() } else { program.into() };
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        let output = self.command(&program, &arguments).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// A program with arguments, in the project.
    pub fn command(&self, program: &str, arguments: &[String]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("NO_COLOR", "1")
            .current_dir(self.root())
            .stdin(Stdio::null());
        command
    }
}

/// Words as arguments.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// A text for each number, one behind the other.
pub fn each(size: usize, text: impl Fn(usize) -> String) -> String {
    (0..size).map(text).collect()
}
