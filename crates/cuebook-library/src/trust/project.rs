//! What a project asks for with files other than its settings: an interpreter of its own, and its `.env`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::sha256::{Sha256, hex};

use super::stamps::Stamps;
use super::{Power, Request};
use crate::error::Result;
use crate::files;
use crate::items::Spaces;

/// The project's file of environment variables.
const ENV_FILE: &str = ".env";
/// The largest `.env` that is read.
const LARGEST_ENV_FILE: u64 = 1 << 20;
/// The largest program whose text is shown.
const LARGEST_SHOWN: u64 = 64 << 10;
/// The largest `pyvenv.cfg`.
const LARGEST_SETTINGS: u64 = 64 << 10;

/// The request for a project's `.env`, and the text that it is about; none if there is no such file.
pub fn env_file_request(project: &Path) -> Result<Option<(Request, String)>> {
    let path = project.join(ENV_FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let source = files::read_text_inside(project, &path, ENV_FILE, LARGEST_ENV_FILE)?;
    let text = source.text().to_owned();
    Ok(Some((Request::new(Power::EnvFile, ENV_FILE, &text), text)))
}

/// Whether a program lies in a project, by its name or by where its links lead.
pub fn is_inside(project: &Path, program: &Path) -> bool {
    let project = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    let absolute = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    // The folder is resolved and the last part is not: a link in the project is the project's, wherever it leads.
    let folder =
        absolute.parent().map(|folder| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()));
    folder.is_some_and(|folder| folder.starts_with(&project))
        || normal(&absolute).starts_with(&project)
        || fs::canonicalize(&absolute).is_ok_and(|resolved| resolved.starts_with(&project))
}

/// The request for an interpreter; none if it does not lie in the project.
///
/// A grant binds the text of a script and the bytes of a program. Of an environment (a folder with `pyvenv.cfg`, or
/// `node_modules`) it binds `pyvenv.cfg`, where the interpreter's links lead, and of every other file its path, size, and times of
/// last change, except what lies in `__pycache__`. Those are cheap to compare, and no program can set the time of the last change
/// (ctime) of a file. Places of the project that the environment leads to are part of it ([`Stamps`]).
pub fn interpreter_request(project: &Path, program: &Path) -> Result<Option<Request>> {
    Ok(project_program(project, program)?.map(|program| program.request))
}

/// A program that lies in a project.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProjectProgram {
    /// What a user grants.
    pub request: Request,
    /// The bytes that the request binds: only these may run. None for a program of an environment, which runs from its folder.
    pub bytes: Option<Vec<u8>>,
}

/// The program of a project with the request for it (see [`interpreter_request`]); none if it does not lie in the project.
pub fn project_program(project: &Path, program: &Path) -> Result<Option<ProjectProgram>> {
    if !is_inside(project, program) {
        return Ok(None);
    }
    let name = files::display_name(project, program);
    let mut shown = format!("program = {name}\n");
    let links = links(program);
    for link in &links {
        // Writing to a String cannot fail.
        let _ = writeln!(shown, "leads to = {}", files::display_name(project, link));
    }
    let environment = environment_of(program);
    let (bound, bytes) = match &environment {
        Some(folder) => {
            if let Ok(settings) = files::read_text_inside(
                folder,
                &folder.join("pyvenv.cfg"),
                &format!("{}/pyvenv.cfg", files::display_name(project, folder)),
                LARGEST_SETTINGS,
            ) {
                let _ = writeln!(shown, "pyvenv.cfg:\n{}", settings.text().trim_end());
            }
            let stamps = Stamps::of_environment(project, folder)?;
            for place in stamps.places() {
                let _ = writeln!(shown, "runs code of = {}", files::display_name(project, place));
            }
            let _ = writeln!(shown, "files = {}", stamps.files());
            (stamps.digest(), None)
        }
        None => {
            let bytes = files::read_bytes(program, &name, u64::from(u32::MAX))?;
            let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() as u64 <= LARGEST_SHOWN);
            match text {
                Some(text) => {
                    let _ = writeln!(shown, "{text}");
                }
                None => {
                    let _ = writeln!(shown, "bytes = {}", bytes.len());
                }
            }
            (hex(&Sha256::digest(&bytes)), Some(bytes))
        }
    };
    // The last target can lie outside the project; which program it is counts, not what is in it.
    let request = Request::new(Power::Interpreter, name, shown).bound_to(&bound);
    Ok(Some(ProjectProgram { request, bytes }))
}

/// The folder of the environment that a program belongs to: a virtual environment of Python, or `node_modules`.
pub fn environment_of(program: &Path) -> Option<PathBuf> {
    let beside = program.parent()?;
    let above = beside.parent()?;
    let found = [beside, above].into_iter().find(|folder| {
        folder.join("pyvenv.cfg").is_file() || folder.file_name().is_some_and(|name| name == "node_modules")
    });
    found.map(Path::to_owned)
}

/// Every link that leads on from a path.
fn links(path: &Path) -> Vec<PathBuf> {
    let mut path = path.to_owned();
    let mut links = Vec::new();
    while let Ok(target) = fs::read_link(&path)
        && links.len() < 40
    {
        path = normal(&path.parent().unwrap_or(Path::new("/")).join(target));
        links.push(path.clone());
    }
    links
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            component => normal.push(component),
        }
    }
    normal
}

/// Whether code that sees a folder sees the user's keys: the folder is the home folder, or one above it, or it holds the user's
/// `.ai` or lies in it.
pub fn holds_secrets(spaces: &Spaces, folder: &Path) -> bool {
    let resolved = |path: PathBuf| fs::canonicalize(&path).unwrap_or(path);
    let folder = resolved(folder.to_owned());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).map(resolved);
    let user = spaces.user_folder().map(resolved);
    home.is_some_and(|home| home.starts_with(&folder))
        || user.is_some_and(|user| user.starts_with(&folder) || folder.starts_with(&user))
}
