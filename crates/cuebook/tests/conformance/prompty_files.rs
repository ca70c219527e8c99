//! Real `.prompty` files of public repositories, and the messages that Prompty 2, or else Prompty 1, makes of them.

use std::path::Path;
use std::process::Command;

use cuebook::{Book, Context, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::convert::{BuiltIn, EntryKind, Target};
use serde_json::{Value as Json, json};

use crate::board::{Board, read};
use crate::compare::equals;

/// Set in the child process that has the environment of the cases.
const INSIDE: &str = "CUEBOOK_CONFORMANCE_INSIDE";

/// Runs every case in a process with the environment that the cases name: the environment of this one is shared with other tests.
pub fn run(folder: &Path) {
    let cases = read(&folder.join("cases.json"));
    if std::env::var_os(INSIDE).is_some() {
        return board(&cases).finish();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "prompty_files", "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    for (name, value) in cases["env"].as_object().into_iter().flatten() {
        child.env(name, value.as_str().unwrap());
    }
    let output = child.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // The runner writes the name of the test before what it prints first.
    for line in printed.lines().filter_map(|line| line.find("prompty-files/").map(|at| &line[at..])) {
        println!("{line}");
    }
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

/// Every file of an older version becomes one of Prompty 2 with the same messages.
pub fn migrate(folder: &Path) {
    let cases = read(&folder.join("cases.json"));
    let (mut migrated, mut compared) = (0, 0);
    for case in cases["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.prompty");
        std::fs::write(&path, case["file"].as_str().unwrap()).unwrap();
        let book = Book::open(folder.path()).with_paths(true);
        // A file of Prompty 2 is an error, and so is one that cannot be read.
        let Ok(conversion) = book.convert(path.to_str().unwrap(), &Target::new(BuiltIn::Prompty)) else {
            continue;
        };
        migrated += 1;
        compared += usize::from(conversion.compared > 0);
        let roles = conversion
            .report
            .entries
            .iter()
            .find(|entry| entry.about == "roles" && entry.fate != EntryKind::Note);
        assert!(roles.is_none(), "{name}: {roles:?}");
        assert!(!conversion.differs, "{name}: {:#?}", conversion.report);
        let why = conversion.uncompared.as_deref().unwrap_or("nothing");
        assert!(
            conversion.compared > 0 || why.starts_with("not compared: the test values do not fit"),
            "{name}: {why}"
        );
    }
    println!("prompty-files/migrate: {compared} of {migrated} compared");
    assert!(migrated > 60 && compared * 10 >= migrated * 9, "{compared} of {migrated}");
}

fn board(cases: &Json) -> Board {
    let mut board = Board::new("prompty-files", DECIDED);
    for case in cases["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let messages = messages(case);
        if let Err(why) = &messages
            && ABSENT.iter().any(|code| why.contains(code))
        {
            board.later("render", "the case refers to a file that is not with it");
            continue;
        }
        board.note("render", name, messages.as_ref().map(|_| ()).map_err(Clone::clone));
        let expected = [&case["prompty_2"], &case["prompty_1"]].into_iter().find(|list| !list.is_null());
        if let Some(expected) = expected {
            board.note("messages", name, messages.and_then(|messages| equals(expected, &messages)));
        }
    }
    board
}

/// The messages of a case, in the words of its expectation: the content is a text, or a list of parts.
fn messages(case: &Json) -> Result<Json, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.prompty");
    std::fs::write(&path, case["file"].as_str().unwrap()).unwrap();
    let inputs = case["inputs"].as_object().cloned().unwrap_or_default();
    let book = Book::open(folder.path()).with_paths(true);
    let rendered = book.render(
        path.to_str().unwrap(),
        &Variables::from_json(&inputs),
        &Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() },
    );
    let messages = rendered.and_then(|rendered| rendered.messages()).map_err(|error| error.to_string())?;
    Ok(messages.iter().map(|message| plain(&message.to_json())).collect())
}

fn plain(message: &Json) -> Json {
    let parts = message["content"].as_array().unwrap();
    let texts: Option<Vec<&str>> =
        parts.iter().map(|part| part["value"].as_str().filter(|_| part["kind"] == "text")).collect();
    let content = texts.map_or_else(|| message["content"].clone(), |texts| json!(texts.concat()));
    let mut plain = message.as_object().unwrap().clone();
    plain.retain(|key, value| key != "metadata" || value.as_object().is_some_and(|map| !map.is_empty()));
    plain.insert("content".into(), content);
    Json::Object(plain)
}

/// The codes of errors about a file that does not exist.
const ABSENT: [&str; 2] = ["[CB419]", "[CB306]"];

/// Cases that we decided against. Prompty 1 refuses these three as well: the template asks for an attribute of an input that no one
/// gives.
const DECIDED: &[(&str, &str, u32)] = &[
    ("render", "other/Azure-Samples+contoso-chat/docs/workshop/src/1-build/chat-2.prompty", 36),
    ("render", "other/Azure-Samples+contoso-chat/docs/workshop/src/1-build/chat-exact.prompty", 36),
    ("render", "v1/runtime/promptycs/Tests/chat.prompty", 36),
];
