//! A prompt that must fit into so many tokens: the least important sections make room.
//!
//! Sections that are shown in full and have a summary are folded to it, those with the lowest priority first, of several the
//! deepest and then the last, and those that the session opened after all others. If that is not enough, sections with a
//! summary go, in the same order, and with them those of a negative priority that have none. Everything else stays, and if it
//! does not fit then, that is an error: a prompt without its task is useless.
//!
//! Counts are exact and add up: a section begins with `#` behind a blank line, where every tokenizer here begins a new piece
//! (see [`crate::tokens`]). So each section is counted once, by its content, and folding is arithmetic.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::render::{Fold, RenderedPrompt, SectionState, Setting, Summaries, refold};
use super::tree::Tree;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::prompt::Visibility;
use crate::tokens::{Counter, Tokenizer};

/// The most tokens that the blank line between two sections can take.
const BLANK_LINE: usize = 2;

/// What was done to make a prompt fit.
#[derive(Debug, Clone, Default)]
pub struct Fitting {
    /// Tokens of the request: the text, the tools and the output schema. [`Tree::fit`] knows the text alone.
    pub tokens: usize,
    /// Tokens that it had before anything made room.
    pub before: usize,
    /// Tokens that it may have.
    pub budget: usize,
    /// Tokens of the tools, which are part of `tokens`.
    pub tools: usize,
    /// Tokens of the output schema, which are part of `tokens`.
    pub output: usize,
    /// What could not be counted, and why.
    pub not_counted: Vec<String>,
    /// Why the count is an estimate, one reason per line; `None` if it is exact.
    pub estimate: Option<String>,
    /// What made room, in the order in which it did.
    pub steps: Vec<FitStep>,
}

impl Fitting {
    /// Tokens of the text.
    pub fn text(&self) -> usize {
        self.tokens - self.tools - self.output
    }

    /// What was done, as scripts see it.
    pub fn to_json(&self) -> Json {
        let step = |step: &FitStep| {
            json!({
                "path": &*step.path,
                "to": step.fold.as_str(),
                "priority": step.priority,
                "saved": step.saved,
            })
        };
        json!({
            "tokens": self.tokens,
            "before": self.before,
            "budget": self.budget,
            "text": self.text(),
            "tools": self.tools,
            "output": self.output,
            "not_counted": self.not_counted,
            "estimate": self.estimate,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

/// One section that made room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitStep {
    /// Its path.
    pub path: Arc<[String]>,
    /// How.
    pub fold: Fold,
    /// Its priority.
    pub priority: i64,
    /// The tokens that this saved.
    pub saved: usize,
}

impl Tree {
    /// Renders it so that its text has at most so many tokens, and says what had to make room.
    pub fn fit(
        &self,
        setting: &Setting<'_>,
        budget: usize,
        tokenizer: &Tokenizer,
        counter: &Counter,
    ) -> Result<(RenderedPrompt, Fitting)> {
        let whole = self.render(setting)?;
        let counts = counter.count_each(tokenizer, whole.cut().map(|(_, text)| text));
        let before = counts.iter().sum();
        let estimate = tokenizer.why().map(str::to_owned);
        if before <= budget {
            return Ok((whole, Fitting { tokens: before, before, budget, estimate, ..Fitting::default() }));
        }
        let mut weights = vec![0; self.nodes.len()];
        for ((index, _), count) in whole.cut().zip(counts) {
            weights[index] += count;
        }
        let mut making = FitSearch {
            tree: self,
            setting,
            whole: &whole,
            summaries: Summaries::new(self, setting)?,
            budget,
            tokenizer,
            counter,
            weights,
            total: before,
            folds: vec![None; self.nodes.len()],
            steps: Vec::with_capacity(self.nodes.len()),
        };
        loop {
            making.fold()?;
            making.drop()?;
            if !making.fits()? {
                return Err(making.too_long(before, budget));
            }
            let rendered = refold(self, setting, &whole, &making.folds)?;
            let tokens = making.tokens(&whole, &rendered);
            if tokens <= budget {
                return Ok((
                    rendered,
                    Fitting { tokens, before, budget, estimate, steps: making.steps, ..Fitting::default() },
                ));
            }
            // Another section is the last one now, and has lost the blank line behind it: in a rare case that takes a token more.
            making.budget = making.budget.saturating_sub(tokens - budget);
        }
    }
}

impl Tree {
    /// The sections that made room, as a setting wants them. Of several steps for one section the last counts.
    pub(crate) fn folds(&self, steps: &[FitStep]) -> Vec<(usize, Fold)> {
        let mut folds: BTreeMap<usize, Fold> = BTreeMap::new();
        for step in steps {
            folds.extend(self.by_path.get(&*step.path).map(|index| (*index, step.fold)));
        }
        folds.into_iter().collect()
    }
}

struct FitSearch<'m, 's> {
    tree: &'m Tree,
    setting: &'m Setting<'s>,
    /// The render before any section made room.
    whole: &'m RenderedPrompt,
    summaries: Summaries<'m, 's>,
    budget: usize,
    tokenizer: &'m Tokenizer,
    counter: &'m Counter,
    /// The tokens of each section as it is shown now, without those below it.
    weights: Vec<usize>,
    total: usize,
    folds: Vec<Option<Fold>>,
    steps: Vec<FitStep>,
}

impl<'m, 's> FitSearch<'m, 's> {
    /// The sections that are shown, least important first, and those that the session opened behind all others.
    fn order(&self) -> impl Iterator<Item = usize> + use<'m, 's> {
        let (tree, whole, session) = (self.tree, self.whole, self.setting.session);
        let is_opened = move |index: &usize| {
            session.and_then(|session| session.visibility(&tree.nodes[*index].path)).is_some()
        };
        let is_shown = move |index: &usize| matches!(whole.states[*index], SectionState::Shown(_));
        let shown = move || tree.by_priority.iter().copied().filter(is_shown);
        shown().filter(move |index| !is_opened(index)).chain(shown().filter(is_opened))
    }

    /// Whether it is short enough. The last section has no blank line behind it, which is looked at where it matters.
    fn fits(&mut self) -> Result<bool> {
        let too_many = self.total.saturating_sub(self.budget);
        if too_many == 0 || too_many > BLANK_LINE {
            return Ok(too_many == 0);
        }
        let Some(last) = self.weights.iter().rposition(|weight| *weight > 0) else { return Ok(true) };
        let text = match self.folds[last] {
            Some(_) => self.summaries.one(last)?,
            None => self.whole.cut().find(|(index, _)| *index == last).map_or("", |(_, text)| text).into(),
        };
        let bare = self.counter.count(self.tokenizer, text.strip_suffix("\n\n").unwrap_or(&text));
        Ok(self.total - self.weights[last] + bare <= self.budget)
    }

    /// The tokens of a section and of everything below it, as they are shown now.
    fn subtree(&self, index: usize) -> usize {
        self.weights[index..self.tree.nodes[index].end].iter().sum()
    }

    fn is_gone(&self, index: usize) -> bool {
        let mut at = Some(index);
        while let Some(node) = at {
            if node != index && self.folds[node].is_some() || self.folds[node] == Some(Fold::Gone) {
                return true;
            }
            at = self.tree.nodes[node].parent;
        }
        false
    }

    fn replace(&mut self, index: usize, fold: Fold, weight: usize) {
        let now = self.subtree(index);
        let node = &self.tree.nodes[index];
        self.weights[index..node.end].fill(0);
        self.weights[index] = weight;
        self.folds[index..node.end].fill(None);
        self.folds[index] = Some(fold);
        self.total = self.total - now + weight;
        let step = FitStep {
            path: node.shared_path.clone(),
            fold,
            priority: node.section.priority,
            saved: now - weight,
        };
        self.steps.push(step);
    }

    /// The tokens of a section that shows its summary, with the blank line behind it.
    fn summary(&mut self, index: usize) -> Result<usize> {
        let known = &self.tree.nodes[index].summary_tokens[self.tokenizer.vocabulary() as usize];
        let is_constant = self.summaries.is_constant(index);
        if let Some(known) = known.get().filter(|_| is_constant) {
            return Ok(*known);
        }
        let weight = self.counter.count(self.tokenizer, &self.summaries.one(index)?);
        Ok(if is_constant { *known.get_or_init(|| weight) } else { weight })
    }

    fn fold(&mut self) -> Result<()> {
        for index in self.order() {
            if self.fits()? {
                return Ok(());
            }
            let is_full = self.whole.states[index] == SectionState::Shown(Visibility::Full);
            if !is_full || self.tree.nodes[index].summary.is_none() || self.is_gone(index) {
                continue;
            }
            let weight = self.summary(index)?;
            if weight < self.subtree(index) {
                self.replace(index, Fold::Summary, weight);
            }
        }
        Ok(())
    }

    fn drop(&mut self) -> Result<()> {
        for index in self.order() {
            if self.fits()? {
                return Ok(());
            }
            let node = &self.tree.nodes[index];
            let may_go = node.summary.is_some() || node.section.priority < 0;
            if may_go && !self.is_gone(index) {
                self.replace(index, Fold::Gone, 0);
            }
        }
        Ok(())
    }

    /// The tokens of what came of it. Sections are counted with the blank line behind them, which the last one has not; that of
    /// the whole was counted without.
    fn tokens(&self, whole: &RenderedPrompt, rendered: &RenderedPrompt) -> usize {
        let (Some((index, text)), Some((end, _))) = (rendered.last(), whole.last()) else {
            return self.total;
        };
        if index == end && self.folds[index].is_none() {
            return self.total;
        }
        let with_blank = self.counter.count_joined(self.tokenizer, &[text, ""], "\n\n");
        self.total + self.counter.count(self.tokenizer, text) - with_blank
    }

    fn too_long(&self, before: usize, budget: usize) -> Error {
        let message = format!(
            "{before} tokens; at least {} after dropping every optional section; the budget is {budget}",
            self.total
        );
        let diagnostic = Diagnostic::new(Code::DoesNotFit, message)
            .hint("give more sections a summary or a negative `priority`, or raise the budget");
        Error::new(ErrorKind::Limit, diagnostic).with("tokens", self.total).with("budget", budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::{Section, Tree};

    fn tree() -> Tree {
        let long = "Some words that take a number of tokens, again and again. ".repeat(20);
        Tree::builder("test", "fit")
            .section(Section::new("task", "Task", "Do it."))
            .section(
                Section::new("history", "History", long.as_str())
                    .summary("Much happened.")
                    .priority(-1)
                    .child(Section::new("early", "Early", long.as_str()).summary("Long ago.")),
            )
            .section(Section::new("style", "Style", long.as_str()).summary("Be brief.").priority(5))
            .build()
            .unwrap()
    }

    fn fit(budget: usize) -> Result<(RenderedPrompt, Fitting)> {
        tree().fit(&Setting::new(&[]), budget, &Tokenizer::for_model("gpt-4o"), &Counter::new())
    }

    fn steps(fitting: &Fitting) -> Vec<(String, Fold)> {
        fitting.steps.iter().map(|step| (step.path.join("."), step.fold)).collect()
    }

    #[test]
    fn content_that_fits_is_unchanged() {
        let (rendered, fitting) = fit(100_000).unwrap();
        assert_eq!(fitting.tokens, Tokenizer::for_model("gpt-4o").count(rendered.text()));
        assert!(fitting.steps.is_empty() && rendered.text().contains("again and again"));
    }

    #[test]
    fn the_least_important_make_room_first_and_then_go() {
        let whole = fit(100_000).unwrap().1.tokens;
        let (rendered, fitting) = fit(whole - 1).unwrap();
        assert_eq!(steps(&fitting), [("history".to_owned(), Fold::Summary)]);
        assert!(fitting.tokens < whole && rendered.text().contains("Much happened."));
        let (rendered, fitting) = fit(150).unwrap();
        assert_eq!(
            steps(&fitting),
            [("history".to_owned(), Fold::Summary), ("style".to_owned(), Fold::Summary)]
        );
        assert!(rendered.text().contains("Be brief."));
        let (rendered, fitting) = fit(50).unwrap();
        assert_eq!(fitting.steps.len(), 3);
        assert_eq!(fitting.steps[2].fold, Fold::Gone);
        assert!(!rendered.text().contains("Much happened.") && rendered.text().contains("Do it."));
        assert!(fitting.tokens <= 50);
    }

    #[test]
    fn a_section_that_shows_its_summary_can_be_removed() {
        let closed =
            Section::new("a", "A", "Long.").summary("Words, words, words.").visible(Visibility::Summary);
        let task = Section::new("task", "Task", "Do it.");
        let tree = Tree::builder("test", "fit").section(task).section(closed).build().unwrap();
        let gpt = Tokenizer::for_model("gpt-4o");
        let (rendered, fitting) = tree.fit(&Setting::new(&[]), 10, &gpt, &Counter::new()).unwrap();
        assert_eq!(steps(&fitting), [("a".to_owned(), Fold::Gone)]);
        assert_eq!(rendered.text(), "# Task\n\nDo it.");
    }

    #[test]
    fn a_prompt_that_cannot_fit_is_an_error_with_its_size() {
        let error = fit(3).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::DoesNotFit));
    }

    #[test]
    fn the_same_prompt_folds_the_same_way_and_counts_add_up() {
        for budget in (10..800).step_by(19) {
            let Ok((first, one)) = fit(budget) else { continue };
            let (second, two) = fit(budget).unwrap();
            assert_eq!((first.text(), one.steps), (second.text(), two.steps));
            assert!(one.tokens <= budget);
            assert_eq!(one.tokens, Tokenizer::for_model("gpt-4o").count(first.text()));
        }
    }
}
