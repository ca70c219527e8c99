//! A skill that a model can open in steps: its name and description, its text, its files.

use serde_json::{Value as Json, json};

use cuebook_text::sha256::{Sha256, hex};

use super::{SKILL_FILE, SkillFile, SkillFolder};
use crate::error::Result;
use crate::files::source_from_bytes;
use crate::render::Origin;
use crate::trust::{ContentDigest, PackFile};

/// A skill that a model can open, as it was when it was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedSkill {
    /// Its id.
    pub id: String,
    /// When it helps.
    pub description: String,
    /// The tools that it names; `None` if it does not say.
    pub allowed_tools: Option<Vec<String>>,
    /// The SHA-256 over all its files.
    pub digest: String,
    /// Whether the model has opened it already.
    pub is_open: bool,
}

/// A text for a model, and where it came from.
#[derive(Debug, Clone)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Its pieces in their order, with their lengths in bytes.
    pub pieces: Vec<(usize, Origin)>,
}

impl Part {
    fn add(&mut self, text: &str, origin: Origin) {
        self.pieces.push((text.len(), origin));
        self.text.push_str(text);
    }
}

impl OfferedSkill {
    /// A skill with all its files as they are now.
    ///
    /// # Errors
    ///
    /// As for [`SkillFolder::check`] and [`SkillFolder::files`].
    pub fn of(id: &str, folder: &SkillFolder) -> Result<OfferedSkill> {
        folder.check()?;
        Ok(OfferedSkill {
            id: id.to_owned(),
            description: folder.description().to_owned(),
            allowed_tools: folder.allowed_tools().map(<[String]>::to_vec),
            digest: folder.digest()?.digest(),
            is_open: false,
        })
    }

    /// At most `room` characters of a file of the skill, from a character on: of its text if the file is `SKILL.md`. The inner error
    /// says in words for a model why there are none, also if any file of the skill is not as it was when the skill was offered.
    ///
    /// # Errors
    ///
    /// As for [`SkillFolder::files`] and [`SkillFolder::body`].
    pub fn read(
        &self,
        folder: &SkillFolder,
        path: &str,
        from: usize,
        room: usize,
    ) -> Result<Result<Part, String>> {
        let files = folder.files()?;
        let file = |(path, file): (&String, &SkillFile)| PackFile {
            path: path.clone(),
            sha256: file.sha256.clone(),
        };
        if files.iter().map(file).collect::<ContentDigest>().digest() != self.digest {
            return Ok(Err(format!("the skill `{}` was changed after this thread began", self.id)));
        }
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        let Some((known, bytes)) = files.get(path).zip(folder.read(path)?) else {
            return Ok(Err(format!("the skill has no file `{path}`. Its files: {}", paths.join(", "))));
        };
        if hex(&Sha256::digest(&bytes)) != known.sha256 {
            return Ok(Err(format!("`{path}` is being changed")));
        }
        let Ok(file) = source_from_bytes(bytes, &format!("{}/{path}", folder.shown())) else {
            return Ok(Err(format!("`{path}` is not a text ({} bytes)", known.size)));
        };
        let is_body = path == SKILL_FILE;
        let source = if is_body { SkillFolder::body(&file)? } else { file };
        let text = source.text();
        let start = text.char_indices().nth(from).map_or(text.len(), |(at, _)| at);
        let end = text[start..].char_indices().nth(room).map_or(text.len(), |(end, _)| start + end);
        let mut part = Part { text: String::new(), pieces: Vec::new() };
        let range = start..end;
        part.add(&text[range.clone()], Origin::Literal { source: source.clone(), range, changed: false });
        if end < text.len() {
            let more = format!("\n\n[The text continues: call again with \"offset\": {}]", from + room);
            part.add(&more, Origin::Frame { name: "more of the file".into() });
        }
        let others: Vec<&str> = paths.into_iter().filter(|path| *path != SKILL_FILE).collect();
        if is_body && !others.is_empty() {
            let gap = if part.text.ends_with('\n') { "\n" } else { "\n\n" };
            let more = format!("{gap}Files of this skill: {}", others.join(", "));
            part.add(&more, Origin::Frame { name: "files of the skill".into() });
        }
        Ok(Ok(part))
    }

    /// The skill as a log keeps it.
    pub fn to_json(&self) -> Json {
        json!({
            "id": self.id, "description": self.description, "allowed_tools": self.allowed_tools,
            "digest": self.digest, "open": self.is_open,
        })
    }

    /// Reads what [`OfferedSkill::to_json`] wrote.
    pub fn from_json(json: &Json) -> Option<OfferedSkill> {
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        let name = |name: &Json| name.as_str().map(str::to_owned);
        let allowed_tools = match &json["allowed_tools"] {
            Json::Null => None,
            names => Some(names.as_array()?.iter().map(name).collect::<Option<_>>()?),
        };
        Some(OfferedSkill {
            id: text("id")?,
            description: text("description")?,
            allowed_tools,
            digest: text("digest")?,
            is_open: json["open"] == true,
        })
    }
}
