//! Searches of a small project that changes under them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{SearchRequest, Searcher};
use crate::items::{SpaceKind, Spaces};
use crate::trust::{Purpose, SigningKey, Trust, sign_for};

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
    searcher: Searcher,
    trust: Trust,
}

impl Fixture {
    fn new() -> Fixture {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let trust = Trust::new(&spaces);
        Fixture { project, user, searcher: Searcher::new(spaces), trust }
    }

    fn write(&self, id: &str, title: &str, body: &str) {
        write(self.project.path(), id, title, body);
    }

    fn ask(&self, request: Json) -> Json {
        self.searcher.answer(&SearchRequest::from_json(&request), &self.trust)
    }

    fn ids(&self, query: &str) -> Vec<String> {
        ids(&self.ask(json!({"scope": "knowledge", "query": query, "limit": 100})))
    }
}

fn write(root: &Path, id: &str, title: &str, body: &str) {
    let path = root.join(".ai/knowledge").join(format!("{id}.md"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (category, name) = id.rsplit_once('/').unwrap_or(("", id));
    fs::write(path, format!("```yaml\nname: {name}\ntitle: {title}\ncategory: {category}\n```\n{body}\n"))
        .unwrap();
}

fn ids(answer: &Json) -> Vec<String> {
    answer["results"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn better_ones_come_first_and_equals_by_space_and_id() {
    let world = Fixture::new();
    world.write("b/one", "Apples", "pears");
    world.write("a/two", "Pears", "apples");
    world.write("a/three", "Plums", "apples");
    write(world.user.path(), "a/four", "Apples", "");
    assert_eq!(world.ids("apples"), ["b/one", "a/four", "a/three", "a/two"]);
    assert_eq!(world.ids("apples pears"), ["a/two", "b/one"]);
    assert_eq!(world.ids("apples NOT pears"), ["a/four", "a/three"]);
    assert!(world.ids("").len() >= 4);
    let page = world
        .ask(json!({"scope": "knowledge", "query": "apples", "limit": 2, "offset": 1, "space": "project"}));
    assert_eq!(ids(&page), ["a/three", "a/two"]);
    assert_eq!(page["total"], 3);
    let by_name =
        world.ask(json!({"scope": "knowledge.a", "query": "", "sort_by": "name", "space": "project"}));
    assert_eq!(ids(&by_name), ["a/three", "a/two"]);
    let field = world.ask(json!({"scope": "knowledge", "query": "", "fields": {"title": "pears"}}));
    assert_eq!(ids(&field), ["a/two"]);
    let filter = world.ask(json!({"scope": "knowledge", "query": "apples", "filters": {"category": "b"}}));
    assert_eq!(ids(&filter), ["b/one"]);
    let fuzzy = world
        .ask(json!({"scope": "knowledge", "query": "plumz", "fuzzy": {"enabled": true, "max_distance": 1}}));
    assert_eq!(ids(&fuzzy), ["a/three"]);
}

#[test]
fn sorted_by_date_the_latest_change_comes_first() {
    let world = Fixture::new();
    for (id, seconds) in [("a", 200), ("b", 100), ("c", 300)] {
        world.write(id, "Apples", "");
        let file = fs::File::options()
            .write(true)
            .open(world.project.path().join(format!(".ai/knowledge/{id}.md")))
            .unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)).unwrap();
    }
    let by = |sort: &str| {
        ids(&world.ask(json!({"scope": "knowledge", "query": "apples", "sort_by": sort, "space": "project"})))
    };
    assert_eq!(by("date"), ["c", "a", "b"]);
    assert_eq!(by("name"), ["a", "b", "c"]);
}

#[test]
fn pages_are_cut_out_of_the_same_order_however_many_look_for_it() {
    let world = Fixture::new();
    let mut wanted: [Vec<String>; 3] = Default::default();
    for number in 0..4_500 {
        let id = format!("n{number:04}");
        let (title, body, class) = match number % 3 {
            0 => ("Apples", "", 0),
            1 => ("Pears", "apples", 1),
            _ => ("Pears", "", 2),
        };
        world.write(&id, title, body);
        wanted[class].push(id);
    }
    let wanted: Vec<String> = wanted[..2].concat();
    for (offset, limit) in [(0, 10), (1_495, 10), (2_995, 10), (3_000, 10), (7, 0), (0, 20), (2_000, 15)] {
        let page = world.ask(
            json!({"scope": "knowledge", "query": "apples", "limit": limit, "offset": offset, "space": "project"}),
        );
        assert_eq!(page["total"], 3_000);
        let end = (offset + limit).min(3_000);
        assert_eq!(ids(&page), wanted[offset.min(end)..end], "{offset} {limit}");
    }
}

#[test]
fn results_say_whether_they_are_signed_and_which_are_shadowed() {
    let world = Fixture::new();
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let now = jiff::Timestamp::UNIX_EPOCH;
    world.trust.add(SpaceKind::User, key.public(), "me", None, now).unwrap();
    world.write("a/one", "One", "x");
    write(world.user.path(), "a/one", "One", "x");
    let path = world.project.path().join(".ai/knowledge/a/one.md");
    let purpose = Purpose::at("knowledge/a/one.md").unwrap();
    fs::write(&path, sign_for(&purpose, "md", &fs::read(&path).unwrap(), &key, now).unwrap()).unwrap();
    let answer = world.ask(json!({"scope": "knowledge.a", "query": "one"}));
    let signed: Vec<(&Json, &Json)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["signed"], &one["shadowed_by"]))
        .collect();
    assert_eq!(signed, [(&json!(true), &Json::Null), (&json!(false), &json!("project"))]);
    assert_eq!(answer["results"][0]["integrity"].as_str().unwrap().len(), 64);
    assert!(!answer["results"][0]["preview"].as_str().unwrap().contains("rye:signed"));
}

#[test]
fn a_warm_searcher_sees_every_change_of_files() {
    let world = Fixture::new();
    let root = world.project.path().join(".ai/knowledge");
    let found =
        |query: &str| ids(&world.ask(json!({"scope": "knowledge", "query": query, "space": "project"})));
    assert!(found("zebra").is_empty());
    world.write("a/one", "Zebra", "");
    assert_eq!(found("zebra"), ["a/one"]);
    std::thread::sleep(Duration::from_millis(45));
    assert_eq!(found("zebra"), ["a/one"]);
    world.write("a/one", "Horse", "");
    assert!(found("zebra").is_empty());
    assert_eq!(found("horse"), ["a/one"]);
    world.write("a/b/c/two", "Zebra", "");
    assert_eq!(found("zebra"), ["a/b/c/two"]);
    fs::rename(root.join("a/b"), root.join("d")).unwrap();
    assert_eq!(found("zebra"), ["d/c/two"]);
    world.write("d/c/two", "Zebra", "stripes");
    world.write("d/c/three", "Zebra", "");
    assert_eq!(found("stripes"), ["d/c/two"]);
    assert_eq!(found("zebra").len(), 2);
    fs::remove_dir_all(root.join("d")).unwrap();
    assert!(found("zebra").is_empty());
    fs::rename(&root, world.project.path().join("away")).unwrap();
    assert!(found("horse").is_empty());
    world.write("e", "Horse", "");
    assert_eq!(found("horse"), ["e"]);
}

#[test]
fn a_folder_that_takes_the_place_of_another_is_read_and_watched() {
    let world = Fixture::new();
    let root = world.project.path().join(".ai/knowledge");
    let found =
        |query: &str| ids(&world.ask(json!({"scope": "knowledge", "query": query, "space": "project"})));
    world.write("a/b/one", "Zebra", "");
    assert_eq!(found("zebra"), ["a/b/one"]);
    let away = world.project.path().join("away");
    write(&away, "a/b/one", "Horse", "");
    fs::rename(root.join("a"), world.project.path().join("old")).unwrap();
    fs::rename(away.join(".ai/knowledge/a"), root.join("a")).unwrap();
    assert!(found("zebra").is_empty());
    assert_eq!(found("horse"), ["a/b/one"]);
    world.write("a/b/two", "Horse", "");
    assert_eq!(found("horse"), ["a/b/one", "a/b/two"]);
    fs::remove_dir_all(root.join("a")).unwrap();
    world.write("a/b/three", "Horse", "");
    assert_eq!(found("horse"), ["a/b/three"]);
    world.write("a/b/four", "Horse", "");
    assert_eq!(found("horse"), ["a/b/four", "a/b/three"]);
}

#[test]
fn a_query_of_only_operators_is_refused() {
    let world = Fixture::new();
    world.write("a/one", "One", "not much");
    for query in ["((", "()", "AND", "not", "NOT ( or )"] {
        let answer = world.ask(json!({"scope": "knowledge", "query": query}));
        assert!(answer["error"].as_str().unwrap().contains("contains no word"), "{query}: {answer}");
    }
    assert!(world.ids("\"not\"").contains(&"a/one".to_owned()));
    assert!(world.ids(" ").contains(&"a/one".to_owned()));
}

#[test]
fn a_query_that_is_too_long_is_refused() {
    let world = Fixture::new();
    let answer = world.ask(json!({"scope": "knowledge", "query": "a ".repeat(5_000)}));
    assert!(answer["error"].as_str().unwrap().contains("longer than 4096 bytes"), "{answer}");
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_to_what_it_says_now() {
    let world = Fixture::new();
    let target = world.project.path().join("target.md");
    fs::write(&target, "zebra").unwrap();
    let folder = world.project.path().join(".ai/knowledge");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&target, folder.join("link.md")).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("circle")).unwrap();
    assert_eq!(world.ids("zebra"), ["link"]);
    fs::write(&target, "horse and more").unwrap();
    assert!(world.ids("zebra").is_empty());
}
