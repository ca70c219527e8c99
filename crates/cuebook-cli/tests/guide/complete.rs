//! The reference leaves nothing out: what the code reads is compared with what the pages name.

use std::collections::BTreeSet;
use std::path::Path;

use cuebook::library::Config;
use cuebook::source::Source;

use crate::book;

/// The lists of names that readers of files know: the page that must name all of them, the file, and the list.
const LISTS: &[(&str, &str, &[&str])] = &[
    (
        "template.md",
        "cuebook-library/notation/definition.rs",
        &["METADATA_KEYS", "VARIABLE_KEYS", "LIMIT_KEYS"],
    ),
    ("template.md", "cuebook-prompt/prompt.rs", &["NAMES"]),
    ("template.md", "cuebook-prompt/variables/system.rs", &["SYSTEM_NAMES", "WORKSPACE_NAMES"]),
    ("template.md", "cuebook-library/library/defaults.rs", &["KEYS", "LIMIT_KEYS"]),
    ("template.md", "cuebook-cli/inputs.rs", &["CONTEXT_NAMES"]),
    ("packs.md", "cuebook-library/library/manifest/fields.rs", &["FIELDS", "REPLACES_FIELDS"]),
    (
        "packs.md",
        "cuebook-library/library/manifest/fields/providers.rs",
        &["PROVIDER_FIELDS", "PERMISSION_FIELDS", "LIMIT_FIELDS"],
    ),
    ("packs.md", "cuebook-share/lock.rs", &["KEYS"]),
    ("prompty.md", "cuebook-library/notation/prompty/reader.rs", &["TOP_KEYS"]),
    ("prompty.md", "cuebook-library/notation/prompty/property.rs", &["KEYS"]),
    ("prompty.md", "cuebook-library/notation/prompty/old/property.rs", &["KEYS"]),
    ("prompty.md", "cuebook-library/notation/prompty/model.rs", &["KEYS", "OPTION_KEYS"]),
    ("prompty.md", "cuebook-library/notation/prompty/tool.rs", &["COMMON", "FUNCTION", "MCP", "OPENAPI"]),
    ("prompty.md", "cuebook-prompt/prompt/property.rs", &["NAMES"]),
    ("dotprompt.md", "cuebook/dialect/dotprompt/front.rs", &["KEYS"]),
    ("skills.md", "cuebook/dialect/skill.rs", &["KEYS"]),
    ("sections.md", "cuebook/dialect/sections/front.rs", &["KEYS", "KINDS", "OUTPUT_KEYS"]),
    ("sections.md", "cuebook/dialect/sections/tree.rs", &["KEYS", "EXAMPLE_KEYS"]),
    ("sections.md", "cuebook/dialect/sections/tool.rs", &["KEYS", "EXAMPLE_KEYS"]),
    ("sections.md", "cuebook/dialect/sections/example.rs", &["KEYS", "STEP_KEYS"]),
    (
        "sections.md",
        "cuebook-library/overrides/file.rs",
        &["TOP", "SECTION", "TOOL", "TOOL_EXAMPLE", "TASK", "STEP"],
    ),
    ("tools.md", "cuebook-library/notation/tool.rs", &["NAMES"]),
    ("tools.md", "cuebook-run/config.rs", &["OURS"]),
    ("tools.md", "cuebook-run/request.rs", &["NAMES", "FLAGS"]),
    ("testing.md", "cuebook-lab/cases/settings.rs", &["NAMES", "FORMS", "ORIGINS"]),
    ("threads.md", "cuebook-run/policy/hooks/read.rs", &["NAMES"]),
    ("threads.md", "cuebook-run/policy/hooks.rs", &["CONTROL_EVENTS", "CONTEXT_EVENTS"]),
    ("threads.md", "cuebook-run/policy/condition.rs", &["NAMES"]),
    ("threads.md", "cuebook-library/notation/directive.rs", &["HOOK_OPERATORS", "HOOK_DECISIONS"]),
    ("threads.md", "cuebook-run/policy/limits.rs", &["NAMES"]),
    ("threads.md", "cuebook-run/policy/risk.rs", &["NAMES"]),
    ("threads.md", "cuebook-run/provider/record.rs", &["KEPT"]),
    ("directive-format.md", "cuebook-library/notation/directive/metadata.rs", &["KNOWN", "LIMITS"]),
];

/// Lists whose names sound as if they were of a file, and are not.
const NO_FILES: &[(&str, &str)] =
    &[("cuebook-run/provider/failure.rs", "FIELDS"), ("cuebook-lab/convert/source/own.rs", "KNOWN")];

/// Who adds a list of keys says here which page names them.
pub fn every_list_of_keys_has_its_page() {
    let mut wrong = Vec::new();
    for (file, code) in book::all_code() {
        for line in code.lines() {
            let Some((_, rest)) = line.split_once("const ") else { continue };
            let Some((name, kind)) = rest.split_once(": ") else { continue };
            let sounds = name.ends_with("KEYS") || name.ends_with("FIELDS") || name == "KNOWN";
            let is_list = kind.starts_with("[&str;") || kind.starts_with("&[&str]");
            let has_page = LISTS.iter().any(|(_, known, lists)| *known == file && lists.contains(&name));
            if sounds && is_list && !has_page && !NO_FILES.contains(&(file.as_str(), name)) {
                wrong.push(format!("{name} of {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "lists of keys that no page of the reference belongs to: {wrong:?}");
}

/// The names that a page must say, from the list in the code.
pub fn every_key_of_every_file_is_named() {
    let mut wrong = Vec::new();
    for (page, file, lists) in LISTS {
        let text = page_text(page);
        for list in *lists {
            let names = literals(&definition(&book::code(file), list, file));
            assert!(!names.is_empty(), "{list} of {file} is empty");
            let missing = names.into_iter().filter(|name| !says(&text, name));
            wrong.extend(missing.map(|name| format!("{page}: `{name}` ({list} of {file})")));
        }
    }
    // The readers of provider files name their keys where they read them.
    let text = page_text("threads.md");
    for piece in book::code("cuebook-run/provider/file.rs").split(".fields(&[").skip(1) {
        let names = literals(piece.split("])").next().unwrap());
        let missing = names.into_iter().filter(|name| !says(&text, name));
        wrong.extend(missing.map(|name| format!("threads.md: `{name}` of a provider file")));
    }
    // And the columns of the store stand in its statements.
    for piece in book::code("cuebook-store/store/schema.rs").split("CREATE TABLE ").skip(1) {
        let (table, columns) = piece.split_once(" (\n").expect("columns");
        let columns = columns.split("\n    )").next().unwrap().lines();
        let columns =
            columns.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "PRIMARY");
        let missing = columns.chain([table]).filter(|name| !says(&text, name));
        wrong.extend(missing.map(|name| format!("threads.md: `{name}` of {table}")));
    }
    assert!(wrong.is_empty(), "names that the reference does not say:\n{}", wrong.join("\n"));
}

pub fn every_setting_is_named_with_its_default() {
    let text = page_text("settings.md");
    let blocks = book::blocks(&text);
    let written = &blocks.iter().find(|(info, _)| info == "toml").expect("all settings").1;
    let mut listed = Config::read(&Source::new("cuebook.toml", written)).expect("settings");
    assert_eq!(listed.library.vocab.take().as_deref(), Some(Path::new("user_data/shared/vocab.json")));
    assert_eq!(listed.library.language.take().as_deref(), Some("en"));
    assert_eq!(listed, Config::default(), "the page (left) and the defaults");
    // A caller that asks for what is not there is reported what is.
    let known = |text: &str| {
        let error = Config::read(&Source::new("cuebook.toml", text)).expect_err("no such key");
        let hint = error.diagnostic().hint.clone().expect("a hint");
        let names = hint.strip_prefix("known: ").unwrap_or_else(|| panic!("{hint}")).to_owned();
        names.split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    for table in known("qqqqqqqqqq = 1\n") {
        for key in known(&format!("[{table}]\nqqqqqqqqqqqqqq = 1\n")) {
            assert!(written.contains(&format!("\n{key} = ")), "{table}.{key} is not in the block");
            assert!(text.contains(&format!("| `{table}.{key}` |")), "{table}.{key} is not in the table");
        }
    }
}

pub fn every_setting_of_trust_is_named() {
    let text = page_text("settings.md");
    let code = book::code("cuebook-library/trust/settings.rs");
    let (_, body) = code.split_once("pub struct TrustSettings {").expect("settings of trust");
    let fields = body.split("\n}").next().unwrap().lines();
    let fields: Vec<&str> =
        fields.filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()).collect();
    assert_eq!(
        fields.len(),
        text.split("## Settings of trust").nth(1).unwrap().matches("\n| `").count(),
        "{fields:?}"
    );
    for field in fields {
        assert!(text.contains(&format!("| `{field}` |")), "{field} is not in the table");
    }
}

pub fn every_environment_variable_is_named() {
    let text = page_text("environment.md");
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for (file, code) in book::all_code() {
        for (before, word) in words_in_quotes(&code) {
            let called = ["var(\"", "var_os(\"", "env = \""].iter().any(|call| before.ends_with(call));
            // Or by a name that stands for it.
            let constant = before.split_once("const ").and_then(|(_, rest)| rest.split_once(": &str = "));
            let asked = called
                || constant.is_some_and(|(name, _)| {
                    ["var", "var_os"].iter().any(|call| code.contains(&format!("{call}({name})")))
                });
            let ours = ["CUEBOOK_", "OTEL_", "RYE_"].iter().any(|start| word.starts_with(start));
            let is_name =
                word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if is_name && (asked || ours) {
                seen += 1;
                if !says(&text, &word) {
                    missing.insert(format!("{word} ({file})"));
                }
            }
        }
    }
    assert!(seen > 10, "{seen} were found");
    assert!(missing.is_empty(), "environment.md does not name {missing:?}");
}

/// A topic that no help names is unreachable; and each has its page in the book.
pub fn every_topic_is_named() {
    let commands = page_text("commands.md");
    let code = book::code("cuebook-cli/commands/help.rs");
    let topics: Vec<&str> = code
        .lines()
        .filter(|line| line.contains("include_str!(\"../../topics/"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert!(topics.len() >= 11, "{topics:?}");
    for topic in topics {
        // Once for the program, and once for `help` itself.
        let named = commands.matches(&format!("\n  cuebook help {topic} ")).count();
        assert!(named >= 2, "`cuebook --help` and `cuebook help --help` do not both name {topic}");
        let include = format!("{{{{#include ../../../crates/cuebook-cli/topics/{topic}.md}}}}");
        let pages = book::pages();
        assert!(
            pages.iter().any(|page| page.text.contains(&include)),
            "no page of the book includes {topic}.md"
        );
    }
}

pub fn every_exit_code_is_named() {
    let text = page_text("exit-codes.md");
    let mut codes = BTreeSet::from(["0".to_owned(), "1".to_owned()]);
    for (file, code) in book::all_code().into_iter().filter(|(file, _)| file.starts_with("cuebook-cli/")) {
        for piece in code.split("ExitCode::from(").skip(1) {
            let number = piece.split(')').next().unwrap();
            // Anything else is clap's own, which are 0 and 2.
            if number.bytes().all(|byte| byte.is_ascii_digit()) {
                codes.insert(number.to_owned());
            }
        }
        assert!(
            !code.contains("process::exit("),
            "{file} ends the program in a way that exit-codes.md does not say"
        );
    }
    for code in codes {
        assert!(text.contains(&format!("\n| {code} |")), "exit-codes.md does not say what {code} means");
    }
}

/// Names that look like limits and are of no interest to those who use the program: what is cached, cut in a message, or
/// waited for.
const NOT_LISTED: &[(&str, &str)] = &[
    ("cuebook-prompt/prompt/tool.rs", "MAX_INTERFACES"),
    ("cuebook-lab/attack.rs", "MAX"),
    ("cuebook-lab/convert/source/portable.rs", "MAX_BYTES"),
    ("cuebook-lab/attack/drive.rs", "MAX_MIXED"),
    ("cuebook-lab/attack/drive.rs", "MAX_BREACHES"),
    ("cuebook-lab/attack/structure.rs", "MAX"),
    ("cuebook/book/cache.rs", "MAX_PREPARED"),
    ("cuebook-prompt/chat/output.rs", "LONGEST_MESSAGE"),
    ("cuebook-prompt/chat/output.rs", "LONGEST_EXCERPT"),
    ("cuebook-lab/convert/sections.rs", "MAX_ROUNDS"),
    ("cuebook-text/error/report.rs", "MAX_LINES_BETWEEN"),
    ("cuebook-lab/explain/page.rs", "MAX_SHOWN"),
    ("cuebook/actions/search.rs", "MAX_THREADS"),
    ("cuebook/actions/search/index.rs", "DEEPEST"),
    ("cuebook/actions/search/index.rs", "LONGEST"),
    ("cuebook-text/json.rs", "LONGEST"),
    // What the page of the studio shows at once.
    ("cuebook-serve/studio/files.rs", "MAX_OPEN"),
    ("cuebook-serve/studio/threads.rs", "MAX_LISTED"),
    ("cuebook-serve/studio/threads.rs", "MAX_EVENTS"),
    ("cuebook-library/library/config.rs", "MAX_FILE_SIZE"),
    ("cuebook-library/library/scripts.rs", "MAX_WATCHED"),
    ("cuebook-library/overrides/resolve.rs", "MAX_REPORTED"),
    ("cuebook-library/overrides/resolve.rs", "MAX_NEAREST"),
    ("cuebook-library/overrides/store.rs", "MAX_REMEMBERED"),
    ("cuebook-text/redact.rs", "DEEPEST"),
    ("cuebook-text/redact/known.rs", "SHORTEST"),
    ("cuebook-text/redact/known.rs", "MAX"),
    ("cuebook/render/edit.rs", "MAX_TOKENS"),
    ("cuebook-template/error.rs", "MAX_CALLERS"),
    ("cuebook-template/stack.rs", "MAX"),
    ("cuebook-prompt/template/jinja/included_prompts.rs", "MAX_NESTED"),
    ("cuebook-prompt/template/jinja/errors.rs", "MAX_CALLERS"),
    ("cuebook-prompt/template/jinja/paths.rs", "MAX_PATHS"),
    ("cuebook-prompt/template/jinja/paths.rs", "LONGEST_PATH"),
    ("cuebook-prompt/template/handlebars/flow.rs", "MAX_CONTEXTS"),
    ("cuebook-prompt/template/mustache/flow.rs", "MAX_ROUNDS"),
    ("cuebook-prompt/template/mustache/flow.rs", "MAX_WORK"),
    ("cuebook-prompt/template/set_names.rs", "MAX_ROUNDS"),
    ("cuebook-prompt/tokens/counter.rs", "LONGEST"),
    ("cuebook-library/trust/verify.rs", "MAX_REMEMBERED"),
    ("cuebook-lab/watch.rs", "LONGEST"),
    ("cuebook-lab/watch.rs", "MAX_READ"),
    ("cuebook-lab/watch/stamp.rs", "DEEPEST"),
    ("cuebook-cli/commands/diff.rs", "MAX_SHOWN"),
    ("cuebook-cli/commands/explain.rs", "MAX_LINES"),
    ("cuebook-cli/git.rs", "MAX_BYTES"),
    ("cuebook-cli/inputs.rs", "MAX_LISTED"),
    ("cuebook-hooks/errors.rs", "LONGEST"),
    ("cuebook-hooks/errors/files.rs", "LARGEST"),
    ("cuebook-hooks/errors/files.rs", "MAX_FRAMES"),
    ("cuebook-hooks/errors/raised.rs", "MAX"),
    ("cuebook-hooks/sandbox/wire.rs", "LONGEST"),
    ("cuebook-run/chain.rs", "MAX_REMEMBERED"),
    ("cuebook-run/engine.rs", "MAX_PROJECTS"),
    ("cuebook-batch/batch/jobs.rs", "LONGEST"),
    ("cuebook-batch/batch/jobs.rs", "MAX_ROUNDS"),
    ("cuebook-batch/report.rs", "MAX_VALUES"),
    ("cuebook-batch/report.rs", "MAX_VERDICTS"),
    ("cuebook-batch/columns.rs", "MAX_LISTED"),
    ("cuebook-batch/batch/checked.rs", "MAX_SHOWN"),
    ("cuebook-batch/batch/checked.rs", "MAX_COLUMNS"),
    ("cuebook-batch/kinds.rs", "MAX_COLUMNS"),
    ("cuebook-run/provider/budget.rs", "LARGEST"),
    ("cuebook-run/provider/budget.rs", "LONGEST"),
    ("cuebook-run/provider/budget.rs", "SHORTEST"),
    ("cuebook-run/provider/transport.rs", "MAX_FAILURE"),
    ("cuebook-run/provider/choice.rs", "MAX_REMEMBERED"),
    ("cuebook-run/provider/failure.rs", "LONGEST_WORDS"),
    ("cuebook-run/provider/record.rs", "LONGEST_SHOWN"),
    ("cuebook-run/provider/socket.rs", "MAX_ADDRESSES"),
    ("cuebook-store/store/book.rs", "MAX_AT_ONCE"),
    ("cuebook-store/store/group.rs", "MAX_TOGETHER"),
    ("cuebook-run/policy/directive_tools.rs", "MAX_REMEMBERED"),
    ("cuebook-run/thread/detach.rs", "LONGEST"),
    ("cuebook-run/secrets.rs", "SHORTEST"),
    ("cuebook-agent/trim.rs", "LONGEST_LINE"),
    ("cuebook-agent/trim.rs", "LONGEST_SUMMARY"),
    ("cuebook-serve/changes.rs", "LONGEST"),
    ("cuebook-serve/prompts.rs", "MAX_SHOWN"),
    ("cuebook-trace/otel/client.rs", "LONGEST_ANSWER"),
    ("cuebook-trace/otel/spans.rs", "LONGEST_VALUE"),
    ("cuebook-trace/tracy.rs", "MAX_OF_ONE_NAME"),
    ("cuebook-trace/tracy.rs", "LONGEST_NAME"),
];

pub fn every_limit_is_listed_and_true() {
    let text = page_text("limits.md");
    let mut reported = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in text.lines().filter(|row| row.starts_with("| ") && row.contains(".rs`")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, value, place] = cells[..] else { panic!("{row}") };
        let names: Vec<&str> = place.split('`').filter(|word| !word.trim().is_empty()).collect();
        let [file, name] = names[..] else { panic!("{place}") };
        reported.insert((file.to_owned(), name.to_owned()));
        let found = value_in_code(&book::code(file), name);
        if found != Some(number(value)) {
            wrong.push(format!("{name} of {file} is {found:?}, and the page says {value}"));
        }
    }
    for (file, code) in book::all_code() {
        for line in code.lines() {
            let Some((_, rest)) = line.split_once("const ") else { continue };
            let Some((name, kind)) = rest.split_once(": ") else { continue };
            let is_number = ["u64 =", "usize =", "u32 =", "f64 =", "Duration ="]
                .iter()
                .any(|start| kind.starts_with(start));
            let sounds = ["MAX", "LONGEST", "LARGEST", "DEEPEST", "SHORTEST"];
            let sounds = sounds.iter().any(|start| name.starts_with(start));
            let place = (file.clone(), name.to_owned());
            let known = reported.contains(&place) || NOT_LISTED.contains(&(file.as_str(), name));
            if is_number && sounds && !known {
                wrong.push(format!(
                    "{name} of {file} is missing: name it in limits.md, or in NOT_LISTED here"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The value of a constant, or of a field of a default. Times are milliseconds.
fn value_in_code(code: &str, name: &str) -> Option<u64> {
    let written = code.lines().find_map(|line| {
        let line = line.trim();
        let constant =
            line.split_once(&format!("const {name}: ")).and_then(|(_, rest)| rest.split_once(" = "));
        let constant = constant.and_then(|(_, value)| value.strip_suffix(';'));
        let field = line.strip_prefix(&format!("{name}: ")).and_then(|value| value.strip_suffix(','));
        constant.or(field.filter(|value| value.starts_with(|letter: char| letter.is_ascii_digit())))
    })?;
    let (written, scale) =
        match written.strip_prefix("Duration::from_secs(").and_then(|rest| rest.strip_suffix(')')) {
            Some(seconds) => (seconds, 1000),
            None => (written, 1),
        };
    if let Some(seconds) = written.strip_suffix(".0") {
        return Some(plain(seconds)? * 1000);
    }
    let value = match written.split_once(" << ") {
        Some((value, shift)) => plain(value)? << plain(shift)?,
        None => written.split(" * ").map(plain).product::<Option<u64>>()?,
    };
    Some(value * scale)
}

fn plain(number: &str) -> Option<u64> {
    number.replace('_', "").parse().ok()
}

/// What a page says: `4 MiB`, `10,000`, `60 s`. Times are milliseconds.
fn number(text: &str) -> u64 {
    let (value, unit) = text.split_once(' ').unwrap_or((text, ""));
    let value: u64 = value.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is no number"));
    value
        * match unit {
            "" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "s" => 1000,
            other => panic!("what is {other}?"),
        }
}

fn page_text(page: &str) -> String {
    let path = format!("reference/{page}");
    let pages = book::pages();
    let page = pages.iter().find(|page| page.path == path).unwrap_or_else(|| panic!("no {path}"));
    book::whole(page)
}

/// Whether a page names something as code, alone, with its value, or in a list.
fn says(text: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    text.split('`').any(|piece| {
        piece.match_indices(name).any(|(at, _)| {
            let (before, after) = (&piece[..at], &piece[at + name.len()..]);
            !before.ends_with(is_word) && !after.starts_with(is_word)
        })
    })
}

/// What stands behind the `=` of a constant.
fn definition(code: &str, name: &str, file: &str) -> String {
    let (_, rest) = code
        .split_once(&format!("const {name}: "))
        .unwrap_or_else(|| panic!("{file} has no {name} any more: what must the reference name instead?"));
    let (_, value) = rest.split_once('=').unwrap();
    value.split(';').next().unwrap().to_owned()
}

fn literals(code: &str) -> Vec<String> {
    words_in_quotes(code).into_iter().map(|(_, word)| word).collect()
}

/// The texts in quotes, each with a little of what stands before it.
fn words_in_quotes(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let pieces: Vec<&str> = line.split('"').collect();
        for (index, word) in pieces.iter().enumerate().skip(1).step_by(2) {
            found.push((format!("{}\"", pieces[index - 1]), (*word).to_owned()));
        }
    }
    found
}
