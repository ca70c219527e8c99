use serde_json::json;

use super::*;

fn files(before: &[Json], after: &[Json]) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[Json]| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    };
    let (one, other) = (write("a.jsonl", before), write("b.jsonl", after));
    (folder, one, other)
}

fn wanted(key: Option<&str>) -> DiffOptions {
    DiffOptions { key: key.map(str::to_owned), shown: 3, ..DiffOptions::default() }
}

#[test]
fn rows_are_matched_by_key_in_any_order() {
    let line = |id: usize, answer: usize| json!({"row": id, "id": format!("k{id}"), "answer": answer, "sources": null});
    let before: Vec<Json> = (1..=50).map(|id| line(id, id)).collect();
    let after: Vec<Json> = (3..=52).rev().map(|id| line(id, if id == 7 { 0 } else { id })).collect();
    let (_folder, one, other) = files(&before, &after);
    let found = diff(&one, &other, &wanted(Some("id"))).unwrap();
    assert_eq!((found.rows, found.only), (48, (2, 2)));
    assert_eq!(found.changed, Counts { rows: 1, answers: 1, ..Counts::default() });
    assert_eq!(found.causes[0].rows[0].row, json!("k7"));
    assert_eq!(found.causes[0].rows[0].changes[0].after, json!(0));
    assert!(!found.is_same());
    let same = diff(&one, &one, &wanted(Some("id"))).unwrap();
    assert!(same.is_same() && same.to_text().contains("0 of 50 rows changed\n"), "{}", same.to_text());
}

#[test]
fn a_key_that_is_missing_or_double_is_named() {
    let (_folder, one, other) = files(&[json!({"id": 1}), json!({"id": 1})], &[json!({"id": 2})]);
    let double = diff(&one, &other, &wanted(Some("id"))).unwrap_err().report(false);
    assert!(double.contains("two rows have the key 1"), "{double}");
    let missing = diff(&one, &other, &wanted(Some("idd"))).unwrap_err().report(false);
    assert!(missing.contains("did you mean `id`?"), "{missing}");
    let plain = diff(&one, &other, &wanted(None)).unwrap_err().report(false);
    assert!(plain.contains("no column `row`"), "{plain}");
}

#[test]
fn reasons_are_told_apart() {
    let line = |row: usize, input: &str, hash: &str, model: &str, answer: &str, verdict: bool| {
        json!({"row": row, "q": input, "answer": answer, "good_ok": verdict, "good_cost": 0.1, "good_error": null,
            "model": model, "render_hash": hash, "sources": "s"})
    };
    let before: Vec<Json> = (1..=5).map(|row| line(row, "a", "h", "m", "x", true)).collect();
    let after = [
        line(1, "b", "i", "m", "y", true),
        line(2, "a", "h", "n", "y", true),
        line(3, "a", "h", "m", "y", true),
        line(4, "a", "h", "m", "x", false),
        line(5, "a", "i", "m", "x", true),
    ];
    let (_folder, one, other) = files(&before, &after);
    std::fs::write(
        sources::path_of(&one),
        "{\"sources\":\"s\",\"sentences\":[[\"\",\"p.md\",1,\"Hi.\"]]}\n{\"sou",
    )
    .unwrap();
    let text = diff(&one, &other, &wanted(None)).unwrap().to_text();
    for expected in [
        "5 of 5 rows changed (2 texts, 3 answers, 1 verdict)",
        "other values in the data: q",
        "another model: m → n",
        "the prompt is the same: the model or its settings answered differently",
        "the answer is the same: the judge answered differently\n  row 4: good_ok true → false",
        "values that are not in the row",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    std::fs::remove_file(sources::path_of(&one)).unwrap();
    let text = diff(&one, &other, &wanted(None)).unwrap().to_text();
    assert!(text.contains("does not say which sentences this row uses"), "{text}");
}

#[test]
fn a_sentence_that_moved_is_no_cause() {
    let sentence = |line: usize, text: &str| Sentence {
        judge: String::new(),
        file: "p.md".to_owned(),
        line,
        text: text.to_owned(),
    };
    let before = [sentence(1, "Hi."), sentence(2, "Be brief.")];
    let after = [sentence(1, "Hi."), sentence(2, "Be kind."), sentence(3, "Be brief.")];
    let changed = cause::changed(&before, &after, |_| true);
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].is_new, &changed[0].sentence), (true, &after[1]));
}
