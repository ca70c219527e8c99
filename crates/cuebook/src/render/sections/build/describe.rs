//! The versions of the parts of a tree, and the parts themselves: what overrides are made for.

use std::collections::HashMap;

use super::super::section::Body;
use super::super::tree::Node;
use crate::overrides::{Descriptor, Originals, SectionEntry, TaskExampleEntry, ToolEntry, hash};

/// The versions of the parts.
pub(super) fn describe(ns: &str, key: &str, nodes: &[Node]) -> Descriptor {
    let mut descriptor = Descriptor {
        ns: ns.to_owned(),
        key: key.to_owned(),
        sections: Vec::new(),
        tools: Vec::new(),
        task_examples: Vec::new(),
    };
    let mut examples: HashMap<Option<usize>, usize> = HashMap::new();
    for node in nodes {
        match &node.section.body {
            Body::Template { text, .. } if node.section.accepts_overrides => {
                descriptor.sections.push(SectionEntry {
                    path: node.path.clone(),
                    number: node.number.clone(),
                    content_hash: hash::text_hash(text.text()),
                });
            }
            Body::TaskExample(example) => {
                let next = examples.entry(node.parent).or_default();
                let index = *next;
                *next += 1;
                // A list that accepts no overrides keeps its examples as well: which they are is all that it says.
                let above = node.parent.map(|parent| &nodes[parent].section);
                if node.section.accepts_overrides && above.is_none_or(|above| above.accepts_overrides) {
                    let (path, hash) = (node.path.clone(), hash::task_example_hash(example));
                    descriptor.task_examples.push(TaskExampleEntry { path, index, hash });
                }
            }
            _ => {}
        }
        for tool in node.section.tools.iter().filter(|tool| tool.accepts_overrides) {
            descriptor.tools.push(ToolEntry {
                path: node.path.clone(),
                name: tool.name.clone(),
                contract_hash: tool.contract_hash(),
                example_hashes: tool.examples.iter().map(hash::tool_example_hash).collect(),
            });
        }
    }
    descriptor
}

/// The parts as their author wrote them.
pub(crate) fn originals(nodes: &[Node]) -> Originals {
    let mut originals = Originals::default();
    for node in nodes {
        if let Body::Template { text, .. } = &node.section.body
            && node.section.accepts_overrides
        {
            originals.sections.insert(node.path.clone(), text.text().to_owned());
        }
        for tool in node.section.tools.iter().filter(|tool| tool.accepts_overrides) {
            let fields = tool.params.iter().flat_map(|record| &record.fields);
            let described = fields.filter_map(|field| Some((field.name.clone(), field.description.clone()?)));
            originals.tools.insert(tool.name.clone(), (tool.description.clone(), described.collect()));
        }
    }
    originals
}
