//! Directives among the prompts of a library. They lie in spaces (see [`crate::items`]) and not in the places of a library: an
//! id is the path of a file, and what a nearer space has shadows what the others have.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use super::root::{Root, RootKind};
use super::{Candidate, Found, Library, Reason};
use crate::error::{Result, did_you_mean, nearest};
use crate::items::{ItemId, ItemType, Located, Spaces};
use crate::prompt::DIRECTIVE;
use crate::trust::Trust;

impl Library {
    /// The same library with other spaces than those of this user.
    pub fn with_spaces(mut self, spaces: Spaces) -> Library {
        let trust = Trust::new(&spaces);
        self.spaces = (spaces, trust).into();
        self
    }

    fn items(&self) -> &(Spaces, Trust) {
        self.spaces.get_or_init(|| {
            let spaces = Spaces::of_project(&self.root);
            let trust = Trust::new(&spaces);
            (spaces, trust)
        })
    }

    /// The spaces that its directives lie in.
    pub fn spaces(&self) -> &Spaces {
        &self.items().0
    }

    /// Who is trusted here.
    pub fn trust(&self) -> &Trust {
        &self.items().1
    }

    /// The directive of an id, and behind it those that it shadows.
    pub(super) fn directives_of(&self, id: &str) -> Result<Vec<Candidate>> {
        let Ok(id) = ItemId::new(id) else { return Ok(Vec::new()) };
        let mut candidates: Vec<Candidate> = Vec::new();
        for located in self.spaces().candidates(ItemType::Directive, &id)? {
            let nearer = candidates.first().map(|nearest| nearest.source.clone());
            candidates.push(self.offered(&located, nearer));
        }
        Ok(candidates)
    }

    /// The directive of an id in the nearest space that has one.
    #[doc(hidden)]
    pub fn find_directive(&self, id: &ItemId) -> Result<Found> {
        let mut candidates = self.directives_of(id.as_str())?.into_iter();
        let nearest = candidates.next().ok_or_else(|| self.spaces().not_found(ItemType::Directive, id))?;
        let shadowed: Vec<String> = candidates.map(|candidate| candidate.source).collect();
        let reason = if shadowed.is_empty() { Reason::Only } else { Reason::Nearest(shadowed) };
        Ok(Found { id: id.to_string(), candidate: nearest, reason })
    }

    /// The directives that an id with `/` means. A path is not an id.
    pub(super) fn directives_named(
        &self,
        wanted: &str,
        path: &Path,
    ) -> Result<Option<(String, Vec<Candidate>)>> {
        let is_relative = matches!(path.components().next(), Some(Component::Normal(_)));
        if !is_relative || wanted.starts_with("./") || path.exists() {
            return Ok(None);
        }
        let candidates = self.directives_of(wanted)?;
        Ok((!candidates.is_empty()).then(|| (wanted.to_owned(), candidates)))
    }

    /// A directive by the path of its file: in one of the spaces, or in a folder `.ai/directives` elsewhere.
    pub(super) fn directive_file(&self, path: &Path) -> Result<Option<Found>> {
        if let Some(located) = self.spaces().at_path(ItemType::Directive, path) {
            let candidate = self.offered(&located, None);
            return Ok(Some(Found { id: located.id.to_string(), candidate, reason: Reason::Given }));
        }
        let Some(project) = path.ancestors().find_map(|folder| {
            let folder = folder.parent().filter(|_| folder.ends_with(".ai/directives"))?;
            folder.parent()
        }) else {
            return Ok(None);
        };
        let Some(located) = Spaces::new(project, None).at_path(ItemType::Directive, path) else {
            return Ok(None);
        };
        let folder = project.join(".ai").join(ItemType::Directive.folder());
        let root = Root::on_disk(RootKind::Given, self.name(&folder), folder);
        let candidate = of_root(Arc::new(root), &located.id, None);
        Ok(Some(Found { id: located.id.to_string(), candidate, reason: Reason::Given }))
    }

    /// The directive at a recorded source.
    pub(super) fn directive_at(&self, source: &str) -> Result<Option<Candidate>> {
        for space in self.spaces().all() {
            let root = Root::of_space(space);
            let id = source.strip_prefix(&root.name).and_then(|rest| rest.strip_prefix('/'));
            let Some(id) = id.and_then(|file| file.strip_suffix(".md")) else { continue };
            let found = self.directives_of(id)?.into_iter().find(|found| found.source == source);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Adds every directive to what was found elsewhere.
    pub(super) fn survey_directives(&self, found: &mut BTreeMap<String, Vec<Candidate>>) -> Result<()> {
        for space in self.spaces().all() {
            for located in self.spaces().walk(ItemType::Directive, space)? {
                let known = found.entry(located.id.to_string()).or_default();
                let nearer = known.iter().find(|known| known.dialect.is_item);
                let nearer = nearer.map(|nearest| nearest.source.clone());
                known.push(self.offered(&located, nearer));
            }
        }
        Ok(())
    }

    /// A hint for a path that leads to nothing, and that is nearly the id of a directive.
    pub(super) fn near_directive(&self, path: &Path) -> Option<String> {
        let wanted = path.to_str().filter(|wanted| ItemId::new(wanted).is_ok())?;
        let walk = |space| self.spaces().walk(ItemType::Directive, space).unwrap_or_default();
        let ids: Vec<String> =
            self.spaces().all().iter().flat_map(walk).map(|located| located.id.to_string()).collect();
        // Everything has some likeness with what begins alike, so only the last part decides.
        let name = |id: &str| id.rsplit('/').next().unwrap_or_default().to_owned();
        let near = nearest(wanted, ids.iter().map(String::as_str));
        let near: Vec<String> =
            near.into_iter().filter(|id| !nearest(&name(wanted), [name(id).as_str()]).is_empty()).collect();
        did_you_mean(&near)
    }

    /// The item that a candidate is, if it lies in a space.
    #[doc(hidden)]
    pub fn item_of(&self, id: &str, candidate: &Candidate) -> Result<Option<Located>> {
        let RootKind::Space(kind) = candidate.root.kind else { return Ok(None) };
        match self.spaces().space(kind) {
            Some(space) => space.locate(ItemType::Directive, &ItemId::new(id)?),
            None => Ok(None),
        }
    }

    fn offered(&self, located: &Located, nearer: Option<String>) -> Candidate {
        let space = self.spaces().space(located.space);
        let root = match space {
            Some(space) => Root::of_space(space),
            // Every item is of a space that there is; should one ever not be, it has no files.
            None => Root::on_disk(RootKind::Given, "", self.root.clone()),
        };
        of_root(Arc::new(root), &located.id, nearer)
    }
}

fn of_root(root: Arc<Root>, id: &ItemId, shadowed_by: Option<String>) -> Candidate {
    let file = format!("{}.md", id.name());
    Candidate {
        source: root.file_name(&format!("{id}.md")),
        version: None,
        dialect: &DIRECTIVE,
        pack_id: None,
        has_prompt_py: false,
        has_template: false,
        shadowed_by,
        root,
        entry: id.category().to_owned(),
        template_file: Some(file),
    }
}
