//! What the real Rye made of directives and knowledge.

mod interpolate;
mod parse;
mod prompts;

use std::path::Path;

use serde_json::Value as Json;

use crate::board::{Board, read, table};

/// Cases that we decided against, and the numbers of the decisions; 30 is what the description of the cases itself decides: XML is
/// read as XML, fences as fences, and what it calls a defect is mended. Those of names that are not in the public part come from the
/// description of the program.
const DECIDED: &[(&str, &str, u32)] = &[
    // Values that are not texts are written as JSON.
    ("build_prompt", "prompt/outputs_dict_non_string_value", 25),
    ("interpolate", "interp/bool", 25),
    ("interpolate", "interp/list", 25),
    ("interpolate", "interp/dict", 25),
    ("interpolate", "interp/none", 25),
    ("interpolate", "interp/null", 25),
    // What a value or the environment says is never looked into.
    ("interpolate", "interp/value_dollar_inputs_is_reexpanded", 25),
    ("interpolate_env", "interp/env_inj*", 25),
    ("interpolate_env", "interp/env_value_*", 25),
    ("interpolate_parsed", "interp/parsed_fields", 25),
    // XML is read as XML, and fences as fences.
    ("parse_directive", "parse/inside_outer_four_backtick_fence_skipped", 30),
    ("parse_directive", "parse/gt_in_attribute_cuts_regex", 30),
    ("parse_directive", "parse/name_substring_attribute", 30),
    ("parse_directive", "parse/permissions_god_mode_with_acknowledge", 30),
    ("parse_directive", "parse/doctype*", 30),
    ("parse_directive", "parse/leading_comment*", 30),
    ("parse_directive", "parse/xml_comment_before*", 30),
    // Plain text is a body, and front matter is read.
    ("parse_knowledge", "knowledge/plain_markdown", 30),
    ("parse_knowledge", "knowledge/dashes*", 30),
];

/// Groups that other runners have: of trust and search, of `cuebook-run` and of `cuebook-serve`.
const ELSEWHERE: [&str; 23] = [
    "budget",
    "capabilities",
    "capability_tokens",
    "chain_validation",
    "conditions",
    "error_classification",
    "execute",
    "hook_interpolation",
    "limits",
    "load",
    "lockfile",
    "mcp",
    "parse_tool",
    "risk",
    "search",
    "search_query",
    "search_scope",
    "sign",
    "signature",
    "template_config",
    "text_tool_calls",
    "thread",
    "tool_result",
];

/// Runs every table that is about reading and rendering.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("rye", DECIDED);
    let cases = read(&folder.join("cases.json"));
    for case in table(&cases, "cases") {
        let group = case["group"].as_str().unwrap_or("without a group");
        let check: fn(&Json) -> Result<(), String> = match group {
            "build_prompt" => prompts::check,
            "parse_directive" => parse::directive,
            "parse_knowledge" => parse::knowledge,
            "interpolate" => interpolate::inputs,
            "interpolate_env" => interpolate::environment,
            "interpolate_parsed" => interpolate::parsed,
            group if ELSEWHERE.contains(&group) => continue,
            _ => {
                board.later(group, "no runner knows this group");
                continue;
            }
        };
        board.note(group, case["id"].as_str().unwrap(), check(case));
    }
    board
}
