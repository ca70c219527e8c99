//! How dangerous a capability is, and whether a directive may have it without saying so.
//!
//! A table says which patterns are how risky; the most specific one that covers a capability counts, and of two that are equally specific
//! the stricter. Some risks are taken silently, some with a warning, and some only if the directive acknowledges them
//! (`<acknowledge risk="…">`). A user can add to the table, or change what it says, in `~/.ai/config/capability_risk.yaml`; a project cannot.
//!
//! The table judges what was asked for. What a thread may do is decided by its capabilities alone.

use std::sync::Arc;

use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::settings::Setting;
use cuebook::source::Source;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json, json};

use super::capability::Capabilities;
use super::glob::Glob;

/// What happens to a capability of a risk, from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// It is given.
    Allow,
    /// It is given, with a warning unless the risk is acknowledged.
    Warn,
    /// It is refused unless the risk is acknowledged.
    Block,
}

/// The words for policies in files.
const POLICIES: [(&str, Policy); 3] =
    [("allow", Policy::Allow), ("acknowledge_required", Policy::Warn), ("block", Policy::Block)];

/// What covers all that can be executed. Built in, it is about what reaches a shell or the web that way.
const EVERYTHING: &str = "rye.execute.*";

/// Whether a capability is for items of a project's own: `rye.execute.tool.team.*`. They are signed by a trusted key, and
/// what they do is not known here; no shell and no web of Rye's is among them.
fn is_of_a_project(capability: &str) -> bool {
    let mut steps = capability.split('.').skip(2);
    let (kind, first) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
    let is_plain = |step: &str| !step.is_empty() && !step.contains(['*', '?', '[']);
    is_plain(kind) && is_plain(first) && first != "rye"
}

/// The table that is built in: pattern, risk, why.
const BUILTIN: [(&str, &str, &str); 9] = [
    ("rye.*", "unrestricted", "Wildcard grants full system access"),
    (EVERYTHING, "elevated", "Any tool and any directive can run"),
    ("rye.execute.tool.rye.bash.*", "elevated", "A shell can run any command"),
    ("rye.execute.tool.rye.shell.*", "elevated", "A shell can run any command"),
    (
        "rye.execute.tool.rye.web.*",
        "elevated",
        "The tool can send secrets to the web, and can return false text",
    ),
    ("rye.execute.tool.rye.file-system.*", "write", "The tool can change files of the project"),
    ("rye.sign.*", "elevated", "Other threads trust what this signs"),
    ("rye.search.*", "safe", "Searching changes nothing"),
    ("rye.load.*", "safe", "Reading changes nothing"),
];

/// The risks that are built in.
const LEVELS: [(&str, Policy); 4] = [
    ("safe", Policy::Allow),
    ("write", Policy::Allow),
    ("elevated", Policy::Warn),
    ("unrestricted", Policy::Block),
];

/// A row of the table.
#[derive(Debug, Clone)]
struct Class {
    pattern: String,
    glob: Glob,
    risk: String,
    why: String,
    /// Whether a file says so.
    is_said: bool,
}

/// The table of risks.
#[derive(Debug, Clone)]
pub struct Risks {
    levels: Vec<(String, Policy)>,
    classes: Vec<Class>,
}

impl Default for Risks {
    fn default() -> Risks {
        Risks::builtin()
    }
}

impl Risks {
    /// The table that is built in.
    pub fn builtin() -> Risks {
        let mut risks = Risks {
            levels: LEVELS.iter().map(|(name, policy)| ((*name).to_owned(), *policy)).collect(),
            classes: Vec::new(),
        };
        for (pattern, risk, why) in BUILTIN {
            risks.classify(pattern, risk, why, false);
        }
        risks
    }

    /// This table with what a file says: `risk_levels` with a `policy` each, and `classifications` of `patterns`. A pattern that is in the
    /// table already gets the risk that the file says.
    ///
    /// # Errors
    ///
    /// `CB717` with the place, if the file cannot be understood.
    pub fn with(&self, source: &Arc<Source>) -> Result<Risks> {
        let settings = Setting::parse(source, Code::NotPermitted, ErrorKind::Config)?;
        let mut risks = self.clone();
        File { settings }.read(&mut risks)?;
        Ok(risks)
    }

    fn classify(&mut self, pattern: &str, risk: &str, why: &str, is_said: bool) {
        let pattern = pattern.replace('/', ".");
        self.classes.retain(|class| class.pattern != pattern);
        let glob = Glob::new(&pattern);
        self.classes.push(Class { pattern, glob, risk: risk.to_owned(), why: why.to_owned(), is_said });
    }

    fn policy(&self, risk: &str) -> Policy {
        let level = self.levels.iter().find(|(name, _)| name == risk);
        level.map_or(Policy::Block, |(_, policy)| *policy)
    }

    /// How risky a capability is.
    fn judge(&self, capability: &str) -> Option<&Class> {
        // What could stand for anything must not pass because its pattern begins with something else than `rye.`.
        let is_ours = capability.starts_with("rye.");
        let capability = if !is_ours && capability.contains(['*', '?', '[']) { "rye.*" } else { capability };
        let glob = Glob::new(capability);
        let dots = |class: &Class| class.pattern.matches('.').count();
        self.classes
            .iter()
            .filter(|class| class.glob.covers(&glob))
            .max_by_key(|class| (dots(class), self.policy(&class.risk)))
            .filter(|class| class.is_said || class.pattern != EVERYTHING || !is_of_a_project(capability))
    }

    /// Looks at what a directive asks for: what it should be warned of, or the first capability that it may not have.
    pub fn check<R: AsRef<str>>(
        &self,
        capabilities: &Capabilities,
        acknowledged: &[R],
    ) -> Result<Vec<Risk>, Risk> {
        let mut warnings = Vec::new();
        for capability in capabilities.iter() {
            let Some(class) = self.judge(capability) else { continue };
            if acknowledged.iter().any(|risk| risk.as_ref() == class.risk) {
                continue;
            }
            let risk =
                Risk { capability: capability.to_owned(), risk: class.risk.clone(), why: class.why.clone() };
            match self.policy(&class.risk) {
                Policy::Allow => {}
                Policy::Warn => warnings.push(risk),
                Policy::Block => return Err(risk),
            }
        }
        Ok(warnings)
    }
}

/// A capability that is not harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Risk {
    /// The capability.
    pub capability: String,
    /// How risky it is.
    pub risk: String,
    /// Why.
    pub why: String,
}

impl Risk {
    fn what(&self) -> String {
        format!("Capability '{}' classified as '{}' ({})", self.capability, self.risk, self.why)
    }

    fn way_out(&self) -> String {
        format!(
            "Add <acknowledge risk=\"{}\"> to the directive's <permissions> to explicitly allow this",
            self.risk
        )
    }

    /// The refusal as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "error": format!("{}. {}.", self.what(), self.way_out()),
            "risk": self.risk,
            "capability": self.capability,
        })
    }

    /// The warning for a directive that has the capability and does not say that it knows.
    pub fn warning(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Code::NotPermitted, self.what());
        diagnostic.severity(cuebook::Severity::Warning).hint(self.way_out())
    }

    /// `CB717`.
    pub fn into_error(self) -> Error {
        let diagnostic = Diagnostic::new(Code::NotPermitted, self.what()).hint(self.way_out());
        Error::new(ErrorKind::Execute, diagnostic)
            .with("risk", &self.risk)
            .with("capability", &self.capability)
    }
}

/// A file that adds to the table.
struct File {
    settings: Setting,
}

/// What such a file may say. The first two are the table; the others are what every item of Rye says of itself.
const NAMES: [&str; 7] =
    ["risk_levels", "classifications", "description", "schema_version", "category", "tool_type", "version"];

impl File {
    fn read(&self, risks: &mut Risks) -> Result<()> {
        let root = match self.settings.json() {
            Json::Null => return Ok(()),
            Json::Object(root) => root,
            other => {
                return Err(self.wrong(
                    &[],
                    format!("the file must hold a map, not {}", type_of(&other)),
                    None,
                ));
            }
        };
        self.know(&[], &root, &NAMES)?;
        if let Some(levels) = root.get("risk_levels") {
            for (name, level) in self.map(&["risk_levels"], levels)? {
                let path = ["risk_levels", name];
                let level = self.map(&path, level)?;
                self.know(&path, level, &["policy", "description"])?;
                let policy = self.policy(name, level.get("policy"))?;
                risks.levels.retain(|(known, _)| known != name);
                risks.levels.push((name.clone(), policy));
            }
        }
        let Some(classes) = root.get("classifications") else { return Ok(()) };
        let Json::Array(classes) = classes else {
            let message = format!("`classifications` must be a list, not {}", type_of(classes));
            return Err(self.wrong(&["classifications"], message, None));
        };
        for (index, class) in classes.iter().enumerate() {
            self.class(risks, &index.to_string(), class)?;
        }
        Ok(())
    }

    fn class(&self, risks: &mut Risks, index: &str, class: &Json) -> Result<()> {
        let path = ["classifications", index];
        let class = self.map(&path, class)?;
        self.know(&path, class, &["risk", "patterns", "description"])?;
        let inside = |name| ["classifications", index, name];
        let levels: Vec<&str> = risks.levels.iter().map(|(name, _)| name.as_str()).collect();
        let risk = match class.get("risk") {
            Some(Json::String(risk)) if levels.contains(&risk.as_str()) => risk.clone(),
            Some(other) => {
                let near =
                    other.as_str().and_then(|risk| did_you_mean(&nearest(risk, levels.iter().copied())));
                let hint = near.unwrap_or_else(|| format!("there are {}", levels.join(", ")));
                return Err(self.wrong(&inside("risk"), format!("unknown risk {other}"), Some(hint)));
            }
            None => {
                return Err(self.wrong(&path, "a classification has no `risk`".to_owned(), None));
            }
        };
        let patterns: Option<Vec<&str>> = class
            .get("patterns")
            .and_then(Json::as_array)
            .and_then(|all| all.iter().map(Json::as_str).collect());
        let Some(patterns) = patterns else {
            return Err(self.wrong(
                &inside("patterns"),
                "`patterns` must be a list of strings".to_owned(),
                None,
            ));
        };
        let why = class.get("description").and_then(Json::as_str).unwrap_or("classified by the project");
        for pattern in patterns {
            risks.classify(pattern, &risk, why, true);
        }
        Ok(())
    }

    fn policy(&self, level: &str, policy: Option<&Json>) -> Result<Policy> {
        let known = POLICIES.iter().find(|(name, _)| policy.and_then(Json::as_str) == Some(name));
        known.map(|(_, policy)| *policy).ok_or_else(|| {
            let message = match policy {
                Some(other) => format!("unknown policy {other}"),
                None => format!("the risk `{level}` has no `policy`"),
            };
            let hint = "use allow, acknowledge_required or block".to_owned();
            self.wrong(&["risk_levels", level, "policy"], message, Some(hint))
        })
    }

    fn map<'j>(&self, path: &[&str], json: &'j Json) -> Result<&'j Map<String, Json>> {
        let message = || format!("must be a map, not {}", type_of(json));
        json.as_object().ok_or_else(|| self.wrong(path, message(), None))
    }

    fn know(&self, path: &[&str], map: &Map<String, Json>, names: &[&str]) -> Result<()> {
        let Some(name) = map.keys().find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
        let mut path = path.to_vec();
        path.push(name);
        let hint = did_you_mean(&nearest(name, names.iter().copied()))
            .unwrap_or_else(|| format!("there are {}", names.join(", ")));
        let diagnostic = Diagnostic::new(Code::NotPermitted, format!("unknown key `{name}`"));
        Err(Error::new(ErrorKind::Config, diagnostic.at(self.settings.name_place_of(&path)).hint(hint)))
    }

    fn wrong(&self, path: &[&str], message: String, hint: Option<String>) -> Error {
        let diagnostic = Diagnostic::new(Code::NotPermitted, message).at(self.settings.place_of(path));
        Error::new(ErrorKind::Config, diagnostic.hint_opt(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(risks: &Risks, capability: &str, acknowledged: &[&str]) -> (Policy, String) {
        match risks.check(&Capabilities::new([capability.to_owned()]), acknowledged) {
            Ok(warnings) => match warnings.as_slice() {
                [] => (Policy::Allow, String::new()),
                [risk, ..] => (Policy::Warn, risk.risk.clone()),
            },
            Err(risk) => (Policy::Block, risk.risk),
        }
    }

    #[test]
    fn the_most_specific_pattern_counts() {
        let risks = Risks::builtin();
        for (capability, policy, risk) in [
            ("rye.*", Policy::Block, "unrestricted"),
            ("rye.execute.*", Policy::Warn, "elevated"),
            ("rye.execute.tool.rye.bash.*", Policy::Warn, "elevated"),
            ("rye.execute.tool.rye.file-system.write", Policy::Allow, ""),
            ("rye.execute.tool.rye.file-system*", Policy::Warn, "elevated"),
            // What a project has of its own is neither a shell nor the web.
            ("rye.execute.tool.team.*", Policy::Allow, ""),
            ("rye.execute.tool.team.thermometer", Policy::Allow, ""),
            ("rye.execute.directive.team.*", Policy::Allow, ""),
            ("rye.execute.tool.*", Policy::Warn, "elevated"),
            ("rye.execute.tool.t*", Policy::Warn, "elevated"),
            ("rye.execute.*.team.x", Policy::Warn, "elevated"),
            ("rye.execute.tool.rye.*", Policy::Warn, "elevated"),
            ("rye.load.*", Policy::Allow, ""),
            ("rye.search.directive", Policy::Allow, ""),
            ("rye.sign.directive.x", Policy::Warn, "elevated"),
            ("rye.sign.*", Policy::Warn, "elevated"),
            // Wildcards for the action are wildcards for everything.
            ("rye.e*", Policy::Block, "unrestricted"),
            ("rye.*.tool.rye.bash.bash", Policy::Block, "unrestricted"),
            ("rye.execute*", Policy::Block, "unrestricted"),
            ("*", Policy::Block, "unrestricted"),
            ("r?e.load.x", Policy::Block, "unrestricted"),
            ("fs.read", Policy::Allow, ""),
        ] {
            assert_eq!(check(&risks, capability, &[]), (policy, risk.to_owned()), "{capability}");
        }
    }

    #[test]
    fn an_acknowledged_risk_is_taken() {
        let risks = Risks::builtin();
        assert_eq!(check(&risks, "rye.*", &["unrestricted"]).0, Policy::Allow);
        assert_eq!(check(&risks, "rye.*", &["elevated"]).0, Policy::Block);
        assert_eq!(check(&risks, "rye.sign.*", &["elevated"]).0, Policy::Allow);
    }

    #[test]
    fn a_refusal_says_what_to_write() {
        let risk = Risks::builtin().check::<&str>(&Capabilities::new(["rye.*".to_owned()]), &[]).unwrap_err();
        let error = "Capability 'rye.*' classified as 'unrestricted' (Wildcard grants full system access). Add <acknowledge \
                     risk=\"unrestricted\"> to the directive's <permissions> to explicitly allow this.";
        assert_eq!(risk.to_json(), json!({"error": error, "risk": "unrestricted", "capability": "rye.*"}));
        assert_eq!(risk.warning().severity, cuebook::Severity::Warning);
        assert_eq!(risk.into_error().code(), Code::NotPermitted);
    }

    #[test]
    fn a_project_adds_to_the_table_and_changes_it() {
        let text = "risk_levels:\n  secret: {policy: block}\n  elevated: {policy: allow}\nclassifications:\n  - risk: secret\n    patterns: [rye.load.knowledge.keys/*]\n  - risk: unrestricted\n    patterns: [\"rye.execute.tool.rye.file-system.*\"]\n";
        let risks = Risks::builtin().with(&Source::new("risk.yaml", text)).unwrap();
        assert_eq!(check(&risks, "rye.load.knowledge.keys.a", &[]), (Policy::Block, "secret".into()));
        assert_eq!(check(&risks, "rye.load.knowledge.other", &[]).0, Policy::Allow);
        assert_eq!(check(&risks, "rye.execute.*", &[]).0, Policy::Allow);
        assert_eq!(check(&risks, "rye.execute.tool.rye.file-system.write", &[]).0, Policy::Block);
        assert_eq!(check(&risks, "rye.*", &[]).0, Policy::Block);
    }

    #[test]
    fn risks_of_all_tools_include_project_tools() {
        let text = "classifications:\n  - risk: unrestricted\n    patterns: [rye.execute.*]\n";
        let risks = Risks::builtin().with(&Source::new("risk.yaml", text)).unwrap();
        assert_eq!(check(&risks, "rye.execute.tool.team.*", &[]), (Policy::Block, "unrestricted".into()));
    }

    #[test]
    fn errors_in_a_file_have_a_place() {
        for (text, line, message) in [
            ("risk_level: {}\n", 1, "unknown key `risk_level`"),
            ("version: \"1\"\nrisk_levels:\n  safe: {policy: maybe}\n", 3, "unknown policy \"maybe\""),
            ("risk_levels:\n  mine: {}\n", 2, "the risk `mine` has no `policy`"),
            ("classifications:\n  - risk: saef\n    patterns: [a]\n", 2, "unknown risk \"saef\""),
            (
                "classifications:\n  - risk: safe\n    patterns: a\n",
                3,
                "`patterns` must be a list of strings",
            ),
            ("classifications:\n  - a\n", 2, "must be a map, not a string"),
            ("[]", 1, "the file must hold a map, not a list"),
        ] {
            let error = Risks::builtin().with(&Source::new("risk.yaml", text)).unwrap_err();
            let place = error.diagnostic().place.as_ref().unwrap();
            assert_eq!((place.line(), error.diagnostic().message.as_str()), (line, message));
        }
    }
}
