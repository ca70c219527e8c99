//! What the real WINK package rendered, refused or parsed.

mod hashes;
mod replies;
mod stores;
mod templates;
mod trees;
mod types;

use std::path::Path;

use crate::board::{Board, read};

/// Cases that we decided against, and the numbers of the decisions. Those of names that are not in the public part come from
/// the description of the package.
const DECIDED: &[(&str, &str, u32)] = &[
    // Keys are refused and not changed, each sibling has its own, and a dot in one is a dot.
    ("trees", "key_uppercase_normalised", 16),
    ("trees", "ns_key_normalised", 16),
    ("trees", "duplicate_child_keys", 16),
    ("trees", "duplicate_sibling_keys", 16),
    ("trees", "open_sections_dotted_key", 16),
    // The names of the tools that are added are taken.
    ("trees", "user_tool_named_open_sections", 17),
    // A section without a summary can be summarized, a summary shows nothing of what it hides, and what is read is what would
    // be shown. A body that is overridden is the body, and not the summary.
    ("trees", "override_summary_without_text", 18),
    ("trees", "summary_without_text", 18),
    ("trees", "tool_examples_leak_in_summary", 18),
    ("trees", "body_override_on_summary", 18),
    ("trees", "read_section_untyped_children_lost", 18),
    ("trees", "read_section_disabled_target", 18),
    ("trees", "read_section_ignores_body_override", 18),
    // Nothing is asked of what is disabled or hidden, so it cannot fail.
    ("trees", "disabled_bad_visibility_with_summary_elsewhere", 18),
    ("trees", "disabled_missing_params_with_summary_elsewhere", 18),
    ("trees", "hidden_child_*", 18),
    ("trees", "open_sections_disabled*", 18),
    // Conditions may have any of the four shapes.
    ("trees", "enabled_zero_arg_on_typed", 20),
    ("trees", "visibility_zero_arg_typed", 20),
];

/// Runs every table.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("wink", DECIDED);
    let cases = read(&folder.join("cases.json"));
    templates::run(&cases, &mut board);
    hashes::run(&cases, &mut board);
    stores::run(&cases, &mut board);
    replies::run(&cases, &mut board);
    trees::run(&cases, &mut board);
    let known = [
        "cases",
        "hash_cases",
        "key_cases",
        "meta",
        "parse_cases",
        "store_cases",
        "suffix_cases",
        "template_cases",
    ];
    for (name, table) in
        cases.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()))
    {
        (0..table.as_array().map_or(1, Vec::len))
            .for_each(|_| board.later(name, "no runner knows this table"));
    }
    board
}
