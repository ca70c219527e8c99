//! One line for each public item, with its signature.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type};

use super::crates::{Address, Crates, Found, Module, is_left_out, is_public, name_of};

/// Crates whose types may be in signatures: they are re-exported.
const ALLOWED: [&str; 5] = ["std", "core", "alloc", "serde", "serde_json"];

/// Types of the language, whose constants have paths, as in `i64::MAX`.
const PRIMITIVES: [&str; 6] = ["f64", "i64", "u32", "u64", "usize", "str"];

pub struct Listing<'c> {
    crates: &'c Crates,
    lines: BTreeSet<String>,
    /// The public path of each item, by its address.
    paths: BTreeMap<Address, String>,
    /// Types of other crates, and the items that show them.
    foreign: BTreeMap<String, BTreeSet<String>>,
}

impl<'c> Listing<'c> {
    /// The list of a crate.
    pub fn of(crates: &'c Crates, name: &str) -> String {
        let root = name.replace('-', "_");
        let mut listing =
            Listing { crates, lines: BTreeSet::new(), paths: BTreeMap::new(), foreign: BTreeMap::new() };
        listing.walk(&root);
        listing.implementations();
        let mut text: String = listing.lines.iter().map(|line| format!("{line}\n")).collect();
        text.push_str("# types of other crates\n");
        for (name, items) in &listing.foreign {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            text.push_str(&format!("{name}: {}\n", items.join(", ")));
        }
        text
    }

    /// Visits public modules, those with short paths first.
    fn walk(&mut self, root: &str) {
        let mut queue = VecDeque::from([(vec![root.to_owned()], self.crates.root(root), root.to_owned())]);
        let mut seen = BTreeSet::new();
        while let Some((address, module, path)) = queue.pop_front() {
            if !seen.insert(address.clone()) {
                continue;
            }
            for item in &module.items {
                self.add(&address, item, &path, None);
            }
            for (name, (is_public, child)) in &module.modules {
                if *is_public {
                    let below = address.iter().cloned().chain([name.clone()]).collect();
                    queue.push_back((below, child, format!("{path}::{name}")));
                }
            }
            for found in module.uses.iter().filter(|found| found.is_public) {
                match self.crates.resolve(&address, &found.path) {
                    Some(Found::Module(target, child)) if found.name == "*" => {
                        queue.push_back((target, child, path.clone()));
                    }
                    Some(Found::Module(target, child)) => {
                        queue.push_back((target, child, format!("{path}::{}", found.name)));
                    }
                    Some(Found::Items(target, items)) => {
                        let inside = target[..target.len() - 1].to_vec();
                        for item in items {
                            self.add(&inside, item, &path, Some(&found.name));
                        }
                    }
                    Some(Found::Foreign(target) | Found::Made(target)) => {
                        self.lines.insert(format!("pub use {path}::{} = {}", found.name, target.join("::")));
                    }
                    None => {}
                }
            }
        }
    }

    /// Lists an item under a path, once.
    fn add(&mut self, inside: &[String], item: &Item, path: &str, renamed: Option<&str>) {
        let Some(own) = name_of(item) else {
            self.add_made(item, path);
            return;
        };
        let address: Address = inside.iter().cloned().chain([own.clone()]).collect();
        let path = format!("{path}::{}", renamed.unwrap_or(&own));
        let Some((kind, text, attributes)) = signature(item) else { return };
        if is_left_out(attributes) {
            return;
        }
        if let Some(known) = self.paths.get(&address) {
            if *known != path {
                self.lines.insert(format!("pub use {path} = {known}"));
            }
            return;
        }
        self.lines.insert(format!("pub {kind} {path}{}{}", text, marks(attributes)));
        self.note_foreign(inside, &path, public_tokens(item));
        self.paths.insert(address, path);
    }

    /// What a macro makes cannot be seen: its words are listed.
    fn add_made(&mut self, item: &Item, path: &str) {
        let Item::Macro(made) = item else { return };
        let mut words = Vec::new();
        idents(made.mac.tokens.clone(), &mut words);
        self.lines.insert(format!("{path}: {}! {}", plain(made.mac.path.to_token_stream()), words.join(" ")));
    }

    /// Methods and traits of the items that are listed.
    fn implementations(&mut self) {
        let roots: BTreeSet<String> = self.paths.keys().map(|address| address[0].clone()).collect();
        for root in roots {
            self.implementations_in(&mut vec![root.clone()], self.crates.root(&root));
        }
    }

    fn implementations_in(&mut self, inside: &mut Address, module: &'c Module) {
        for item in &module.items {
            if let Item::Impl(block) = item
                && !is_left_out(&block.attrs)
            {
                self.implementation(inside, block);
            }
        }
        for (name, (_, child)) in &module.modules {
            inside.push(name.clone());
            self.implementations_in(inside, child);
            inside.pop();
        }
    }

    fn implementation(&mut self, inside: &[String], block: &ItemImpl) {
        let Type::Path(own) = &*block.self_ty else { return };
        let segments: Vec<String> =
            own.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let Some(Found::Items(address, _)) = self.crates.resolve(inside, &segments) else { return };
        let Some(path) = self.paths.get(&address).cloned() else { return };
        if let Some((_, name, _)) = &block.trait_ {
            self.lines.insert(format!(
                "impl {} for {path}{}",
                plain(name.to_token_stream()),
                marks(&block.attrs)
            ));
            return;
        }
        for item in &block.items {
            let (text, attributes, name) = match item {
                ImplItem::Fn(item) if is_public(&item.vis) => {
                    (after_name(&item.sig), &item.attrs, format!("fn {path}::{}", item.sig.ident))
                }
                ImplItem::Const(item) if is_public(&item.vis) => (
                    format!(": {}", plain(item.ty.to_token_stream())),
                    &item.attrs,
                    format!("const {path}::{}", item.ident),
                ),
                _ => continue,
            };
            if !is_left_out(attributes) {
                self.lines.insert(format!("pub {name}{text}{}", marks(attributes)));
                let tokens = match item {
                    ImplItem::Fn(item) => item.sig.to_token_stream(),
                    other => other.to_token_stream(),
                };
                self.note_foreign(inside, &path, tokens);
            }
        }
    }

    /// Notes types of other crates in a signature.
    fn note_foreign(&mut self, inside: &[String], path: &str, tokens: TokenStream) {
        let mut named = Vec::new();
        type_paths(tokens, &mut named);
        for words in named {
            let Some(Found::Foreign(target)) = self.crates.resolve(inside, &words) else { continue };
            if PRIMITIVES.contains(&target[0].as_str()) {
                continue;
            }
            if target.len() > 1 && !ALLOWED.contains(&target[0].as_str()) {
                self.foreign.entry(target.join("::")).or_default().insert(path.to_owned());
            }
        }
    }
}

/// The paths of tokens that name a type, as `Zoned` and `jiff::Zoned`, each up to the type.
fn type_paths(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    path.clear();
                }
                let is_known = path.last().is_some_and(|last| last.starts_with(char::is_uppercase));
                let word = word.to_string();
                if !is_known {
                    path.push(word.clone());
                    if word.starts_with(char::is_uppercase) {
                        found.push(path.clone());
                    }
                }
                colons = 0;
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                type_paths(group.stream(), found);
                colons = 0;
                path.clear();
            }
            _ => {
                colons = 0;
                path.clear();
            }
        }
    }
}

/// All words of tokens.
fn idents(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Group(group) => idents(group.stream(), found),
            _ => {}
        }
    }
}

/// What an item is, and what follows its name.
fn signature(item: &Item) -> Option<(&'static str, String, &[Attribute])> {
    Some(match item {
        Item::Fn(item) if is_public(&item.vis) => ("fn", after_name(&item.sig), &item.attrs),
        Item::Struct(item) if is_public(&item.vis) => (
            "struct",
            format!("{}{}", plain(item.generics.to_token_stream()), fields(&item.fields)),
            &item.attrs,
        ),
        Item::Enum(item) if is_public(&item.vis) => {
            let variants = item
                .variants
                .iter()
                .map(|variant| format!("{}{}", variant.ident, variant_fields(&variant.fields)));
            let variants = variants.collect::<Vec<_>>().join(", ");
            ("enum", format!("{} {{ {variants} }}", plain(item.generics.to_token_stream())), &item.attrs)
        }
        Item::Trait(item) if is_public(&item.vis) => {
            let bounds = if item.supertraits.is_empty() {
                String::new()
            } else {
                format!(": {}", plain(item.supertraits.to_token_stream()))
            };
            let members: Vec<String> = item.items.iter().filter_map(member).collect();
            let generics = plain(item.generics.to_token_stream());
            ("trait", format!("{generics}{bounds} {{ {} }}", members.join(" ")), &item.attrs)
        }
        Item::Type(item) if is_public(&item.vis) => (
            "type",
            format!("{} = {}", plain(item.generics.to_token_stream()), plain(item.ty.to_token_stream())),
            &item.attrs,
        ),
        Item::Const(item) if is_public(&item.vis) => {
            ("const", format!(": {}", plain(item.ty.to_token_stream())), &item.attrs)
        }
        Item::Static(item) if is_public(&item.vis) => {
            ("static", format!(": {}", plain(item.ty.to_token_stream())), &item.attrs)
        }
        Item::Macro(item) if item.attrs.iter().any(|known| known.path().is_ident("macro_export")) => {
            ("macro", "!".to_owned(), &item.attrs)
        }
        _ => return None,
    })
}

/// What of an item others see: no private field, no body.
fn public_tokens(item: &Item) -> TokenStream {
    match item {
        Item::Fn(item) => item.sig.to_token_stream(),
        Item::Struct(item) => item
            .fields
            .iter()
            .filter(|field| is_public(&field.vis))
            .map(|field| field.ty.to_token_stream())
            .collect(),
        Item::Enum(item) => item
            .variants
            .iter()
            .flat_map(|variant| &variant.fields)
            .map(|field| field.ty.to_token_stream())
            .collect(),
        Item::Trait(item) => item
            .items
            .iter()
            .map(|item| match item {
                TraitItem::Fn(item) => item.sig.to_token_stream(),
                other => other.to_token_stream(),
            })
            .collect(),
        Item::Type(item) => item.ty.to_token_stream(),
        Item::Const(item) => item.ty.to_token_stream(),
        Item::Static(item) => item.ty.to_token_stream(),
        _ => TokenStream::new(),
    }
}

fn member(item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Fn(item) if is_left_out(&item.attrs) => None,
        TraitItem::Fn(item) => {
            let provided = if item.default.is_some() { " { .. }" } else { ";" };
            Some(format!("fn {}{}{provided}", item.sig.ident, after_name(&item.sig)))
        }
        TraitItem::Type(item) => Some(format!("type {};", item.ident)),
        TraitItem::Const(item) => {
            Some(format!("const {}: {};", item.ident, plain(item.ty.to_token_stream())))
        }
        _ => None,
    }
}

/// A signature without its name.
fn after_name(signature: &syn::Signature) -> String {
    let generics = plain(signature.generics.to_token_stream());
    let inputs = plain(signature.inputs.to_token_stream());
    let output = plain(signature.output.to_token_stream());
    let output = if output.is_empty() { output } else { format!(" {output}") };
    let clause = signature
        .generics
        .where_clause
        .as_ref()
        .map(|clause| format!(" {}", plain(clause.to_token_stream())));
    format!("{generics}({inputs}){output}{}", clause.unwrap_or_default())
}

fn fields(fields: &Fields) -> String {
    let (mut shown, mut hidden) = (Vec::new(), false);
    for field in fields {
        match (is_public(&field.vis), &field.ident) {
            (true, Some(name)) => shown.push(format!("pub {name}: {}", plain(field.ty.to_token_stream()))),
            (true, None) => shown.push(format!("pub {}", plain(field.ty.to_token_stream()))),
            (false, _) => hidden = true,
        }
    }
    if hidden {
        shown.push("..".to_owned());
    }
    match fields {
        Fields::Named(_) => format!(" {{ {} }}", shown.join(", ")),
        Fields::Unnamed(_) => format!("({})", shown.join(", ")),
        Fields::Unit => String::new(),
    }
}

fn variant_fields(fields: &Fields) -> String {
    let text = |field: &syn::Field| match &field.ident {
        Some(name) => format!("{name}: {}", plain(field.ty.to_token_stream())),
        None => plain(field.ty.to_token_stream()),
    };
    let all: Vec<String> = fields.iter().map(text).collect();
    match fields {
        Fields::Named(_) => format!(" {{ {} }}", all.join(", ")),
        Fields::Unnamed(_) => format!("({})", all.join(", ")),
        Fields::Unit => String::new(),
    }
}

/// The attributes that callers notice.
fn marks(attributes: &[Attribute]) -> String {
    let mut marks: Vec<String> = attributes
        .iter()
        .filter(|attribute| {
            ["derive", "non_exhaustive", "cfg"].iter().any(|name| attribute.path().is_ident(name))
        })
        .map(|attribute| format!(" {}", plain(attribute.to_token_stream())))
        .collect();
    marks.sort();
    marks.concat()
}

/// Tokens without the spaces that only separate them.
fn plain(tokens: TokenStream) -> String {
    let mut text = tokens.to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        ("& ", "&"),
        (" :", ":"),
        (" ;", ";"),
        ("# [", "#["),
        ("#[ ", "#["),
        ("& '", "&'"),
        ("->", " -> "),
    ] {
        text = text.replace(from, to);
    }
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words = words.replace("- >", "->").replace(",)", ")");
    words
}
