//! The sources of all crates as trees of modules, and what a path means in one of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree, Visibility};

/// All crates of a folder.
pub struct Crates {
    pub folder: PathBuf,
    roots: BTreeMap<String, Module>,
}

/// A module: its items, its modules, and what its `use` lines name.
#[derive(Default)]
pub struct Module {
    pub items: Vec<Item>,
    /// Each with whether it is public.
    pub modules: BTreeMap<String, (bool, Module)>,
    pub uses: Vec<Use>,
}

/// A name that a `use` line brings into a module; `*` for all of a module.
pub struct Use {
    pub name: String,
    pub path: Vec<String>,
    pub is_public: bool,
}

/// Where something is: a crate, modules, and its name.
pub type Address = Vec<String>;

/// What an address leads to.
pub enum Found<'c> {
    Module(Address, &'c Module),
    Items(Address, Vec<&'c Item>),
    /// An item of a crate that is not here.
    Foreign(Address),
    /// An item that a macro makes in a module that is here.
    Made(Address),
}

/// No chain of re-exports is longer.
const DEEPEST: usize = 16;

impl Crates {
    pub fn read(folder: &Path) -> Crates {
        let mut roots = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.join("src/lib.rs");
            if file.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().replace('-', "_");
                roots.insert(name, Module::read(&file, &path.join("src")));
            }
        }
        Crates { folder: folder.to_owned(), roots }
    }

    pub fn root(&self, name: &str) -> &Module {
        &self.roots[name]
    }

    fn module(&self, address: &[String]) -> Option<&Module> {
        let (root, rest) = address.split_first()?;
        rest.iter().try_fold(self.roots.get(root)?, |module, name| Some(&module.modules.get(name)?.1))
    }

    /// What a path means in the module of an address.
    pub fn resolve(&self, inside: &[String], path: &[String]) -> Option<Found<'_>> {
        self.resolve_within(inside, path, 0)
    }

    fn resolve_within(&self, inside: &[String], path: &[String], depth: usize) -> Option<Found<'_>> {
        if depth > DEEPEST {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let start: Address = match first.as_str() {
            "crate" => vec![inside[0].clone()],
            "self" => inside.to_vec(),
            "super" => inside[..inside.len() - 1].to_vec(),
            _ => {
                let is_module = !rest.is_empty()
                    && self.module(inside).is_some_and(|module| module.modules.contains_key(first));
                return self.named(inside, first, rest, depth).or_else(|| match is_module {
                    true => Some(Found::Made(path.to_vec())),
                    false => self.outside(path, depth),
                });
            }
        };
        match rest {
            [] => Some(Found::Module(start.clone(), self.module(&start)?)),
            [next, ..] if next == "super" => self.resolve_within(&start, rest, depth + 1),
            [next, rest @ ..] => self.named(&start, next, rest, depth),
        }
    }

    /// A path that begins with the name of a crate.
    fn outside(&self, path: &[String], depth: usize) -> Option<Found<'_>> {
        let (first, rest) = path.split_first()?;
        if !self.roots.contains_key(first) {
            return Some(Found::Foreign(path.to_vec()));
        }
        let start = vec![first.clone()];
        match rest {
            [] => Some(Found::Module(start.clone(), self.module(&start)?)),
            [next, rest @ ..] => self.named(&start, next, rest, depth),
        }
    }

    /// What a name means that is written in a module, and the path behind it.
    fn named(&self, inside: &[String], name: &str, rest: &[String], depth: usize) -> Option<Found<'_>> {
        let module = self.module(inside)?;
        let mut here = inside.to_vec();
        here.push(name.to_owned());
        if let Some((_, child)) = module.modules.get(name) {
            return match rest {
                [] => Some(Found::Module(here, child)),
                [next, rest @ ..] => self.named(&here, next, rest, depth),
            };
        }
        let items: Vec<&Item> =
            module.items.iter().filter(|item| name_of(item).as_deref() == Some(name)).collect();
        if !items.is_empty() {
            return Some(Found::Items(here, items));
        }
        if let Some(found) = module.uses.iter().find(|found| found.name == name) {
            let whole: Vec<String> = found.path.iter().chain(rest).cloned().collect();
            // `use serde;` names the crate, not itself.
            if whole.first().map(String::as_str) != Some(name) || found.path.len() > 1 {
                return self.resolve_within(inside, &whole, depth + 1);
            }
        }
        for found in module.uses.iter().filter(|found| found.name == "*") {
            if let Some(Found::Module(address, _)) = self.resolve_within(inside, &found.path, depth + 1)
                && let Some(found) = self.named(&address, name, rest, depth + 1)
            {
                return Some(found);
            }
        }
        None
    }
}

impl Module {
    fn read(file: &Path, folder: &Path) -> Module {
        let text = std::fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Module::of(parsed.items, folder)
    }

    fn of(items: Vec<Item>, folder: &Path) -> Module {
        let mut module = Module::default();
        for item in items {
            match item {
                Item::Mod(child) if !is_left_out(&child.attrs) => {
                    let name = child.ident.to_string();
                    let below = folder.join(&name);
                    let read = match child.content {
                        Some((_, items)) => Module::of(items, &below),
                        None => {
                            let named = path_of(&child.attrs).unwrap_or_else(|| format!("{name}.rs"));
                            // A `#[path]` starts at the folder of its file, which is above the module's own one.
                            let above = folder.parent().unwrap_or(folder).join(&named);
                            let places = [folder.join(&named), below.join("mod.rs"), above];
                            let file = places.into_iter().find(|file| file.is_file()).unwrap();
                            Module::read(&file, &below)
                        }
                    };
                    module.modules.insert(name, (is_public(&child.vis), read));
                }
                Item::Mod(_) => {}
                Item::Use(line) if !is_left_out(&line.attrs) => {
                    collect(&line.tree, &mut Vec::new(), is_public(&line.vis), &mut module.uses);
                }
                other => module.items.push(other),
            }
        }
        module
    }
}

/// The file that `#[path = "…"]` names.
fn path_of(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The names of a `use` line.
fn collect(tree: &UseTree, path: &mut Vec<String>, is_public: bool, found: &mut Vec<Use>) {
    let mut add = |name: String, path: Vec<String>| found.push(Use { name, path, is_public });
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            collect(&step.tree, path, is_public, found);
            path.pop();
        }
        UseTree::Name(last) if last.ident == "self" => {
            add(path.last().cloned().unwrap_or_default(), path.clone());
        }
        UseTree::Name(last) => {
            let name = last.ident.to_string();
            add(name.clone(), path.iter().cloned().chain([name]).collect());
        }
        UseTree::Rename(last) => {
            let original = last.ident.to_string();
            let path = match original.as_str() {
                "self" => path.clone(),
                _ => path.iter().cloned().chain([original]).collect(),
            };
            add(last.rename.to_string(), path);
        }
        UseTree::Glob(_) => add("*".to_owned(), path.clone()),
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, path, is_public, found);
            }
        }
    }
}

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether attributes keep something out of the API: tests, and what is hidden from the documentation.
pub fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = quote::ToTokens::to_token_stream(&attribute.meta).to_string();
        text == "cfg (test)" || text == "doc (hidden)"
    })
}

/// The name of an item.
pub fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}
