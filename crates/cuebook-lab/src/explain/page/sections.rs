//! The sections of a tree on the page: what became of each, and what made room for others.

use std::collections::HashMap;

use super::Page;
use crate::ledger::Ledger;
use crate::sections::{Disclosed, Fitting, Fold, SectionState};

impl Page {
    pub(super) fn sections(&mut self, disclosed: &Disclosed, ledger: Option<&Ledger>) {
        if let Some(fitting) = &disclosed.fitting {
            self.budget(fitting);
        }
        let counted = ledger.iter().flat_map(|ledger| &ledger.sections);
        let tokens: HashMap<&str, usize> =
            counted.map(|section| (section.path.as_str(), section.tokens)).collect();
        self.table("Sections", &["section", "title", "state", "why", "tokens"], |page| {
            for section in &disclosed.sections {
                let path = section.path.join(".");
                let class = if is_missing(section.state) { " class=\"gone\"" } else { "" };
                page.raw(&format!("<tr{class}><td>")).shown(&path);
                page.raw("</td><td>").shown(&format!("{} {}", section.number, section.title));
                page.raw("</td><td>")
                    .raw(section.state.as_str())
                    .raw("</td><td>")
                    .shown(&section.why.describe());
                let tokens = tokens.get(path.as_str()).copied().unwrap_or_default();
                page.raw(&format!("</td><td class=\"n\">{tokens}</td></tr>\n"));
            }
        });
    }

    fn budget(&mut self, fitting: &Fitting) {
        let Fitting { tokens, before, budget, tools, output, .. } = fitting;
        self.raw(&format!(
            "<h2>Budget</h2>\n<p>{tokens} of {budget} tokens: {} text, {tools} tools, {output} output schema. \
             Before anything was dropped: {before}.</p>\n",
            fitting.text()
        ));
        let missing = fitting.not_counted.iter().map(|what| format!("Not counted: {what}"));
        let reasons = fitting.estimate.iter().flat_map(|why| why.lines().map(str::to_owned));
        for reason in reasons.chain(missing) {
            self.raw("<p>").shown(&reason).raw(".</p>\n");
        }
        if fitting.steps.is_empty() {
            self.raw("<p>Nothing was dropped.</p>\n");
            return;
        }
        self.table("Dropped for the budget", &["section", "became", "priority", "tokens"], |page| {
            for step in &fitting.steps {
                let became = match step.fold {
                    Fold::Summary => "its summary",
                    Fold::Gone => "dropped",
                };
                page.raw("<tr><td>").shown(&step.path.join(".")).raw("</td><td>").raw(became);
                page.raw(&format!(
                    "</td><td>{}</td><td class=\"n\">-{}</td></tr>\n",
                    step.priority, step.saved
                ));
            }
        });
    }
}

fn is_missing(state: SectionState) -> bool {
    !matches!(state, SectionState::Shown(_))
}
