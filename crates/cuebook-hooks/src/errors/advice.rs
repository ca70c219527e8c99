//! What to do about an exception, where that is known: the mistakes that people make in hooks.

use cuebook::error::Hint;
use cuebook::error::{did_you_mean, nearest};
use cuebook::hooks::Subject;
use cuebook::prompt::Permissions;

use super::FailedCall;
use super::files::{Files, MAX_FRAMES};
use crate::protocol::{Frame, Raised};

/// What the context always has.
const ALWAYS: [&str; 4] = ["workspace_path", "session", "render_template", "get_variable"];

/// Packages whose exceptions are about the network.
const NETWORKING: [&str; 8] =
    ["socket.", "urllib.", "urllib3.", "requests.", "httpx.", "httpcore.", "aiohttp.", "http.client."];

/// How the system says that there is no network.
const NO_NETWORK: [&str; 6] = [
    "Operation not permitted",
    "name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Network is unreachable",
    "Connection refused",
];

/// What awaiting something else than a coroutine is called in the versions of Python.
const NOT_AWAITABLE: [&str; 4] =
    ["can't be used in 'await'", "can't be awaited", "awaitable is required", "a coroutine was expected"];

impl FailedCall<'_> {
    /// What to do about an exception.
    pub(super) fn advice(&self, raised: &Raised, files: &Files<'_>) -> Option<Hint> {
        if raised.bases.iter().any(|base| base == "MemoryError") {
            return Some(Hint::run(
                "use less memory, or raise `memory` under `[hooks]` in cuebook.toml, and grant it",
                "cuebook allow",
            ));
        }
        self.words(raised, files).map(Hint::from)
    }

    fn words(&self, raised: &Raised, files: &Files<'_>) -> Option<String> {
        let is = |kind: &str| raised.bases.iter().any(|base| base == kind);
        let says = |text: &str| raised.message.contains(text);
        if let Some(syntax) = &raised.syntax {
            let outside = ["'await' outside", "outside async function"];
            let outside = outside.iter().any(|text| syntax.message.contains(text));
            return outside.then(|| "a function that uses `await` must start with `async def`".into());
        }
        if let Some(module) = &raised.shadowed {
            return Some(format!("`{module}` is a module of Python's library: give yours another name"));
        }
        if is("KeyError") || is("AttributeError") {
            let hint = own_line(files, &raised.frames).and_then(|line| self.about_context(raised, &line));
            if hint.is_some() {
                return hint;
            }
        }
        if is("SystemExit") {
            return Some("a hook ends by returning: it must not end its process".into());
        }
        if is("ModuleNotFoundError") {
            return Some(
                "modules come from Python's library, the script's folder, and the packages of the Python that `python` under `[hooks]` in cuebook.toml names"
                    .into(),
            );
        }
        if is("ImportError") && says("attempted relative import") {
            let line = own_line(files, &raised.frames).unwrap_or_default();
            let name = line.strip_prefix("from .").map(|rest| rest.trim_start_matches(" import "));
            let name = name.and_then(|name| name.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            let name = name.filter(|name| !name.is_empty()).unwrap_or("util");
            return Some(format!(
                "import modules from the script's folder by their plain name: `import {name}`"
            ));
        }
        if is("OSError") && !raised.ours && says("[Errno 30]") {
            return Some("write only to the temporary directory: `tempfile.gettempdir()`".into());
        }
        if self.may_not_await(raised) {
            return Some("in a plain `def`, call the functions of `context` without `await`".into());
        }
        if (is("TypeError") || is("AttributeError")) && says("coroutine") && !says("is required") {
            return Some(match self.definition() {
                Some(_) if !self.is_async() => {
                    format!("await the result of an `async def`: write `async def {}` and `await` it", self.function)
                }
                _ => "in an `async def` hook, await the functions of `context`: `await context[\"read_file\"](…)`"
                    .into(),
            });
        }
        if lacks_network(raised, files) {
            return Some("hooks have no direct network access: use `context[\"http_request\"]`".into());
        }
        if is("TypeError") && raised.stage == "call" && raised.frames.is_empty() {
            return Some(self.signature());
        }
        None
    }

    /// Whether something was awaited that a function of the context returned to a plain function.
    fn may_not_await(&self, raised: &Raised) -> bool {
        !self.is_async() && NOT_AWAITABLE.iter().any(|text| raised.message.contains(text))
    }

    /// About a name that the context does not have, on a line that looks for it there.
    fn about_context(&self, raised: &Raised, line: &str) -> Option<String> {
        let name = raised.message.rsplit('\'').nth(1)?;
        let is_key = raised.bases.iter().any(|base| base == "KeyError");
        let sought = match is_key {
            // Also by a variable, but not in something that the context holds.
            true => {
                let keys = [format!("context[\"{name}\"]"), format!("context['{name}']")];
                let next = line.split_once("context[").and_then(|(_, rest)| rest.trim_start().chars().next());
                keys.iter().any(|key| line.contains(key.as_str()))
                    || next.is_some_and(|next| next.is_alphabetic() || next == '_')
            }
            false => line.contains(&format!("context.{name}")),
        };
        if !sought {
            return None;
        }
        let granted = self.permissions.granted();
        let refused = |name: &str| Permissions::NAMES.contains(&name) && !granted.contains(&name);
        let place = match self.subject {
            Subject::Prompt { .. } => "`PERMISSIONS` of the prompt",
            Subject::Provider { .. } => "`permissions` of the provider in pack.json",
        };
        let dict = if is_key { "" } else { "`context` is a dict: " };
        if refused(name) {
            return Some(format!("`{name}` is not granted: declare it in {place}"));
        }
        if ALWAYS.contains(&name) || granted.contains(&name) {
            // A key that the context has was missed somewhere else on the line.
            return (!is_key).then(|| format!("{dict}write `context[\"{name}\"]`"));
        }
        let similar = nearest(name, ALWAYS.into_iter().chain(Permissions::NAMES));
        if let Some(question) = did_you_mean(&similar) {
            let grant = match similar.as_slice() {
                [one] if refused(one) => format!(" It is not granted: declare it in {place}"),
                _ => String::new(),
            };
            return Some(format!("{dict}{question}{grant}"));
        }
        let names: Vec<&str> = ALWAYS.into_iter().chain(granted).collect();
        let has = if is_key { "`context` has" } else { "`context` is a dict with" };
        Some(format!("{has} {}", names.join(", ")))
    }
}

/// The line of the script's own that raised an exception by itself.
fn own_line(files: &Files<'_>, frames: &[Frame]) -> Option<String> {
    files.place(frames.last()?).map(|place| place.text().to_owned())
}

/// Whether an exception, or one that it came from, is there because hooks have no network.
fn lacks_network(raised: &Raised, files: &Files<'_>) -> bool {
    let is_network = |kind: &str, message: &str, frames: &[Frame]| {
        let line = own_line(files, frames);
        // What the script raises by itself means whatever its author wants it to mean.
        if line.as_ref().is_some_and(|line| line.starts_with("raise ")) {
            return false;
        }
        let refused = NO_NETWORK.iter().any(|text| message.contains(text));
        match kind {
            "socket.gaierror"
            | "urllib.error.URLError"
            | "ConnectionError"
            | "ConnectionRefusedError"
            | "ConnectionResetError"
            | "ConnectionAbortedError" => true,
            // The system says so about many things.
            "PermissionError" | "OSError" => {
                let file = frames.last().map_or("", |frame| frame.file.as_str());
                let about_sockets = ["socket.py", "ssl.py", "/asyncio/", "/http/client.py", "/urllib"];
                let line = line.unwrap_or_default();
                let mentions = ["socket", "connect", "sendto"].iter().any(|text| line.contains(text));
                refused && (mentions || about_sockets.iter().any(|part| file.contains(part)))
            }
            _ => refused && NETWORKING.iter().any(|package| kind.starts_with(package)),
        }
    };
    let mut others = raised.causes.iter().chain(&raised.inner).take(MAX_FRAMES);
    !raised.ours
        && (is_network(&raised.kind, &raised.message, &raised.frames)
            || others.any(|cause| !cause.ours && is_network(&cause.kind, &cause.message, &cause.frames)))
}
