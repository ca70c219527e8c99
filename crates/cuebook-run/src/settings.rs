//! The settings of an engine.

use std::path::PathBuf;
use std::time::Duration;

use cuebook_hooks::sandbox::Launcher;

use crate::policy::allowance::Allowance;

/// What holds for every tool unless it says less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a tool may take whose runtime does not say.
    pub timeout: Duration,
    /// The time between asking a tool to end and ending it.
    pub grace: Duration,
    /// The bytes of each of a tool's streams that are kept; a tool may say more, and what is over is not kept.
    pub output: usize,
    /// Where threads are kept: the address of a database or the path of a file; a file of the project if it is `None`.
    pub store: Option<String>,
    /// The program that runs threads without a waiter; the `cuebook` on the PATH if it is `None`.
    pub program: Option<PathBuf>,
    /// The provider that all threads ask, whatever their prompts name.
    pub provider: Option<String>,
    /// Recorded replies that are played back instead of asking a provider.
    pub replay: Option<PathBuf>,
    /// Where the replies of providers are recorded.
    pub record: Option<PathBuf>,
    /// What the engine may do for its clients and their threads; everything, for its user, if it is `None`. With it, other
    /// projects need a grant of the user.
    pub allowance: Option<Allowance>,
    /// Which tools run in the sandbox.
    pub fence: Fence,
    /// The program that starts tools in the sandbox: [`Launcher::this_program`] if its `main` calls
    /// [`launch_if_asked`](cuebook_hooks::sandbox::launch_if_asked). Without one, a tool that a model calls is refused unless
    /// the fence is off.
    pub launcher: Option<Launcher>,
    /// Names of environment variables that hold secrets. No tool that a model calls gets them.
    pub secret_variables: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            timeout: Duration::from_secs(300),
            grace: Duration::from_secs(3),
            output: 16 << 20,
            store: None,
            program: None,
            provider: None,
            replay: None,
            record: None,
            allowance: None,
            fence: Fence::default(),
            launcher: None,
            secret_variables: Vec::new(),
        }
    }
}

/// Which tools run in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fence {
    /// Every tool. Neither a grant nor a setting of the user lifts it.
    Required,
    /// Every tool: a model calls them all.
    All,
    /// The tools of threads: a model calls those.
    #[default]
    Threads,
    /// No tool.
    Off,
}
