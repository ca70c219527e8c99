//! Skills in a thread: the model sees their names and descriptions, opens one with a tool, and reads its files by their paths.
//!
//! What is offered is frozen when the thread begins, with a digest of all files: a skill that was changed since is refused.
//! `allowed-tools` only narrows. While a skill that has it is open, a call needs the thread's permission and the skill's.

use std::sync::{Arc, Mutex, PoisonError};

use cuebook::chat::reply::{Reply, ToolCall};
use cuebook::dialect::skill::{OfferedSkill, Part, SKILL_FILE, SkillFolder};
use cuebook::items::ItemId;
use cuebook::limits::FILE_BYTES;
use cuebook::prompt::{Property, Tools};
use cuebook::sections::disclosure;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use super::launch::Launch;
use super::managed::{Managed, Target, ThreadTools};
use super::origins;
use crate::engine::Project;
use crate::policy::capability::Capabilities;
use crate::policy::directive_tools::tool;
use crate::policy::returns;
use crate::turn::{AfterAnswer, Performed, Permit};

/// The tool that opens a skill and reads its files.
const NAME: &str = "open_skill";

/// The skills with these ids. Each must follow the format, and a signed one must be as it was signed.
pub(super) fn offered(project: &Project, ids: &[String]) -> Result<Vec<OfferedSkill>> {
    let mut offered: Vec<OfferedSkill> = Vec::new();
    for id in ids {
        if offered.iter().all(|known| known.id != *id) {
            offered.push(OfferedSkill::of(id, &folder(project, id)?)?);
        }
    }
    Ok(offered)
}

/// A skill on disk, after a check of its signature.
fn folder(project: &Project, id: &str) -> Result<SkillFolder> {
    let found = project.book().library().find(id)?;
    let Some(folder) = SkillFolder::of(&found.candidate, FILE_BYTES)? else {
        let message = format!("`{id}` is a prompt, and not a skill");
        let hint = Hint::run("a skill is a folder with `SKILL.md`; list prompts and skills", "cuebook list");
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)));
    };
    folder.signature(project.trust())?;
    Ok(folder)
}

/// A prompt cannot have a tool with the name of the one that opens skills.
pub(super) fn refuse_same_name(tools: &dyn ThreadTools) -> Result<()> {
    if tools.tools().iter().all(|tool| tool.name != NAME) {
        return Ok(());
    }
    let message = format!("the prompt has a tool `{NAME}`, which is the name of the tool that opens skills");
    let hint = Hint::command_line("rename the tool of the prompt, or leave out --skill")
        .for_programs("rename the tool of the prompt, or leave out the skills");
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
}

/// The skills that an earlier thread of the conversation opened.
pub(super) fn open_at_start(launch: &Launch) -> Vec<String> {
    launch.skills.iter().filter(|skill| skill.is_open).map(|skill| skill.id.clone()).collect()
}

/// The skills for a thread that goes on with a conversation: those that were opened stay open.
pub(super) fn still_open(skills: &[OfferedSkill], opened: &[String]) -> Vec<OfferedSkill> {
    let open = |skill: &OfferedSkill| OfferedSkill { is_open: opened.contains(&skill.id), ..skill.clone() };
    skills.iter().map(open).collect()
}

/// The tools of a thread with skills: its own, and the one that opens skills.
pub(super) struct SkillTools<'e> {
    inner: &'e dyn ThreadTools,
    project: Arc<Project>,
    skills: &'e [OfferedSkill],
    opened: Mutex<Vec<String>>,
}

impl<'e> SkillTools<'e> {
    pub(super) fn new(
        inner: &'e dyn ThreadTools,
        project: Arc<Project>,
        skills: &'e [OfferedSkill],
        opened: Vec<String>,
    ) -> SkillTools<'e> {
        SkillTools { inner, project, skills, opened: Mutex::new(opened) }
    }

    /// What the model knows about the skills before it opens one.
    fn description(&self) -> String {
        let skill = |skill: &OfferedSkill| {
            let description: Vec<&str> = skill.description.split_whitespace().collect();
            format!("\n- {}: {}", skill.id, description.join(" "))
        };
        let skills: String = self.skills.iter().map(skill).collect();
        format!(
            "Opens a skill: instructions for a kind of task. Open it before you begin such a task. The skills:{skills}"
        )
    }

    /// Why open skills do not allow a call; `None` if they do.
    fn refusal(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Option<String> {
        if disclosure::TOOLS.contains(&call.name.as_str()) || call.name == returns::NAME {
            return None;
        }
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.skills.iter().filter(|skill| opened.contains(&skill.id));
        let open: Vec<(&str, &[String])> =
            open.filter_map(|skill| Some((&*skill.id, skill.allowed_tools.as_deref()?))).collect();
        let names: Vec<&str> = open.iter().flat_map(|(_, names)| *names).map(String::as_str).collect();
        let target = self.inner.target(call, arguments);
        if open.is_empty() || allows(&names, &call.name, target.as_ref()) {
            return None;
        }
        let skills: Vec<String> = open.iter().map(|(id, _)| format!("`{id}`")).collect();
        let known = match names.is_empty() {
            true => "no tools".to_owned(),
            false => format!("only: {}", names.join(", ")),
        };
        let subject = if open.len() == 1 { "The open skill" } else { "The open skills" };
        let verb = if open.len() == 1 { "allows" } else { "allow" };
        Some(format!("Permission denied: {subject} {} {verb} {known}.", skills.join(", ")))
    }

    fn open(&self, thread: &Managed<'_>, arguments: &Map<String, Json>) -> Result<Performed> {
        let text = |name: &str| arguments.get(name).and_then(Json::as_str);
        let wrong = |why: String| Ok(Performed::failure(format!("Error: {why}")));
        let Some(skill) = self.skills.iter().find(|skill| Some(&*skill.id) == text("skill")) else {
            let names: Vec<&str> = self.skills.iter().map(|skill| &*skill.id).collect();
            return wrong(format!("`skill` must be one of: {}", names.join(", ")));
        };
        let folder = folder(&self.project, &skill.id)?;
        let path = text("file").unwrap_or(SKILL_FILE);
        let from = arguments.get("offset").and_then(Json::as_u64).unwrap_or(0);
        let room = usize::try_from(thread.launch.context_window).unwrap_or(usize::MAX).max(SMALLEST);
        let part = skill.read(&folder, path, usize::try_from(from).unwrap_or(usize::MAX), room)?;
        let Part { text, pieces } = match part {
            Ok(part) => part,
            Err(why) => return wrong(why),
        };
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(skill.id.clone());
        let pieces = pieces.into_iter().map(|(length, origin)| (length, origin.to_json())).collect();
        let source = json!({"skill": skill.id, "file": path, "origins": origins::of_pieces(pieces)});
        Ok(Performed { source: Some(source), ..Performed::answer(text) })
    }
}

/// The fewest characters of a file that a model gets at once.
const SMALLEST: usize = 2400;

/// Whether names of tools include a call: by the name of the tool, the id of its item, or a permission. A name with a condition,
/// as in `Bash(git:*)`, includes nothing, because a thread cannot check the condition.
fn allows(names: &[&str], tool: &str, target: Option<&Target>) -> bool {
    let is_named = |name: &&str| *name == tool || name.strip_suffix("(*)") == Some(tool);
    if names.iter().any(is_named) {
        return true;
    }
    let permission = |name: &&str| match name.strip_prefix("rye.") {
        Some(_) => Some((*name).to_owned()),
        None => ItemId::new(name).ok().map(|id| {
            let letter = |letter: char| match letter {
                '/' => ".".to_owned(),
                '.' | '*' | '?' | '[' => format!("[{letter}]"),
                letter => letter.to_string(),
            };
            format!("rye.execute.tool.{}", id.as_str().chars().map(letter).collect::<String>())
        }),
    };
    let permissions = Capabilities::new(names.iter().filter_map(permission));
    let allowed =
        |target: &Target| permissions.check(target.action, &target.item_type, &target.item_id).is_ok();
    target.is_some_and(allowed)
}

impl ThreadTools for SkillTools<'_> {
    fn tools(&self) -> Arc<Tools> {
        let properties = json!({
            "skill": {"type": "string", "enum": self.skills.iter().map(|skill| &skill.id).collect::<Vec<_>>()},
            "file": {"type": "string", "description": "A file of the skill, by its path; leave it out for the instructions"},
            "offset": {"type": "integer", "description": "The first character, for a text that did not fit"},
        });
        let schema = json!({"type": "object", "properties": properties, "required": ["skill"]});
        let opens = tool(NAME, &self.description(), schema);
        let mut tools: Vec<_> = self.inner.tools().iter().cloned().collect();
        tools.push(opens);
        Arc::new(Tools::from(tools))
    }

    fn outputs(&self) -> Vec<Property> {
        self.inner.outputs()
    }

    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit {
        if call.name == NAME {
            return Permit::Allowed;
        }
        match (self.inner.permit(call, arguments), self.refusal(call, arguments)) {
            (Permit::Allowed, Some(why)) => Permit::Denied(why),
            (permit, _) => permit,
        }
    }

    fn target(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Option<Target> {
        self.inner.target(call, arguments)
    }

    fn perform(&self, thread: &Managed<'_>, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
        if call.name != NAME {
            return self.inner.perform(thread, call, arguments);
        }
        let failed = |error: Error| Performed::failure(format!("Error: {}", error.diagnostic().message));
        self.open(thread, arguments).unwrap_or_else(failed)
    }

    fn alone(&self, call: &ToolCall) -> bool {
        call.name == NAME || self.inner.alone(call)
    }

    fn settle(&self, turn: u32, said: &Reply, nudges: u32) -> Result<AfterAnswer> {
        self.inner.settle(turn, said, nudges)
    }
}
