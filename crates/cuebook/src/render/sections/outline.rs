//! The texts of a tree with what they mention, for code that looks at a prompt without rendering it.

use std::sync::Arc;

use super::tree::{Node, Text, Tree};
use crate::error::Diagnostic;
use crate::source::{OffsetMap, Place};
use crate::template::dollar::{Fault, Missing};
use crate::template::engine::Outline;
use crate::template::jinja::names::Names;
use crate::template::sink::Sink;
use crate::template::unit::Unit;

/// The texts of a tree, in its order, and behind them the conditions.
pub(crate) struct TreeOutline {
    units: Vec<Unit>,
    names: Vec<Names>,
}

impl Outline for TreeOutline {
    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn names(&self) -> &[Names] {
        &self.names
    }
}

impl Node {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        std::iter::once(&self.body).chain(&self.summary)
    }
}

impl Tree {
    /// The texts with what they mention. Conditions are not kept as text, so their reader says what they mention.
    pub(crate) fn outline(&self, conditions: Vec<(Place, Names)>) -> Arc<dyn Outline> {
        let mut outline = TreeOutline { units: Vec::new(), names: Vec::new() };
        for text in self.nodes.iter().flat_map(Node::texts) {
            match text {
                Text::Empty | Text::Example(_) => {}
                Text::Raw(source, _) => {
                    outline.units.push(Unit::new(
                        source.clone(),
                        OffsetMap::default(),
                        Vec::new(),
                        Vec::new(),
                    ));
                    outline.names.push(Names::default());
                }
                Text::Dollar(template, ..) => {
                    outline.units.push(template.unit());
                    outline.names.push(template.names().clone());
                }
                Text::Other(compiled) => {
                    let other = compiled.outline();
                    outline.units.extend(other.units().iter().cloned());
                    outline.names.extend(other.names().iter().cloned());
                }
            }
        }
        for (place, names) in conditions {
            outline.units.push(Unit::new(
                place.source().clone(),
                OffsetMap::default(),
                Vec::new(),
                Vec::new(),
            ));
            outline.names.push(names);
        }
        Arc::new(outline)
    }

    /// The outlines of texts that other engines than that of `$names` read.
    #[doc(hidden)]
    pub fn other_outlines(&self) -> Vec<Arc<dyn Outline>> {
        let texts = self.nodes.iter().flat_map(Node::texts);
        texts
            .filter_map(|text| if let Text::Other(text) = text { Some(text.outline()) } else { None })
            .collect()
    }

    /// Dollar signs that no render could make anything of.
    #[doc(hidden)]
    pub fn stray_dollars(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for text in self.nodes.iter().flat_map(Node::texts) {
            let Text::Dollar(template, ..) = text else { continue };
            let mut sink = Sink::new(usize::MAX, 256, 16);
            let written =
                template.write(0, &mut sink, Missing::Error, &mut |_, _| Some(serde_json::Value::from("x")));
            if let Err(fault @ Fault::Invalid { .. }) = written {
                found.extend(template.error(fault, [], usize::MAX).into_diagnostics());
            }
        }
        found
    }
}
