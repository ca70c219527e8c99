#![doc = include_str!("../../../cuebook-text/src/error/pages/CB310.md")]

use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::prepared::Prepared;

/// Blocks of a template that extends another, where no parent has a block of that name: their text is never shown.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let outline = prepared.outline();
    let Some(program) = outline.jinja() else { return Vec::new() };
    let chain = program.parents();
    let mut findings = Vec::new();
    for (position, unit) in chain.iter().enumerate() {
        let above = &chain[position + 1..];
        if above.is_empty() {
            break;
        }
        let known: Vec<&str> = above
            .iter()
            .flat_map(|unit| &program.names()[*unit].blocks)
            .map(|block| block.name.as_str())
            .collect();
        for block in &program.names()[*unit].blocks {
            // A block inside another one is new on purpose.
            if block.nested || known.contains(&block.name.as_str()) {
                continue;
            }
            let source = program.units()[*unit].source();
            let parent = program.units()[above[0]].source().name();
            let message = format!("the block `{}` is never shown, because no parent has it", block.name);
            let hint = did_you_mean(&nearest(&block.name, known.iter().copied())).unwrap_or_else(|| {
                match known.is_empty() {
                    true => format!("{parent} has no blocks"),
                    false => format!("the blocks of {parent}: {}", known.join(", ")),
                }
            });
            findings.push(
                Diagnostic::new(Code::UnknownBlock, message).at(source.place(block.range.clone())).hint(hint),
            );
        }
    }
    findings
}
