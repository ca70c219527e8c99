//! `cuebook.toml`: the settings of a project. All of it is optional.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::environment::PromptsConfig;
use super::mcp::McpConfig;
use super::tools::{ToolsConfig, absolute_paths};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
use crate::files;
use crate::items::{self, Spaces};
use crate::json::quoted;
use crate::limits::{FILE_BYTES, SETTINGS_BYTES};
use crate::notation::toml_error::toml_error;
use crate::prompt::Wording;
use crate::source::Source;
use crate::template::jinja;
use crate::trust::{Granted, Request};

/// The file's name.
pub const CONFIG_FILE: &str = "cuebook.toml";

/// The settings of a project.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where prompts are looked for beside the usual places.
    pub library: LibraryConfig,
    /// How far reading and rendering may go.
    pub limits: LimitsConfig,
    /// How templates treat white space.
    pub template: TemplateConfig,
    /// How hooks and variable providers run.
    pub hooks: HooksConfig,
    /// What the prompts of directives say beside what their authors wrote.
    pub directives: Wording,
    /// Settings of the project that have no effect, because its user has not granted them.
    #[serde(skip)]
    pub ungranted: Vec<(Request, Granted)>,
}

/// `~/.ai/config/cuebook.toml`: the settings of a user, for all projects. A project that asks for more needs a grant.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct UserConfig {
    /// How far reading and rendering may go.
    pub limits: LimitsConfig,
    /// How hooks and variable providers run.
    pub hooks: HooksConfig,
    /// What MCP clients may do.
    pub mcp: McpConfig,
    /// How tools run.
    pub tools: ToolsConfig,
    /// What prompts may read.
    pub prompts: PromptsConfig,
}

impl UserConfig {
    /// The file below the user's `.ai`.
    pub const FILE: &'static str = "config/cuebook.toml";

    /// Reads the settings of the user; a user without the file has the defaults.
    pub fn read(spaces: &Spaces) -> Result<UserConfig> {
        let Some(user) = spaces.user_folder() else { return Ok(UserConfig::default()) };
        let (path, name) = (user.join(Self::FILE), format!("{}/{}", items::user_name(&user), Self::FILE));
        if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_none() {
            return Ok(UserConfig::default());
        }
        let source = files::read_text(&path, &name, SETTINGS_BYTES)?;
        let config: UserConfig = parse(&source)?;
        let settings = Config { limits: config.limits, hooks: config.hooks, ..Config::default() };
        settings.check(&source)?;
        Ok(UserConfig { limits: settings.limits, hooks: settings.hooks, ..config })
    }
}

/// `[library]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LibraryConfig {
    /// Further folders with prompts, relative to the project.
    pub paths: Vec<PathBuf>,
    /// The user's vocabulary; `user_data/shared/vocab.json` if not given.
    pub vocab: Option<PathBuf>,
    /// The language of renders whose caller names none.
    pub language: Option<String>,
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Bytes of one file.
    pub file_size: u64,
    /// Instructions of one render.
    pub fuel: u64,
    /// Seconds of one render.
    pub render_seconds: u64,
    /// Nesting of macros, includes and blocks.
    pub recursion: usize,
    /// Templates that include each other in a row.
    pub include_depth: usize,
    /// Bytes of one string that a template builds.
    pub string_bytes: usize,
    /// Items of one list that a template builds.
    pub items: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let engine = jinja::Settings::default();
        LimitsConfig {
            file_size: FILE_BYTES,
            fuel: engine.fuel,
            render_seconds: engine.seconds,
            recursion: engine.recursion,
            include_depth: engine.include_depth,
            string_bytes: engine.string_bytes,
            items: engine.items,
        }
    }
}

/// `[template]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TemplateConfig {
    /// Drop the newline behind a block tag.
    pub trim_blocks: bool,
    /// Drop white space before a block tag.
    pub lstrip_blocks: bool,
    /// Keep a template's last newline.
    pub keep_trailing_newline: bool,
}

/// `[hooks]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HooksConfig {
    /// Whether hooks and providers run at all.
    pub enabled: bool,
    /// The Python that runs them: a name on the PATH, or a path; a relative path is one below the project.
    pub python: String,
    /// The least protection that hooks and providers run under.
    pub sandbox: SandboxLevel,
    /// Bytes of memory of each process, and of all processes of a worker together.
    pub memory: u64,
    /// Processes and threads of one worker.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Bytes of a worker's private temporary folder, and of each file in it.
    pub temp_size: u64,
    /// Workers that are kept at most.
    pub workers: usize,
    /// Seconds after which an unused worker ends.
    pub idle_seconds: u64,
    /// Hosts on this machine or in a private network that hooks may ask, as in `localhost:8080`; public ones need no entry.
    pub http_hosts: Vec<String>,
    /// Further files and folders that hooks can read, as in the `.git` of a repository that the workspace is a part of.
    pub readable: Vec<PathBuf>,
    /// The project names another Python and its user has not granted it: hooks do not run.
    #[serde(skip)]
    pub ungranted_python: Option<(Request, Granted)>,
}

impl Default for HooksConfig {
    fn default() -> Self {
        HooksConfig {
            enabled: true,
            python: "python3".into(),
            sandbox: SandboxLevel::Full,
            memory: 512 << 20,
            processes: 32,
            open_files: 256,
            temp_size: 64 << 20,
            workers: 8,
            idle_seconds: 60,
            http_hosts: Vec::new(),
            readable: Vec::new(),
            ungranted_python: None,
        }
    }
}

impl HooksConfig {
    /// The further files and folders that hooks can read, without links; those that exist.
    pub fn readable(&self) -> Vec<PathBuf> {
        absolute_paths(&self.readable).iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect()
    }
}

/// How well a worker is fenced in. Later ones are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// A clean environment and the limits of a process; nothing more is certain.
    None,
    /// It can read nothing but what it is given, write nothing, and has no network; it may learn the names of other files
    /// and processes.
    Reduced,
    /// It sees nothing but what it is given.
    #[default]
    Full,
}

impl SandboxLevel {
    /// The word for it in `cuebook.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            SandboxLevel::None => "none",
            SandboxLevel::Reduced => "reduced",
            SandboxLevel::Full => "full",
        }
    }
}

/// The largest recursion limit that a 1 MB stack of ours bears together with the engine's own stack growth.
const MAX_RECURSION: usize = 10_000;

/// A Python that has less does not even start.
const LEAST_MEMORY: u64 = 64 << 20;

/// Offsets into a text are kept in 32 bits, and marking a template up makes it longer.
const MAX_FILE_SIZE: u64 = (u32::MAX / 4) as u64;

impl Config {
    /// Reads the settings.
    pub fn read(source: &Arc<Source>) -> Result<Config> {
        let config: Config = parse(source)?;
        config.check(source)?;
        Ok(config)
    }

    fn check(&self, source: &Arc<Source>) -> Result<()> {
        let limits = &self.limits;
        let wrong = |key: &str, message: String, hint: &str| {
            let diagnostic =
                Diagnostic::new(Code::BadConfig, message).at(source.place(key_range(source, key)));
            Err(Error::new(ErrorKind::Config, diagnostic.hint(hint)))
        };
        if limits.recursion > MAX_RECURSION {
            let message = format!("`limits.recursion` can be at most {MAX_RECURSION}");
            return wrong("recursion", message, "the default of 500 is enough for most templates");
        }
        if limits.file_size > MAX_FILE_SIZE {
            let message = format!("`limits.file_size` can be at most {MAX_FILE_SIZE}");
            return wrong("file_size", message, "the default is 4194304 bytes");
        }
        let hooks = &self.hooks;
        if hooks.python.is_empty() {
            let hint = "name a program, as in \"python3\"";
            return wrong("python", "`hooks.python` is empty".into(), hint);
        }
        if hooks.memory < LEAST_MEMORY {
            let message = format!("`hooks.memory` must be at least {LEAST_MEMORY}, which Python needs");
            return wrong("memory", message, "the default is 536870912 bytes");
        }
        for (key, value, least) in [("processes", hooks.processes, 1), ("open_files", hooks.open_files, 16)] {
            if value < least {
                let message = format!("`hooks.{key}` must be at least {least}");
                return wrong(key, message, "remove the setting to use the default");
            }
        }
        for host in &hooks.http_hosts {
            if !is_host(host) {
                let message = format!("`hooks.http_hosts` has an invalid host {}", quoted(host));
                return wrong(
                    "http_hosts",
                    message,
                    "write \"localhost\", \"localhost:8080\" or \"[::1]:80\"",
                );
            }
        }
        for path in &self.library.paths {
            if path.as_os_str().is_empty() {
                let message = "`library.paths` has an empty entry".into();
                return wrong("paths", message, "name a folder, or remove the entry");
            }
        }
        Ok(())
    }

    /// The one warning about settings of the project that have no effect.
    pub fn ungranted_warning(&self) -> Option<Diagnostic> {
        let names: Vec<String> =
            self.ungranted.iter().map(|(request, _)| format!("`{}`", request.subject)).collect();
        (!names.is_empty()).then(|| {
            let them = if names.len() == 1 { "it" } else { "them" };
            let message =
                format!("Cuebook ignores {}, because you have not granted {them}", names.join(", "));
            Diagnostic::new(Code::GrantNeeded, message)
                .severity(Severity::Warning)
                .file(CONFIG_FILE)
                .hint(Hint::run("review what this project asks for", "cuebook allow"))
        })
    }

    /// How templates of this project are read and how far they may go.
    pub fn template_settings(&self, strict: bool) -> jinja::Settings {
        jinja::Settings {
            style: jinja::Style::Python,
            fuel: self.limits.fuel,
            seconds: self.limits.render_seconds,
            recursion: self.limits.recursion,
            include_depth: self.limits.include_depth,
            string_bytes: self.limits.string_bytes,
            items: self.limits.items,
            strict,
            trim_blocks: self.template.trim_blocks,
            lstrip_blocks: self.template.lstrip_blocks,
            keep_trailing_newline: self.template.keep_trailing_newline,
            keep_empty: false,
            salvage: false,
            extensions: jinja::Extensions::default(),
        }
    }

    /// The root of the project that a folder belongs to: the nearest one above that has a `cuebook.toml`, `user_data` or `.ai`,
    /// or the folder itself. The user's own `.ai` makes no project of everything below their home.
    pub fn find_root(start: &Path) -> PathBuf {
        let user = Spaces::of_project(start).user_folder();
        start
            .ancestors()
            .find(|folder| {
                let settings = folder.join(CONFIG_FILE);
                // A link makes a project wherever it leads: one that leads nowhere is an error of that project.
                settings.is_file()
                    || settings.is_symlink()
                    || folder.join("user_data").is_dir()
                    || Some(folder.join(items::FOLDER))
                        .is_some_and(|items| items.is_dir() && Some(&items) != user.as_ref())
            })
            .unwrap_or(start)
            .to_owned()
    }
}

/// Reads a file of settings.
fn parse<T: serde::de::DeserializeOwned>(source: &Arc<Source>) -> Result<T> {
    toml::from_str(source.text())
        .map_err(|error| toml_error(source, Code::BadConfig, ErrorKind::Config, &error))
}

/// Where a key is set: the word at the beginning of its line, or wherever it is if it stands in a table on one line.
fn key_range(source: &Source, key: &str) -> std::ops::Range<usize> {
    let text = source.text();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if let Some(rest) = line.trim_start().strip_prefix(key)
            && rest.trim_start().starts_with('=')
        {
            return start + indent..start + indent + key.len();
        }
        start += line.len();
    }
    let at = text.find(key).unwrap_or_default();
    at..at + key.len()
}

/// Whether something can be the host of an address, with or without a port.
fn is_host(text: &str) -> bool {
    let is_v6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    let text = text.trim();
    let (host, port) = match text.rsplit_once(':') {
        // `::1` ends in what looks like a port, and so does `[::1]`.
        Some((host, port)) if !is_v6(text) && !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let named = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "/:@[]?#\\".contains(c));
    (named || inside.is_some_and(is_v6) || is_v6(host))
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        Config::read(&Source::new(CONFIG_FILE, text))
    }

    #[test]
    fn an_empty_file_gives_the_defaults() {
        assert_eq!(read("").unwrap(), Config::default());
        assert_eq!(Config::default().template_settings(false), jinja::Settings::default());
    }

    #[test]
    fn the_page_of_the_code_lists_every_setting_with_its_default() {
        let page = Code::BadConfig.page();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let listed = read(rest.split("```").next().unwrap()).unwrap();
        let library = LibraryConfig {
            vocab: Some("user_data/shared/vocab.json".into()),
            language: Some("en".into()),
            ..LibraryConfig::default()
        };
        assert_eq!(listed, Config { library, ..Config::default() });
        let limits =
            ["file_size", "fuel", "render_seconds", "recursion", "include_depth", "string_bytes", "items"];
        let hooks = [
            "enabled",
            "python",
            "sandbox",
            "memory",
            "processes",
            "open_files",
            "temp_size",
            "workers",
            "idle_seconds",
            "http_hosts",
            "readable",
        ];
        for key in limits.iter().chain(&hooks) {
            assert!(rest.contains(&format!("\n{key} = ")), "{key}");
        }
    }

    #[test]
    fn every_setting_is_read() {
        let config = read(
            "[library]\npaths = [\"team\"]\nvocab = \"v.json\"\nlanguage = \"ja\"\n[limits]\nfuel = 7\nrender_seconds = 6\nfile_size = 9\n\
             recursion = 8\ninclude_depth = 3\nstring_bytes = 4\nitems = 5\n[template]\ntrim_blocks = true\n\
             lstrip_blocks = true\nkeep_trailing_newline = true\n",
        )
        .unwrap();
        let settings = config.template_settings(true);
        assert_eq!(
            settings,
            jinja::Settings {
                style: jinja::Style::Python,
                fuel: 7,
                seconds: 6,
                recursion: 8,
                include_depth: 3,
                string_bytes: 4,
                items: 5,
                strict: true,
                trim_blocks: true,
                lstrip_blocks: true,
                keep_trailing_newline: true,
                keep_empty: false,
                salvage: false,
                extensions: jinja::Extensions::default(),
            }
        );
        assert_eq!(config.limits.file_size, 9);
    }

    #[test]
    fn an_unknown_key_error_has_its_place_and_nearest_name() {
        let error = read("[limits]\nfule = 5\n").unwrap_err();
        assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "cuebook.toml:2:1");
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `fuel`?"));
    }

    #[test]
    fn a_wrong_type_is_refused_with_its_place() {
        let error = read("[limits]\nfuel = \"much\"\n").unwrap_err();
        assert_eq!(error.code(), Code::BadConfig);
        assert_eq!(
            error.diagnostic().to_string(),
            "cuebook.toml:2:8: invalid type: string \"much\", expected a whole number [CB105]"
        );
    }

    #[test]
    fn a_host_that_no_request_can_have_is_refused() {
        for host in ["", "http://x", "localhost:99999", "localhost:", "a b", "x/y", "[::1", "u@x"] {
            let error = read(&format!("[hooks]\nhttp_hosts = [{host:?}]\n")).unwrap_err();
            let reported =
                format!("cuebook.toml:2:1: `hooks.http_hosts` has an invalid host `{host}` [CB105]");
            assert_eq!(error.diagnostic().to_string(), reported);
        }
        for host in ["localhost", "localhost:8080", "10.0.0.7", "::1", "[::1]", "[::1]:80", "bücher.example."]
        {
            assert!(read(&format!("[hooks]\nhttp_hosts = [{host:?}]\n")).is_ok(), "{host}");
        }
    }

    #[test]
    fn a_limit_that_is_too_high_is_underlined_where_it_is_set() {
        let error = read("# recursion is a matter of taste\n[limits]\nrecursion = 10001\n").unwrap_err();
        assert_eq!(
            error.diagnostic().to_string(),
            "cuebook.toml:3:1: `limits.recursion` can be at most 10000 [CB105]"
        );
    }

    #[cfg(unix)]
    #[test]
    fn settings_that_are_a_link_to_nowhere_still_make_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join(CONFIG_FILE)).unwrap();
        assert_eq!(Config::find_root(&inner), folder.path());
    }
}
