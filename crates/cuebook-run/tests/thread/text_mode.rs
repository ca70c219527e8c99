//! Models that know no tools.

use cuebook_run::{Kind, Settings};
use serde_json::json;

use crate::setup::*;

const LOOK: &str = "I look.\n<invoke name=\"rye_execute\">\n<parameter name=\"item_type\">tool</parameter>\n<parameter name=\"item_id\">demo/echo</parameter>\n<parameter name=\"parameters\">{\"n\": \"seven\"}</parameter>\n</invoke>";
const RETURN: &str = "<invoke name=\"directive_return\"><parameter name=\"word\">x</parameter></invoke>";

#[test]
fn tools_are_described_called_and_answered_in_text() {
    for setting in ["tool_mode: text\n", "    tool_mode: text\n"] {
        let change = |yaml: String| match setting.starts_with(' ') {
            // Of the model alone.
            true => yaml.replace("    max_output: 4096\n", &format!("    max_output: 4096\n{setting}")),
            false => format!("{yaml}{setting}"),
        };
        let stage = Setup::with(script([says(LOOK), says(RETURN)]), Settings::default(), change);
        stage.tool("echo", "return {'got': params['n']}").worker("");
        let answer = stage.run("demo/work");
        assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
        let requests = stage.mock.requests();
        assert_eq!(requests.len(), 2);
        for request in &requests {
            assert!(request.body.get("tools").is_none(), "{}", request.body);
            let system = request.body["system"].to_string();
            assert!(system.contains("rye_execute") && system.contains("directive_return"), "{system}");
            assert!(system.contains("<invoke name="), "{system}");
        }
        let reported = requests[1].body["messages"].as_array().unwrap();
        let last = reported.last().unwrap();
        assert_eq!(last["role"], "user", "{last}");
        let words = last.to_string();
        assert!(words.contains("<result name=") && words.contains("seven"), "{words}");
        assert!(!requests[1].body.to_string().contains("tool_use"), "{}", requests[1].body);
        // The log is that of any other thread.
        assert_eq!(stage.payloads(&id_of(&answer), Kind::ToolResult).len(), 2);
    }
}
