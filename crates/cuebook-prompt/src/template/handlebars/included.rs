//! Writes what other engines render, as in `{{> prompt:greet}}`.
//!
//! Such an included prompt sees the scope of the render, and above it the arguments of the tag and the context that it stands in.

use std::sync::Arc;

use serde_json::Value as Json;

use super::run::{Run, Stop};
use super::tree::Partial;
use crate::error::{Code, Diagnostic, ErrorKind};
use crate::template::engine::Compiled;
use crate::template::jinja::included_prompts;

impl<'p> Run<'p> {
    /// Writes what another engine renders.
    pub(super) fn included(
        &mut self,
        unit: u32,
        partial: &'p Partial,
        included: &Arc<dyn Compiled>,
    ) -> Result<(), Stop> {
        let place = self.place(unit, partial.tag.clone());
        let Some((scope, limit)) = self.lender else {
            let message = "a prompt cannot be included here";
            let diagnostic = Diagnostic::new(Code::RenderFailed, message).at(place);
            return Err(self.failed(ErrorKind::PromptRender, diagnostic));
        };
        let outline = included.outline();
        let mut set_names: Vec<(String, Option<Json>, Vec<String>)> = Vec::new();
        let context = self.contexts.last().filter(|_| self.contexts.len() > 1);
        for read in outline.names().iter().flat_map(|names| &names.reads) {
            // What the scope itself has needs no lending.
            if let Some(value) = context.map(|context| context.part(&read.root))
                && let Some(json) = value.json()
                && set_names.iter().all(|(name, ..)| *name != read.root)
            {
                set_names.push((read.root.clone(), Some(json), value.paths.to_vec()));
            }
        }
        let values = set_names.iter().map(|(name, value, _)| (name.clone(), value.clone()));
        let with_set_values = (!set_names.is_empty()).then(|| scope.with_set_values(values));
        let rendered = included_prompts::inside(&**included, &place, || {
            included.render(with_set_values.as_ref().unwrap_or(scope), limit)
        });
        let output = rendered.map_err(|error| error.map(|reported| reported.included(&place)))?;
        let output = included_prompts::widened(output, |paths| {
            let mut shown: Vec<String> = Vec::new();
            for path in paths {
                let root = path.split(['.', '[']).next().unwrap_or_default();
                match set_names.iter().find(|(name, ..)| name == root) {
                    // It shows what the value came from.
                    Some((_, _, from)) => shown.extend(from.iter().cloned()),
                    None => shown.push(path.clone()),
                }
            }
            shown
        });
        let mut start = 0;
        if !self.indent.is_empty() {
            for (at, _) in output.text.match_indices('\n') {
                self.line_start()?;
                self.merged_units.write(self.sink, &output, start..at + 1, None)?;
                self.at_line_start = true;
                start = at + 1;
            }
            if start == output.text.len() {
                return Ok(());
            }
            self.line_start()?;
        }
        Ok(self.merged_units.write(self.sink, &output, start..output.text.len(), None)?)
    }
}
