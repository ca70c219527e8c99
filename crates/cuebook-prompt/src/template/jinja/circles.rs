//! Templates that extend or include each other: in circles, and too deep.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Program;
use super::names::ReferenceKind;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};

impl Program {
    /// Templates that extend each other in a circle can never render.
    pub(super) fn check_parents(&self) -> Result<()> {
        for start in 0..self.units.len() {
            let mut chain = vec![start];
            let mut unit = start;
            while let Some(parent) = self.parent(unit) {
                if parent == start {
                    return Err(Error::new(
                        ErrorKind::PromptRead,
                        self.circle(&chain, ReferenceKind::Extends),
                    ));
                }
                if chain.contains(&parent) {
                    break;
                }
                chain.push(parent);
                unit = parent;
            }
        }
        Ok(())
    }

    fn circle(&self, chain: &[usize], kind: ReferenceKind) -> Diagnostic {
        let mut shown: Vec<&str> = chain.iter().map(|unit| self.units[*unit].source().name()).collect();
        shown.push(shown[0]);
        let verb = if kind == ReferenceKind::Extends { "extend" } else { "include" };
        let last = chain[chain.len() - 1];
        let mut diagnostic = Diagnostic::new(
            Code::IncludeCycle,
            format!("templates {verb} each other in a cycle: {}", shown.join(" → ")),
        );
        let closing = self.names[last]
            .references
            .iter()
            .find(|reference| self.resolve(last, reference) == Some(chain[0]));
        if let Some(reference) = closing {
            let place = self.units[last].source().place(reference.range.clone());
            diagnostic = diagnostic.at(place).label("completes the cycle");
        }
        diagnostic.hint("break the cycle: move the shared text into a third template")
    }

    /// Every circle of includes, for `check`. One with a condition in it may be meant (a tree that is printed by a template
    /// which includes itself), so it is a warning; one without can never end.
    pub fn include_circles(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut done = HashSet::new();
        for start in 0..self.units.len() {
            let mut path = Vec::new();
            self.search_circle(start, &mut path, &mut done, &mut found);
        }
        found
    }

    fn search_circle(
        &self,
        unit: usize,
        path: &mut Vec<usize>,
        done: &mut HashSet<usize>,
        found: &mut Vec<Diagnostic>,
    ) {
        if let Some(at) = path.iter().position(|seen| *seen == unit) {
            let chain = &path[at..];
            let ends = |(index, unit): (usize, &usize)| {
                let next = chain.get(index + 1).unwrap_or(&chain[0]);
                let mut leading =
                    self.names[*unit].references.iter().filter(|r| self.resolve(*unit, r) == Some(*next));
                leading.all(|reference| reference.conditional)
            };
            let may_end = chain.iter().enumerate().any(ends);
            let severity = if may_end { Severity::Warning } else { Severity::Error };
            found.push(self.circle(chain, ReferenceKind::Include).severity(severity));
            return;
        }
        if !done.insert(unit) {
            return;
        }
        path.push(unit);
        for reference in &self.names[unit].references {
            if let Some(target) = self.resolve(unit, reference) {
                self.search_circle(target, path, done, found);
            }
        }
        path.pop();
    }

    /// Refuses templates that include each other in a row longer than the limit.
    pub(super) fn check_depth(&self, limit: usize) -> Result<()> {
        // Breadth first from the main template, so that the first unit beyond the limit is found by its shortest way.
        let mut depth: HashMap<usize, usize> = HashMap::from([(0, 0)]);
        let mut queue = VecDeque::from([0]);
        while let Some(unit) = queue.pop_front() {
            let level = depth[&unit];
            for reference in &self.names[unit].references {
                let Some(target) = self.resolve(unit, reference) else { continue };
                if depth.contains_key(&target) {
                    continue;
                }
                if level + 1 > limit {
                    let place = self.units[unit].source().place(reference.range.clone());
                    let diagnostic = Diagnostic::new(
                        Code::TooDeep,
                        format!("templates include each other more than {limit} deep"),
                    )
                    .at(place)
                    .hint(Hint::run(
                        "flatten the includes, or raise `limits.include_depth` in cuebook.toml, and grant it",
                        "cuebook allow",
                    ));
                    return Err(Error::new(ErrorKind::Limit, diagnostic));
                }
                depth.insert(target, level + 1);
                queue.push_back(target);
            }
        }
        Ok(())
    }
}
