//! Where things are defined.

use std::path::{Path, PathBuf};

use super::layout::tags;
use super::names::Thing;
use super::spots::unquoted;
use super::symbols::SymbolKind;
use super::{Location, Service};
use crate::library::TEMPLATE_FILE;
use crate::prepared::Prepared;

impl Service {
    /// Where the thing is defined that stands at a byte of a file.
    pub fn definition(&self, path: &Path, offset: usize) -> Option<Location> {
        let thing = self.thing_at(path, offset)?;
        match &thing {
            Thing::Variable(name) => self.declaration(path, name),
            Thing::Local(name) => {
                let is_macro = |name: String| self.macro_place(path, &Thing::Macro(name));
                let of_macro = self.macro_named(path, name).and_then(is_macro);
                of_macro.or_else(|| self.place_that_sets(path, &thing, name))
            }
            Thing::Block(_) => {
                // The first file of the chain that has the block is the one that it comes from.
                let (places, _) = self.places(path, &thing);
                let mut opens = places.into_iter().filter(|at| self.follows(at, "block"));
                let first = opens.next();
                opens.find(|at| at.path != path).or(first)
            }
            Thing::Macro(_) => self.macro_place(path, &thing),
            Thing::Template(_) => {
                let file = self.target_of(path, &thing)?;
                Some(Location::new(file, 0..0))
            }
            Thing::Prompt(_) | Thing::Section(..) | Thing::Tool(..) | Thing::Item(..) => {
                self.place_of(&thing)
            }
        }
    }

    /// Where a macro is defined.
    fn macro_place(&self, path: &Path, thing: &Thing) -> Option<Location> {
        self.places(path, thing).0.into_iter().find(|at| self.follows(at, "macro"))
    }

    /// Where a template sets a name.
    fn place_that_sets(&self, path: &Path, thing: &Thing, name: &str) -> Option<Location> {
        let text = self.text(path)?;
        let sets = |tag: &super::layout::Tag, at: &Location| {
            let keywords = ["set", "for", "macro", "with", "import"];
            tag.inside.contains(&at.start) && keywords.contains(&tag.keyword(&text))
        };
        let tags = tags(&text, 0);
        let mut places = self.places(path, thing).0.into_iter().filter(|at| at.path == path);
        places.find(|at| text.get(at.range()) == Some(name) && tags.iter().any(|tag| sets(tag, at)))
    }

    /// The places of a file that lead to other files: templates, prompts and items.
    pub fn links(&self, path: &Path) -> Vec<(Location, PathBuf)> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let mut links = Vec::new();
        for spot in self.spots(path, &text) {
            let leads = matches!(spot.thing, Thing::Prompt(_) | Thing::Item(..));
            let target = leads.then(|| self.place_of(&spot.thing)).flatten().map(|found| found.path);
            links.extend(
                target.filter(|file| file != path).map(|file| (Location::new(path, spot.range), file)),
            );
        }
        for symbol in self.symbols(path).into_iter().filter(|symbol| symbol.kind == SymbolKind::File) {
            let inner = unquoted(&text, &symbol.location.range());
            let thing = Thing::Template(text[inner.clone()].to_owned());
            links.extend(self.target_of(path, &thing).map(|file| (Location::new(path, inner), file)));
        }
        links.sort();
        links
    }

    /// Where a variable is declared.
    fn declaration(&self, path: &Path, name: &str) -> Option<Location> {
        let prepared = self.prepared(path);
        let mut all = prepared.iter().flat_map(|all| all.iter());
        let place = all.find_map(|one| one.prompt().variable(name)?.place.clone())?;
        Some(self.location(&place))
    }

    /// Whether a place follows a keyword.
    fn follows(&self, at: &Location, keyword: &str) -> bool {
        let text = self.text(&at.path).unwrap_or_default();
        text.get(..at.start).is_some_and(|before| before.trim_end().ends_with(keyword))
    }

    /// The file that a string of a template leads to.
    pub(super) fn target_of(&self, path: &Path, thing: &Thing) -> Option<PathBuf> {
        let Thing::Template(name) = thing else { return None };
        for prepared in self.prepared(path).iter().flat_map(|all| all.iter()) {
            let outline = prepared.outline();
            for unit in outline.units() {
                let is_here = self.location(&unit.source().place(0..0)).path == path;
                if let Some(file) =
                    is_here.then(|| self.file_named(prepared, unit.source().name(), name)).flatten()
                {
                    return Some(file);
                }
            }
        }
        None
    }

    /// The file that a template means by a name.
    pub(super) fn file_named(&self, prepared: &Prepared, parent: &str, name: &str) -> Option<PathBuf> {
        let outline = prepared.outline();
        let unit = outline.jinja().and_then(|program| program.target(parent, name));
        if let Some(unit) = unit.and_then(|unit| outline.units().get(unit)) {
            let file = self.location(&unit.source().place(0..0)).path;
            return file.is_file().then_some(file);
        }
        let id = ["prompt:", "sections:", "directive:"].iter().find_map(|kind| name.strip_prefix(kind));
        if let Some(found) = id.and_then(|id| self.book().find(id).ok()) {
            let file = crate::targets::place(&found.candidate)?;
            return Some(if file.is_dir() { file.join(TEMPLATE_FILE) } else { file });
        }
        // A partial of dotprompt has another name than its file.
        let is_partial = |file: &PathBuf| {
            let file = file.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let partial = file.strip_prefix('_').and_then(|file| file.split('.').next());
            partial.is_some() && partial == name.rsplit('/').next()
        };
        let units = outline.units().iter().map(|unit| self.location(&unit.source().place(0..0)).path);
        if let Some(file) = units.into_iter().find(is_partial) {
            return file.is_file().then_some(file);
        }
        // Partials of Mustache are looked for as its loader does.
        let folders = self.book().library().roots().unwrap_or_default();
        let files = folders
            .iter()
            .filter_map(|root| root.folder())
            .flat_map(|folder| [folder.join(name), folder.join(format!("{name}.md"))]);
        files.into_iter().find(|file| outline.jinja().is_none() && file.is_file())
    }
}
