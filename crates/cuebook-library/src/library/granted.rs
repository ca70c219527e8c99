//! The settings of a project as far as its user granted them.
//!
//! A setting that only narrows (a lower limit) or that stays inside the project has its effect at once. One that reaches
//! further than the user's own settings is a request: without a grant the user's own setting counts, or the default.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::config::{CONFIG_FILE, Config, UserConfig};
use super::{Library, SandboxLevel};
use crate::error::Result;
use crate::files::{self, Stamp};
use crate::limits::SETTINGS_BYTES;
use crate::notation::toml::written;
use crate::source::Source;
use crate::trust::{self, Granted, Grants, Power, Request};

/// A setting that can ask for more than the user allows to every project.
struct Setting {
    section: &'static str,
    key: &'static str,
    /// Whether a project's settings ask for more than those of the user.
    asks: fn(&Config, &Config, &Path) -> bool,
    /// Takes the user's own value instead.
    reset: fn(&mut Config, &Config, &Path),
}

macro_rules! setting {
    ($section:ident . $key:ident, $asks:expr) => {
        Setting {
            section: stringify!($section),
            key: stringify!($key),
            asks: $asks,
            reset: |project, user, _| project.$section.$key.clone_from(&user.$section.$key),
        }
    };
    (more $section:ident . $key:ident) => {
        setting!($section.$key, |project, user, _| project.$section.$key > user.$section.$key)
    };
}

/// Every setting that carries power. A new limit belongs here; a test counts them.
const SETTINGS: [Setting; 20] = [
    Setting {
        section: "library",
        key: "paths",
        asks: |project, _, root| project.library.paths.iter().any(|path| is_outside(path, root)),
        reset: |project, _, root| project.library.paths.retain(|path| !is_outside(path, root)),
    },
    Setting {
        section: "library",
        key: "vocab",
        asks: |project, _, root| project.library.vocab.as_ref().is_some_and(|path| is_outside(path, root)),
        reset: |project, _, root| {
            project.library.vocab = project.library.vocab.take().filter(|path| !is_outside(path, root))
        },
    },
    setting!(more limits.file_size),
    setting!(more limits.fuel),
    setting!(more limits.render_seconds),
    setting!(more limits.recursion),
    setting!(more limits.include_depth),
    setting!(more limits.string_bytes),
    setting!(more limits.items),
    setting!(hooks.enabled, |project, user, _| project.hooks.enabled && !user.hooks.enabled),
    setting!(hooks.python, |project, user, _| project.hooks.python != user.hooks.python),
    setting!(hooks.sandbox, |project, user, _| weaker(project.hooks.sandbox, user.hooks.sandbox)),
    setting!(more hooks.memory),
    setting!(more hooks.processes),
    setting!(more hooks.open_files),
    setting!(more hooks.temp_size),
    setting!(more hooks.workers),
    setting!(more hooks.idle_seconds),
    setting!(hooks.http_hosts, |project, user, _| {
        project.hooks.http_hosts.iter().any(|host| !user.hooks.http_hosts.contains(host))
    }),
    setting!(hooks.readable, |project, user, _| {
        project.hooks.readable.iter().any(|path| !user.hooks.readable.contains(path))
    }),
];

fn weaker(project: SandboxLevel, user: SandboxLevel) -> bool {
    project < user
}

/// Whether a path of the settings leads out of the project by its name. Links are checked when a file is opened.
fn is_outside(path: &Path, root: &Path) -> bool {
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let mut normal = PathBuf::new();
    for component in root.join(path).components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            component => normal.push(component),
        }
    }
    !normal.starts_with(&root)
}

/// A project's settings, and what they ask for.
struct RequestedSettings {
    config: Config,
    user: Config,
    requests: Vec<(&'static Setting, Request)>,
}

impl RequestedSettings {
    /// Reads a project's settings. A key that the project does not set has the user's value.
    fn read(source: Option<&Arc<Source>>, user: UserConfig, root: &Path) -> Result<RequestedSettings> {
        let user = Config { limits: user.limits, hooks: user.hooks, ..Config::default() };
        let mut config = source.map(Config::read).transpose()?.unwrap_or_default();
        let table: toml::Table =
            source.and_then(|source| toml::from_str(source.text()).ok()).unwrap_or_default();
        let mut requests = Vec::new();
        for setting in &SETTINGS {
            let value = table.get(setting.section).and_then(|section| section.get(setting.key));
            match value {
                Some(value) if (setting.asks)(&config, &user, root) => {
                    let subject = format!("{}.{}", setting.section, setting.key);
                    let shown = format!("{subject} = {}\n", written(value));
                    requests.push((setting, Request::new(Power::Setting, subject, shown)));
                }
                Some(_) => {}
                None => (setting.reset)(&mut config, &user, root),
            }
        }
        Ok(RequestedSettings { config, user, requests })
    }

    /// The settings with what the user granted.
    fn granted(self, grants: &Grants, root: &Path) -> Config {
        let RequestedSettings { mut config, user, requests } = self;
        for (setting, request) in requests {
            let state = grants.state(&request);
            if state == Granted::Yes {
                continue;
            }
            (setting.reset)(&mut config, &user, root);
            if request.subject == "hooks.python" {
                config.hooks.ungranted_python = Some((request.clone(), state));
            }
            config.ungranted.push((request, state));
        }
        config
    }
}

/// Settings that are read again only when a file changed that they depend on.
#[derive(Debug, Default)]
pub(super) struct Settings(Mutex<Option<CachedSettings>>);

/// The files that settings were read from, and the settings.
type CachedSettings = (Vec<(PathBuf, Option<Stamp>)>, Arc<Config>);

impl Library {
    /// The settings, as they are now: those of the project as far as its user granted them, then those of the user.
    pub fn config(&self) -> Result<Arc<Config>> {
        // An unsaved text has no stamp.
        if self.settings_files().iter().any(|path| files::is_unsaved(path)) {
            return self.read_config().map(Arc::new);
        }
        let mut known = self.settings.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((files, config)) = &*known
            && files.iter().all(|(path, stamp)| is_unchanged(path, stamp))
        {
            return Ok(config.clone());
        }
        // Stamped before anything is read, so that a change in between is noticed.
        let stamped: Vec<(PathBuf, Option<Stamp>)> = self
            .settings_files()
            .into_iter()
            .map(|path| {
                let stamp = Stamp::of(&path);
                (path, stamp)
            })
            .collect();
        let config = Arc::new(self.read_config()?);
        *known = Some((stamped, config.clone()));
        Ok(config)
    }

    fn read_config(&self) -> Result<Config> {
        let asked = self.requested_settings()?;
        // A damaged file of grants must not keep a project from working that asks for nothing.
        let grants = if asked.requests.is_empty() { Grants::default() } else { self.grants()? };
        Ok(asked.granted(&grants, &self.root))
    }

    /// The files that the settings are read from.
    pub(super) fn settings_files(&self) -> Vec<PathBuf> {
        let user = self.spaces().user_folder().map(|user| user.join(UserConfig::FILE));
        let grants = trust::file_of(self.spaces(), trust::GRANTS).map(|(path, _)| path);
        [self.root.join(CONFIG_FILE)].into_iter().chain(user).chain(grants).collect()
    }

    fn requested_settings(&self) -> Result<RequestedSettings> {
        let path = self.root.join(CONFIG_FILE);
        let user = UserConfig::read(self.spaces())?;
        let found = files::look(&path).map_err(|error| files::io_error(CONFIG_FILE, &error))?;
        let is_there = found.is_some() || files::is_unsaved(&path);
        let read = || files::read_text_inside(&self.root, &path, CONFIG_FILE, SETTINGS_BYTES);
        let source = is_there.then(read).transpose()?;
        RequestedSettings::read(source.as_ref(), user, &self.root)
    }

    /// What the user granted this project.
    #[doc(hidden)]
    pub fn grants(&self) -> Result<Grants> {
        Grants::of(self.spaces())
    }

    /// Everything that the project asks for, granted or not.
    #[doc(hidden)]
    pub fn requests(&self) -> Result<Vec<Request>> {
        let asked = self.requested_settings()?;
        let mut requests: Vec<Request> = asked.requests.iter().map(|(_, request)| request.clone()).collect();
        let mut programs = Vec::new();
        if asked.config.hooks.python.contains('/') {
            programs.push(self.root.join(&asked.config.hooks.python));
        }
        requests.extend(self.env_requests()?);
        requests.extend(self.tool_replacements()?);
        // Only tools use what follows.
        if self.root.join(".ai/tools").is_dir() {
            programs.extend(environment_program(&self.root));
            requests.extend(trust::env_file_request(&self.root)?.map(|(request, _)| request));
            for request in trust::tool_requests(self.spaces())? {
                if requests.iter().all(|known| known.subject != request.subject) {
                    requests.push(request);
                }
            }
        }
        for program in programs.iter().filter(|program| program.is_file()) {
            let request = trust::interpreter_request(&self.root, program)?;
            requests.extend(request.filter(|new| requests.iter().all(|known| known.subject != new.subject)));
        }
        Ok(requests)
    }
}

/// A link that leads nowhere is a change: its settings cannot be read.
fn is_unchanged(path: &Path, earlier: &Option<Stamp>) -> bool {
    let found = files::look(path);
    found.is_ok_and(|found| Stamp::proves_unchanged(&found.as_ref().map(Stamp::from_metadata), earlier))
}

/// The interpreter of the project's virtual environment that tools would use.
fn environment_program(root: &Path) -> Option<PathBuf> {
    let programs = [".venv/bin/python", ".venv/bin/python3", "venv/bin/python", "venv/bin/python3"];
    programs.into_iter().map(|program| root.join(program)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::Spaces;
    use jiff::Timestamp;

    struct Project {
        folder: tempfile::TempDir,
    }

    impl Project {
        fn new(project: &str, user: &str) -> Project {
            let folder = tempfile::tempdir().unwrap();
            let new = Project { folder };
            std::fs::create_dir_all(new.path("project")).unwrap();
            std::fs::create_dir_all(new.path("user/.ai/config")).unwrap();
            std::fs::write(new.path("project/cuebook.toml"), project).unwrap();
            std::fs::write(new.path("user/.ai/config/cuebook.toml"), user).unwrap();
            new
        }

        fn path(&self, below: &str) -> PathBuf {
            self.folder.path().join(below)
        }

        fn library(&self) -> Library {
            let root = self.path("project");
            let spaces = Spaces::new(&root, Some(&self.path("user")));
            Library::open(root).with_spaces(spaces)
        }
    }

    fn subjects(config: &Config) -> Vec<&str> {
        config.ungranted.iter().map(|(request, _)| request.subject.as_str()).collect()
    }

    #[test]
    fn a_setting_with_power_needs_a_grant() {
        let text = "[library]\npaths = [\"in\", \"../out\"]\nvocab = \"/v.json\"\n[limits]\nfile_size = 99999999\nfuel = 99999999999\n\
            render_seconds = 11\nrecursion = 9999\ninclude_depth = 999\nstring_bytes = 9999999999\nitems = 99999999\n[hooks]\nenabled = true\n\
            python = \"perl\"\nsandbox = \"none\"\nmemory = 9999999999\nprocesses = 999\nopen_files = 9999\n\
            temp_size = 999999999\nworkers = 99\nidle_seconds = 999\nhttp_hosts = [\"localhost\"]\nreadable = [\"/\"]\n";
        let project = Project::new(text, "[hooks]\nenabled = false\n");
        let library = project.library();
        let config = library.config().unwrap();
        assert_eq!(config.ungranted.len(), SETTINGS.len(), "{:?}", subjects(&config));
        assert_eq!(config.library.paths, [PathBuf::from("in")]);
        assert_eq!(config.hooks.python, "python3");
        assert!(config.hooks.ungranted_python.is_some());
        assert_eq!((config.limits.clone(), config.hooks.http_hosts.len()), (Config::default().limits, 0));
        let mut grants = library.grants().unwrap();
        grants.allow(&library.requests().unwrap(), Timestamp::UNIX_EPOCH).unwrap();
        let config = library.config().unwrap();
        assert_eq!(subjects(&config), [""; 0]);
        assert_eq!((config.hooks.python.as_str(), config.limits.recursion), ("perl", 9999));
    }

    #[test]
    fn lower_limits_need_no_grant_and_changed_ones_a_new_one() {
        let project = Project::new("[limits]\nfuel = 7\n[hooks]\nmemory = 600000000\n", "");
        let library = project.library();
        assert_eq!(library.config().unwrap().limits.fuel, 7);
        assert_eq!(subjects(&library.config().unwrap()), ["hooks.memory"]);
        library.grants().unwrap().allow(&library.requests().unwrap(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(library.config().unwrap().hooks.memory, 600_000_000);
        std::fs::write(project.path("project/cuebook.toml"), "[hooks]\nmemory = 700000000\n").unwrap();
        let config = library.config().unwrap();
        assert_eq!(config.hooks.memory, Config::default().hooks.memory);
        assert_eq!(config.ungranted[0].1, Granted::Changed);
    }

    #[test]
    fn settings_of_the_user_hold_for_all_projects_without_a_grant() {
        let user =
            "[hooks]\npython = \"/opt/python\"\nhttp_hosts = [\"localhost\"]\n[limits]\nfuel = 9000000\n";
        let project = Project::new("[limits]\nfuel = 8000000\n[hooks]\nhttp_hosts = [\"localhost\"]\n", user);
        let config = project.library().config().unwrap();
        assert_eq!(subjects(&config), [""; 0]);
        assert_eq!((config.limits.fuel, config.hooks.python.as_str()), (8_000_000, "/opt/python"));
    }

    #[test]
    fn every_limit_is_a_setting_with_power() {
        let limits = super::super::config::LimitsConfig::default();
        let count = format!("{limits:?}").matches(": ").count();
        assert_eq!(SETTINGS.iter().filter(|setting| setting.section == "limits").count(), count);
        // `ungranted_python` is no setting.
        let hooks = format!("{:?}", Config::default().hooks).matches(": ").count() - 1;
        assert_eq!(SETTINGS.iter().filter(|setting| setting.section == "hooks").count(), hooks);
    }
}
