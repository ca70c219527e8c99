//! A library of a hundred thousand prompts opens without reading any of them, and a prompt takes a hundred thousand
//! variables.

use std::fs;
use std::path::Path;

use cuebook::{Book, Code, Context, Variables};
use serde_json::{Map, Value as Json, json};

const PACKS: usize = 1_000;
const PROMPTS: usize = 100;

#[test]
fn listing_100000_prompts_reads_no_file() {
    // Two hundred thousand names are made and removed again far faster in memory than on a disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let root = folder.path();
    // Reading any template but the one that is asked for would fail: this is not UTF-8. One file stands for all of them,
    // as far as the file system allows.
    let poison = root.join("poison");
    for pack in 0..PACKS {
        let prompts = root.join(format!("user_data/packs/pack_{pack}/prompts"));
        fs::create_dir_all(&prompts).unwrap();
        if pack % 100 == 0 {
            let _ = fs::remove_file(&poison);
            fs::write(&poison, b"\xff\xfe not text \xff").unwrap();
        }
        for prompt in 0..PROMPTS {
            let prompt = prompts.join(format!("prompt_{pack}_{prompt}"));
            fs::create_dir(&prompt).unwrap();
            fs::hard_link(&poison, prompt.join("template.md")).unwrap();
        }
    }
    let chosen = root.join("user_data/packs/pack_777/prompts/prompt_777_77/template.md");
    fs::remove_file(&chosen).unwrap();
    fs::write(&chosen, "found {{ it }}").unwrap();

    let book = Book::open(root);
    let found = book.library().find("prompt_777_77").unwrap();
    assert_eq!(found.candidate.source, "user_data/packs/pack_777/prompts/prompt_777_77");
    let ids = book.library().ids().unwrap();
    let own = ids.iter().filter(|id| id.starts_with("prompt_")).count();
    assert_eq!(own, PACKS * PROMPTS);
    let rendered =
        book.render("prompt_777_77", &Variables::new().set("it", "it"), &Context::default()).unwrap();
    assert_eq!(rendered.text(), "found it");
    let error = book.render("prompt_0_0", &Variables::new(), &Context::default()).unwrap_err();
    assert_eq!(error.code(), Code::NotUtf8);
}

#[test]
fn a_prompt_takes_a_hundred_thousand_variables() {
    let folder = tempfile::tempdir().unwrap();
    let prompt = folder.path().join("prompts/p");
    fs::create_dir_all(&prompt).unwrap();
    let template = "{{ v_0 }} {{ v_50000 }} {{ v_99999 }} {% for n in numbers %}{{ n }},{% endfor %}";
    fs::write(prompt.join("template.md"), template).unwrap();
    let mut values: Map<String, Json> =
        (0..100_000).map(|number| (format!("v_{number}"), json!(format!("value {number}")))).collect();
    values.insert("numbers".into(), (0..1_000).map(Json::from).collect());
    let variables = Variables::from_json(&values);
    let rendered = Book::open(folder.path())
        .render(
            "p",
            &variables,
            &Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() },
        )
        .unwrap();
    let numbers: String = (0..1_000).map(|number| format!("{number},")).collect();
    assert_eq!(rendered.text(), format!("value 0 value 50000 value 99999 {numbers}"));
}
