//! Renaming what has a file or an address: partials, prompts, sections, tools and items.

use crate::error::Hint;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::layout::{Notation, Piece, pieces, tags, xml};
use super::names::Thing;
use super::rename::{Edit, Renaming, refuse};
use super::spots::{after_key, unquoted};
use super::{Location, Service, is_own};
use crate::check::Basis;
use crate::error::{Result, Severity};
use crate::files::Buffers;
use crate::items::{CASES_END, ItemId, ItemType, SpaceKind};
use crate::library::{CONFIG_FILE, Found, normalize_id};
use crate::targets::place;
use crate::template::address::Address;

impl Service {
    /// What changes if something that is no variable, block or macro gets another name.
    pub(super) fn rename_target(
        &self,
        path: &Path,
        offset: usize,
        thing: &Thing,
        to: &str,
    ) -> Result<Renaming> {
        match thing {
            Thing::Template(_) => match self.target_of(path, thing) {
                Some(file) => self.rename_file(&file, to),
                None => refuse("this template is missing".to_owned(), "name one that there is first"),
            },
            Thing::Prompt(id) => match self.book().find(id) {
                Ok(found) => self.rename_prompt(&found, to),
                Err(_) => refuse(
                    format!("there is no prompt `{id}`"),
                    Hint::run("list the prompts", "cuebook list"),
                ),
            },
            Thing::Section(id, section) => self.rename_section((path, offset), id, section, to),
            Thing::Tool(file, name) => self.rename_tool(file, name, to),
            Thing::Item(kind, id) => self.rename_item(*kind, id, to),
            _ => refuse("nothing here can be renamed".to_owned(), "choose another name"),
        }
    }

    fn rename_file(&self, file: &Path, to: &str) -> Result<Renaming> {
        let own = self.users(file, 1).into_iter().find_map(|source| {
            let found = self.index.get(&source)?.found.clone();
            is_own(&self.book, &found, file).then_some(found.id)
        });
        if let Some(id) = own {
            let hint = "rename the prompt where its id is written, as in \"prompt:ID\"";
            return refuse(format!("the file is the text of the prompt `{id}`"), hint);
        }
        let Some((root, old)) = self.below_root(file) else { return outside() };
        let is_plain = Path::new(to).components().all(|part| matches!(part, Component::Normal(_)));
        if to.is_empty() || !is_plain || Path::new(to).extension() != file.extension() {
            let hint = format!("write a path below the folder of prompts, as in `{old}`");
            return refuse(format!("`{to}` is not the name of a template"), &hint);
        }
        let target = root.join(to);
        refuse_existing(&target, to)?;
        let edits = self.path_edits(file, &old, to)?;
        Ok(Renaming { edits, moves: vec![(file.to_owned(), target)] })
    }

    /// The folder of the library that holds a file, and the file's path below it.
    fn below_root(&self, file: &Path) -> Option<(PathBuf, String)> {
        let roots = self.book().library().roots().unwrap_or_default();
        let folders = roots.iter().filter_map(|root| root.folder());
        let root = folders.filter(|root| file.starts_with(root)).max_by_key(|root| root.iter().count())?;
        let below = file.strip_prefix(root).ok()?.to_str()?.to_owned();
        file.starts_with(self.book().library().root()).then(|| (root.to_owned(), below))
    }

    /// The edits that give a file another path in every template that names it.
    fn path_edits(&self, file: &Path, old: &str, to: &str) -> Result<Vec<Edit>> {
        let mut found: BTreeSet<Location> = BTreeSet::new();
        for at in self.includes(file) {
            let written = self.text(&at.path).and_then(|text| text.get(at.range()).map(str::to_owned));
            // An address changes with the id.
            if written.is_some_and(|written| Address::of(written.trim_matches(['"', '\''])).is_some()) {
                continue;
            }
            let Some(inner) = self.named(&at, old) else {
                let message =
                    format!("{} writes its path in another way", self.book().library().name(&at.path));
                return refuse(message, format!("write \"{old}\" there first"));
            };
            found.insert(inner);
        }
        // Files that cannot be compiled name it, too.
        for path in self.project_files().into_iter().filter(|path| Notation::of(path).has_tags()) {
            let Some(text) = self.text(&path).filter(|text| text.contains(old)) else { continue };
            let strings = tags(&text, 0).into_iter().filter(|tag| {
                super::cursor::LOADING.contains(&tag.keyword(&text))
                    || text[tag.inside.clone()].trim_start().starts_with('>')
            });
            for tag in strings {
                let all = pieces(&text, tag.inside.clone()).into_iter();
                let quoted = all.filter(|(piece, _)| *piece == Piece::Text);
                let ranges = quoted.map(|(_, range)| unquoted(&text, &range));
                let here = ranges.filter(|range| &text[range.clone()] == old);
                found.extend(here.map(|range| Location::new(path.clone(), range)));
            }
        }
        Ok(found.into_iter().map(|location| Edit { location, text: to.to_owned() }).collect())
    }

    fn rename_prompt(&self, found: &Found, to: &str) -> Result<Renaming> {
        let id = found.id.as_str();
        if found.candidate.dialect.is_item {
            return self.rename_item(ItemType::Directive, &super::spots::dotted(id), to);
        }
        if to.is_empty() || to.contains(['/', '\\', '.', ':', '#']) || normalize_id(to) != to {
            let hint = "use lower-case letters, digits and `_`, as in `general_system`";
            return refuse(format!("`{to}` is not the id of a prompt"), hint);
        }
        if self.book().find(to).is_ok() {
            return refuse(format!("there is a prompt `{to}` already"), "choose another name");
        }
        let library = self.book().library();
        let at = place(&found.candidate).filter(|at| at.starts_with(library.root()));
        let Some(at) = at else { return outside() };
        self.refuse_overrides(found)?;
        self.refuse_settings(id)?;
        let moves = match moves_of(&at, id, to) {
            Some(moves) => moves,
            None => {
                let message = format!("the path of the prompt `{id}` is spelled differently");
                return refuse(message, "rename its file first, so that it is the same as the id");
            }
        };
        for (_, target) in &moves {
            refuse_existing(target, to)?;
        }
        let mut edits: Vec<Edit> = Vec::new();
        for location in self.spots_of(&Thing::Prompt(id.to_owned())) {
            let is_manifest = Notation::of(&location.path) == Notation::Manifest;
            // Another pack may list a prompt of the same name.
            if !is_manifest || location.path.parent().is_some_and(|pack| at.starts_with(pack)) {
                edits.push(Edit { location, text: to.to_owned() });
            }
        }
        let files: Vec<PathBuf> = self.index.files().filter(|file| file.starts_with(&at)).cloned().collect();
        for file in files.iter().filter(|file| file.is_file()) {
            let Some((root, old)) = self.below_root(file) else { continue };
            let moved =
                moves.iter().fold(file.clone(), |file, (from, target)| match file.strip_prefix(from) {
                    Ok(rest) if rest.as_os_str().is_empty() => target.clone(),
                    Ok(rest) => target.join(rest),
                    Err(_) => file,
                });
            let new = moved.strip_prefix(&root).ok().and_then(Path::to_str).unwrap_or_default().to_owned();
            edits.extend(self.path_edits(file, &old, &new)?);
        }
        Ok(Renaming { edits, moves })
    }

    /// Settings that name a prompt in a way that no edit changes.
    fn refuse_settings(&self, id: &str) -> Result<()> {
        let root = self.book().library().root();
        for file in [root.join(CONFIG_FILE), root.join("user_data/shared/vocab.json")] {
            let text = self.text(&file).unwrap_or_default();
            if self.named(&Location::new(file.clone(), 0..text.len()), id).is_some() {
                let message = format!("{} names the prompt `{id}`", self.book().library().name(&file));
                return refuse(message, "remove the name there first, and add the new one afterwards");
            }
        }
        Ok(())
    }

    fn refuse_overrides(&self, found: &Found) -> Result<()> {
        let source = found.candidate.source.as_str();
        let compiled = self.compiled(&source.into());
        let tags = compiled.iter().flat_map(|one| one.override_tags().unwrap_or_default());
        match tags.into_iter().next() {
            Some(tag) => refuse(
                format!("the override `{tag}` of `{}` names its sections and tools", found.id),
                Hint::run("delete it first", format!("cuebook overrides delete {} --tag {tag}", found.id)),
            ),
            None => Ok(()),
        }
    }

    fn rename_section(
        &self,
        (path, offset): (&Path, usize),
        id: &str,
        section: &str,
        to: &str,
    ) -> Result<Renaming> {
        let thing = Thing::Section(id.to_owned(), section.to_owned());
        let found = self.book().find(id)?;
        let file = place(&found.candidate).filter(|file| file.starts_with(self.book().library().root()));
        let Some(file) = file else { return outside() };
        let text = self.text(&file).unwrap_or_default();
        let spots = self.spots(&file, &text).into_iter().filter(|spot| spot.thing == thing);
        let own: Vec<Range<usize>> = spots.map(|spot| spot.range).collect();
        let Some(title) = own.last().cloned() else {
            return refuse(format!("`{id}` has no section `{section}`"), "name a section that it has");
        };
        let on_title = path == file && title.start <= offset && offset <= title.end;
        let edit = match own.first().filter(|_| own.len() > 1 && !on_title) {
            Some(key) => Edit { location: Location::new(file.clone(), key.clone()), text: to.to_owned() },
            None if on_title => Edit { location: Location::new(file.clone(), title), text: to.to_owned() },
            None => with_key(&file, &text, title.end, to),
        };
        let index = |basis: &Basis, buffers: &Buffers| {
            let prepared = buffers.during(|| basis.prepare(&self.book, &found));
            let nodes = prepared
                .first()
                .and_then(|one| one.tree())
                .map(|tree| tree.sections().iter().map(|node| node.dotted().to_owned()).collect::<Vec<_>>());
            nodes.unwrap_or_default()
        };
        let basis = self.known_basis()?;
        let before = index(&basis, &self.buffers);
        let edits = vec![edit];
        let after = index(&basis, &self.edited(&edits));
        let new = before.iter().position(|known| known == section).and_then(|at| after.get(at));
        let Some(new) = new.filter(|_| before.len() == after.len()) else {
            self.refuse_new_errors(&edits)?;
            return refuse(format!("`{to}` cannot be the key of a section"), "use letters, digits and `-`");
        };
        let mut renaming = Renaming { edits, moves: Vec::new() };
        if new != section {
            self.refuse_overrides(&found)?;
            renaming.edits.extend(self.section_edits(&file, id, section, new));
        }
        self.refuse_new_errors(&renaming.edits)?;
        Ok(renaming)
    }

    /// The edits of addresses that name a section or one below it.
    fn section_edits(&self, file: &Path, id: &str, old: &str, new: &str) -> Vec<Edit> {
        let mut edits = Vec::new();
        for path in self.project_files().into_iter().filter(|path| path != file) {
            let Some(text) = self.text(&path).filter(|text| text.contains(id)) else { continue };
            for spot in self.spots(&path, &text) {
                let Thing::Section(prompt, section) = &spot.thing else { continue };
                let rest = section.strip_prefix(old).filter(|_| prompt == id);
                if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                    let range = spot.range.start..spot.range.start + old.len();
                    let written =
                        if text[spot.range].contains('/') { new.replace('.', "/") } else { new.to_owned() };
                    edits.push(Edit { location: Location::new(path.clone(), range), text: written });
                }
            }
        }
        edits
    }

    fn rename_tool(&self, file: &Path, name: &str, to: &str) -> Result<Renaming> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if to.is_empty() || !to.chars().all(is_name) {
            return refuse(format!("`{to}` is not the name of a tool"), "use letters, digits, `_` and `-`");
        }
        if let Some(source) = self.users(file, 1).first()
            && let Some(found) = self.index.get(source).map(|one| one.found.clone())
        {
            self.refuse_overrides(&found)?;
        }
        let places = self.spots_of(&Thing::Tool(file.to_owned(), name.to_owned()));
        let edits: Vec<Edit> =
            places.into_iter().map(|location| Edit { location, text: to.to_owned() }).collect();
        self.refuse_new_errors(&edits)?;
        Ok(Renaming { edits, moves: Vec::new() })
    }

    fn rename_item(&self, kind: ItemType, dotted: &str, to: &str) -> Result<Renaming> {
        let spaces = self.book().library().spaces();
        let file = self.item_file(kind, dotted);
        let item = file.as_ref().and_then(|file| spaces.at_path(kind, file));
        let (Some(file), Some(item)) = (file, item.filter(|item| item.space == SpaceKind::Project)) else {
            let hint = Hint::run("copy it to the project first", "cuebook load");
            return refuse(format!("the {kind} `{dotted}` is no file of this project"), hint);
        };
        let (name, category) = (item.id.name().to_owned(), item.id.category().to_owned());
        let wanted = to.strip_prefix(&category).and_then(|rest| rest.strip_prefix('/')).unwrap_or(to);
        let id = if category.is_empty() { wanted.to_owned() } else { format!("{category}/{wanted}") };
        if wanted.contains(['/', '.']) || ItemId::new(&id).is_err() {
            let hint = "a new name stays in the same folder: use letters, digits, `_` and `-`";
            return refuse(format!("`{to}` is not the name of a {kind}"), hint);
        }
        let target = file.with_file_name(format!("{wanted}.{}", item.extension));
        refuse_existing(&target, &id)?;
        let mut moves = vec![(file.clone(), target)];
        let cases = file.with_file_name(format!("{name}{CASES_END}"));
        if cases.is_file() {
            moves.push((cases.clone(), cases.with_file_name(format!("{wanted}{CASES_END}"))));
        }
        let mut edits: Vec<Edit> = Vec::new();
        let end_of = |at: &Location| Location::new(at.path.clone(), at.end - name.len()..at.end);
        for at in self.spots_of(&Thing::Item(kind, dotted.to_owned())) {
            edits.push(Edit { location: end_of(&at), text: wanted.to_owned() });
        }
        let text = self.text(&file).unwrap_or_default();
        let own = own_names(kind, &text).into_iter().filter(|range| text[range.clone()] == name);
        edits.extend(
            own.map(|range| Edit { location: Location::new(file.clone(), range), text: wanted.to_owned() }),
        );
        Ok(Renaming { edits, moves })
    }

    /// Refuses edits that give a prompt errors which it did not have.
    pub(super) fn refuse_new_errors(&self, edits: &[Edit]) -> Result<()> {
        let (changed, basis) = (self.edited(edits), self.known_basis()?);
        let sources: BTreeSet<_> =
            edits.iter().flat_map(|edit| self.users(&edit.location.path, usize::MAX)).collect();
        for source in sources {
            let Some(one) = self.index.get(&source) else { continue };
            let errors = |buffers: &Buffers| {
                let findings = buffers.during(|| basis.examine(&self.book, &one.found)).findings;
                findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect::<Vec<_>>()
            };
            let (before, after) = (errors(&self.buffers), errors(&changed));
            if after.len() > before.len() {
                let new = after.iter().find(|new| before.iter().all(|old| old.message != new.message));
                let message = new.or(after.last()).map(|new| new.message.clone()).unwrap_or_default();
                return refuse(
                    format!("`{}` would have an error: {message}", one.found.id),
                    "choose another name",
                );
            }
        }
        Ok(())
    }
}

fn outside<T>() -> Result<T> {
    refuse("this is no file of the project".to_owned(), "copy it into the project first")
}

fn refuse_existing(target: &Path, to: &str) -> Result<()> {
    match target.exists() {
        true => refuse(format!("`{to}` exists already"), "choose another name"),
        false => Ok(()),
    }
}

/// How the files of a prompt move: its folder, or its file and its cases, or all of `ID/ID.prompty`.
fn moves_of(at: &Path, id: &str, to: &str) -> Option<Vec<(PathBuf, PathBuf)>> {
    let name = at.file_name()?.to_str()?;
    if at.is_dir() {
        return (name == id).then(|| vec![(at.to_owned(), at.with_file_name(to))]);
    }
    let end = name.strip_prefix(id).filter(|end| end.starts_with('.'))?;
    let mut moves = vec![(at.to_owned(), at.with_file_name(format!("{to}{end}")))];
    let cases = at.with_file_name(format!("{id}{CASES_END}"));
    if cases.is_file() {
        moves.push((cases.clone(), cases.with_file_name(format!("{to}{CASES_END}"))));
    }
    let folder = at.parent().filter(|folder| folder.file_name().is_some_and(|name| name == id));
    moves.extend(folder.map(|folder| (folder.to_owned(), folder.with_file_name(to))));
    Some(moves)
}

/// Gives a section a key of its own, so that its title stays.
fn with_key(file: &Path, text: &str, heading: usize, key: &str) -> Edit {
    let line = text[heading..].find('\n').map_or(text.len(), |at| heading + at + 1);
    let rest = &text[line..];
    let opening = "```yaml section\n";
    let gap = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    let (at, added) = match rest[gap..].starts_with(opening) {
        true => (line + gap + opening.len(), format!("key: {key}\n")),
        false => (line, format!("{opening}key: {key}\n```\n")),
    };
    let added = if line == text.len() && !text.ends_with('\n') { format!("\n{added}") } else { added };
    Edit { location: Location::new(file, at..at), text: added }
}

/// Where an item says its own name: `name` of a directive, `name` and `id` of knowledge.
fn own_names(kind: ItemType, text: &str) -> Vec<Range<usize>> {
    match kind {
        ItemType::Directive => {
            let block = xml(text);
            let start = text[block.clone()].find("<directive").map(|at| block.start + at);
            let name =
                start.and_then(|start| text[start..block.end].find("name=\"").map(|at| start + at + 6));
            let end = |start: usize| text[start..].find('"').map(|length| start..start + length);
            name.and_then(end).into_iter().collect()
        }
        ItemType::Knowledge => {
            let head = text.find("\n\n").unwrap_or(text.len());
            let keys = ["name", "id"].iter().flat_map(|key| after_key(&text[..head], key));
            keys.collect()
        }
        ItemType::Tool => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_gets_a_key_in_its_settings_or_in_new_ones() {
        let made = |text: &str| {
            let edit = with_key(Path::new("a"), text, 3, "k");
            let mut text = text.to_owned();
            text.insert_str(edit.location.start, &edit.text);
            text
        };
        assert_eq!(made("# A\nx\n"), "# A\n```yaml section\nkey: k\n```\nx\n");
        assert_eq!(
            made("# A\n```yaml section\nsummary: s\n```\n"),
            "# A\n```yaml section\nkey: k\nsummary: s\n```\n"
        );
        assert_eq!(made("# A"), "# A\n```yaml section\nkey: k\n```\n");
    }

    #[test]
    fn an_item_names_itself() {
        let shown = |kind, text: &str| -> Vec<String> {
            own_names(kind, text).into_iter().map(|range| text[range].to_owned()).collect()
        };
        let text =
            "# T\n```xml\n<directive name=\"a\" version=\"1.0.0\"><input name=\"b\"/></directive>\n```\n";
        assert_eq!(shown(ItemType::Directive, text), ["a"]);
        assert_eq!(shown(ItemType::Knowledge, "---\nid: tea\nname: tea\n---\n\nname: x\n"), ["tea", "tea"]);
    }
}
