//! The fence: the sandbox around tools that a model calls.
//!
//! Inside, a tool reads the system and its project, and changes the project except for what carries trust. It sees no other
//! process, none of the user's own folders, and no network but the hosts that it declares and the user granted.
//!
//! | file | what it does |
//! | --- | --- |
//! | `guards.rs` | what of a project a tool cannot change, also where it does not exist yet |
//! | `nested.rs` | repositories deeper in a project, and the folders on the way there |
//! | `readable.rs` | what of the system a tool can read |
//! | `proxy.rs` | the way from a tool to the hosts that it may reach |

mod guards;
mod nested;
mod proxy;
mod readable;

use std::path::{Path, PathBuf};

use cuebook::items::{SpaceKind, Spaces};
use cuebook::library::{FenceSetting, UserConfig};
use cuebook::trust::{Grants, Power, Request, environment_of};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use cuebook_hooks::sandbox::{Launcher, Profile, Protection, Report, Tool};

use crate::anchor::ToolContext;
use crate::chain::Element;
use crate::settings::{Fence, Settings};
use crate::store;

pub(crate) use guards::{Guards, carries_trust};
pub(crate) use proxy::Proxy;

impl Fence {
    /// The protection that a sandbox lacks and without which no tool is fenced, and why it is missing.
    pub fn lacks(report: &Report) -> Option<(Protection, &str)> {
        REQUIRED.into_iter().find_map(|protection| Some((protection, report.why_missing(protection)?)))
    }

    /// Whether the user lifted the fence for a project with `cuebook allow --no-sandbox`, or for all projects in their settings.
    pub fn is_lifted(spaces: &Spaces) -> Result<bool> {
        Ok(UserConfig::read(spaces)?.tools.fence == FenceSetting::Off
            || Grants::of(spaces)?.has(&Request::unfenced()))
    }
}

/// The protections without which no tool is fenced. The number of processes is measured where the kernel does not count it.
const REQUIRED: [Protection; 7] = [
    Protection::View,
    Protection::Files,
    Protection::Network,
    Protection::Processes,
    Protection::SystemCalls,
    Protection::Privileges,
    Protection::Resources,
];

/// Bytes of memory of a tool, all its processes together.
const MEMORY: u64 = 4 << 30;
/// Processes and threads of a tool.
const PROCESSES: u64 = 2048;
/// Open files of each process.
const OPEN_FILES: u64 = 4096;
/// Bytes of a tool's own `/tmp`, which is in memory.
const TEMP_SIZE: u64 = 512 << 20;

/// The fence around one call.
#[derive(Debug, Clone)]
pub(crate) struct Fencing {
    launcher: Launcher,
    project: PathBuf,
    /// The user's `.ai` folder.
    user: Option<PathBuf>,
    /// Files that no tool sees: those of the store, and the log key if a variable names one.
    private: Vec<PathBuf>,
    /// The files of the tool, wherever they lie, and what else the user lets tools read.
    files: Vec<PathBuf>,
    hosts: Vec<String>,
    /// The environments of the project that the user granted.
    environments: Vec<PathBuf>,
}

/// A process that is started in the fence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'s> {
    /// The file of the program, if there is one.
    pub(crate) file: Option<&'s Path>,
    pub(crate) arguments: &'s [String],
    pub(crate) environment: &'s [(String, String)],
    pub(crate) folder: &'s Path,
    pub(crate) input: &'s [u8],
    pub(crate) is_conversation: bool,
}

/// Whether a model makes a call, so that its tool is fenced and gets no secrets.
pub(crate) fn is_for_model(settings: &Settings, is_of_thread: bool) -> bool {
    is_of_thread || matches!(settings.fence, Fence::All | Fence::Required)
}

/// Whether the user lifted the fence: for this run, for the project, or for all projects.
fn is_lifted(settings: &Settings, spaces: &Spaces) -> Result<bool> {
    match settings.fence {
        Fence::Off => Ok(true),
        Fence::Required => Ok(false),
        Fence::All | Fence::Threads => Fence::is_lifted(spaces),
    }
}

/// The files of a store that lies in files, and the log key if a variable names it.
fn private_files(settings: &Settings) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(Ok(Some(file))) = settings.store.as_deref().map(store::file) {
        files.extend(["", "-wal", "-shm", "-journal"].map(|end| {
            let mut name = file.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        }));
    }
    files.extend(std::env::var_os(store::LOG_KEY).map(PathBuf::from));
    files.into_iter().filter_map(|file| std::path::absolute(file).ok()).collect()
}

impl Fencing {
    /// The fence around a call that a model makes; `None` if the user lifted it.
    pub(crate) fn new(
        settings: &Settings,
        spaces: &Spaces,
        chain: &[Element],
        tool_context: &ToolContext,
    ) -> Result<Option<Fencing>> {
        if is_lifted(settings, spaces)? {
            return Ok(None);
        }
        let Some(launcher) = settings.launcher.clone() else {
            return Err(unavailable("this program's settings name no launcher"));
        };
        let root = spaces.project();
        let real = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        if readable::home().is_some_and(|home| home == real) {
            return Err(unavailable("the project is your home folder"));
        }
        Ok(Some(Fencing {
            launcher,
            project: root.to_owned(),
            user: spaces.user_folder(),
            private: private_files(settings),
            files: [tool_context.call_folder.path().to_owned()]
                .into_iter()
                .chain(UserConfig::read(spaces)?.tools.readable())
                .collect(),
            hosts: granted_hosts(spaces, chain)?,
            environments: granted_environments(spaces)?,
        }))
    }

    /// The hosts that the tool may reach.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The program that starts the tool.
    pub(crate) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Guards what the tool may not change, for as long as the result lives.
    pub(crate) fn guards(&self) -> std::io::Result<Guards> {
        let home = readable::home();
        Guards::new(&self.project, self.user.as_deref(), &self.private, home, &self.environments)
    }

    /// What is started, and what it is given.
    pub(crate) fn profile(&self, start: &Start<'_>, guards: &Guards) -> std::io::Result<Profile> {
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "No such file or directory");
        let program = start.file.map(Path::to_owned).ok_or_else(missing)?;
        let mut readable = readable::system();
        readable.extend(readable::of_program(&program, &self.project));
        readable.extend(self.files.iter().filter(|path| path.exists()).cloned());
        Ok(Profile {
            program,
            arguments: start.arguments.iter().map(Into::into).collect(),
            environment: start.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            readable,
            folder: start.folder.to_owned(),
            memory: MEMORY,
            total_memory: MEMORY,
            processes: PROCESSES,
            open_files: OPEN_FILES,
            temp_size: TEMP_SIZE,
            // The time of a call is limited by the clock.
            cpu: std::time::Duration::MAX,
            without: Vec::new(),
            tool: Some(Tool {
                writable: [self.project.clone()].into_iter().chain(guards.ways()).collect(),
                guarded: guards.guarded().to_vec(),
                hidden: guards.hidden().to_vec(),
                input: start.input.to_vec(),
                is_fed: start.is_conversation,
                proxy: !self.hosts.is_empty(),
                required: REQUIRED.to_vec(),
            }),
        })
    }
}

/// The hosts that a tool declares, if the user granted them. Tools of the user's own and of the program need no grant.
fn granted_hosts(spaces: &Spaces, chain: &[Element]) -> Result<Vec<String>> {
    let Some(tool) = chain.first() else { return Ok(Vec::new()) };
    let hosts = tool.tool.hosts();
    if hosts.is_empty() || tool.located.space != SpaceKind::Project {
        return Ok(hosts);
    }
    Grants::of(spaces)?.require(&Request::hosts(tool.id(), &hosts))?;
    Ok(hosts)
}

/// The folders of the environments in the project whose programs the user granted. A grant is bound to what they hold, and a tool
/// could change them after the next check.
fn granted_environments(spaces: &Spaces) -> Result<Vec<PathBuf>> {
    let grants = Grants::of(spaces)?;
    let programs = grants.list().filter(|grant| grant.power == Power::Interpreter);
    let folders = programs.filter_map(|grant| environment_of(&spaces.project().join(&grant.subject)));
    Ok(folders.collect())
}

/// The error where a tool cannot be fenced.
pub(crate) fn unavailable(why: &str) -> Error {
    let diagnostic =
        Diagnostic::new(Code::FenceUnavailable, format!("the tool cannot run in the sandbox: {why}")).hint(
            Hint::command_line(
                "cuebook doctor shows what is missing; --no-sandbox runs tools without the sandbox",
            )
            .with_command("cuebook doctor"),
        );
    Error::new(ErrorKind::Execute, diagnostic)
}

/// The folder that a path lies in, if it is not the path's root.
fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| *parent != Path::new("/"))
}
