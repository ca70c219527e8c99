//! Small words beside the text: what an include costs, what a variable is, and what can be done with a prompt.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::{Notation, TagKind, front_matter, tags};
use super::tokens::{Token, TokenKind, directive, dollars, lines};
use super::{Service, hover};

/// Words that an editor shows behind a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The byte that they follow.
    pub at: usize,
    /// The words.
    pub text: String,
}

/// What can be done with what stands in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LensKind {
    /// Show the rendered text.
    Render,
    /// Show where it comes from.
    Explain,
    /// Run a case.
    RunCase,
}

/// Something that can be done with what stands in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lens {
    /// What it is.
    pub kind: LensKind,
    /// The line.
    pub range: Range<usize>,
    /// The file or folder of the prompt.
    pub prompt: PathBuf,
    /// The case, if it is one.
    pub case: Option<String>,
}

impl Service {
    /// Hints in a part of a file: the tokens of included files, and the types of variables where they are first shown.
    pub fn hints(&self, path: &Path, part: Range<usize>) -> Vec<Hint> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let notation = Notation::of(path);
        let mut hints = Vec::new();
        let has_variables =
            notation.has_tags() || matches!(notation, Notation::Directive | Notation::Dotprompt);
        if !has_variables || notation == Notation::Python {
            return hints;
        }
        let outer = text.clone();
        let is_here = |at: usize| part.start <= at && at <= part.end;
        for (at, file) in self.links(path).into_iter().filter(|(at, _)| is_here(at.end)) {
            if is_included(&text[..at.start])
                && let Some(text) = self.text(&file)
            {
                let behind = usize::from(outer[at.end..].starts_with(['"', '\'']));
                hints.push(Hint { at: at.end + behind, text: format!("{} tokens", hover::tokens_of(&text)) });
            }
        }
        let prepared = self.prepared(path);
        let mut seen = Vec::new();
        for shown in variables(notation, &text) {
            let (name, at) = (&text[shown.clone()], shown.end);
            if !is_here(at) || seen.contains(&name) {
                continue;
            }
            let mut all = prepared.iter().flat_map(|all| all.iter());
            if let Some(variable) = all.find_map(|one| one.prompt().variable(name)) {
                seen.push(name);
                hints.push(Hint { at, text: format!(": {}", variable.type_name()) });
            }
        }
        hints.sort_by_key(|hint| hint.at);
        hints
    }

    /// What can be done with the prompt of a file, or with the cases in it.
    pub fn lenses(&self, path: &Path) -> Vec<Lens> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        if Notation::of(path) == Notation::Cases {
            let names = cases(&text);
            let lens = |(case, range)| Lens {
                kind: LensKind::RunCase,
                range,
                prompt: path.to_owned(),
                case: Some(case),
            };
            return names.into_iter().map(lens).collect();
        }
        let own = self.users(path, 1).into_iter().find_map(|source| {
            let found = &self.index.get(&source)?.found;
            super::is_own(&self.book, found, path).then(|| crate::targets::place(&found.candidate)).flatten()
        });
        let lens = |kind| own.clone().map(|prompt| Lens { kind, range: 0..0, prompt, case: None });
        [LensKind::Render, LensKind::Explain].into_iter().filter_map(lens).collect()
    }
}

/// Whether what follows a text is the name of something that is included.
fn is_included(before: &str) -> bool {
    let Some(open) = before.rfind("{%").max(before.rfind("{{")).max(before.rfind("{include:")) else {
        return false;
    };
    let tag = before[open..].trim_start_matches(['{', '%', '-', '+']).trim_start();
    tag.starts_with("include") || tag.starts_with('>')
}

/// Where variables are shown alone: `{{ name }}`, `$name` and `{input:name}`.
fn variables(notation: Notation, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut tokens = Vec::new();
    match notation {
        Notation::Sections => dollars(text, front_matter(text).map_or(0, |front| front.end), &mut tokens),
        Notation::Directive => directive(text, &mut tokens),
        _ => {}
    }
    let is_variable = |token: &Token| token.kind == TokenKind::Variable;
    found.extend(tokens.into_iter().filter(is_variable).map(|token| token.range));
    if notation.has_tags() || notation == Notation::Dotprompt {
        for tag in tags(text, 0).iter().filter(|tag| tag.kind == TagKind::Expression) {
            let inside = &text[tag.inside.clone()];
            let start = tag.inside.start + inside.len() - inside.trim_start().len();
            found.push(start..start + inside.trim().len());
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

/// The cases of a file, with their headings.
fn cases(text: &str) -> Vec<(String, Range<usize>)> {
    let (mut found, mut in_fence) = (Vec::new(), false);
    for (line, range) in lines(text, 0..text.len()) {
        in_fence ^= line.trim_start().starts_with("```");
        if let Some(name) = line.strip_prefix("## ").filter(|_| !in_fence) {
            found.push((name.trim().to_owned(), range.start..range.start + line.trim_end().len()));
        }
    }
    found
}
