//! What is remembered between renders.

use super::*;
use crate::error::ErrorKind;

#[test]
fn visibilities_are_set_cleared_and_seeded() {
    let mut session = VisibilityOverrides::new();
    session.set(&path("a.b"), Visibility::Full);
    session.set(&path("c"), Visibility::Summary);
    session.set(&path("a.b"), Visibility::Summary);
    assert_eq!(session.get(&path("a.b")), Some(Visibility::Summary));
    assert!(session.clear(&path("a.b")) && !session.clear(&path("a.b")));
    let seed = session.clone();
    session.clear_all();
    assert_eq!(session.iter().count(), 0);
    session.seed(seed);
    assert_eq!(session.get(&path("c")), Some(Visibility::Summary));
}

#[test]
fn a_session_file_takes_paths_with_dots_and_with_slashes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    let tree = tree([plain("a", [summarized("b", [])])]);
    for written in ["a.b", "a/b"] {
        std::fs::write(&file, format!("{{\"visibility\": {{\"{written}\": \"full\"}}}}")).unwrap();
        let mut session = VisibilityOverrides::read(&file).unwrap();
        let rendered = tree.render(&Setting::new(&[]).session(&session)).unwrap();
        assert_eq!(rendered.text(), "# a\n\na\n\n## b\n\nb", "{written}");
        session.set(&path("a.b"), Visibility::Summary);
        assert_eq!(session.get(&path("a.b")), Some(Visibility::Summary), "what is set later counts");
    }
}

#[test]
fn paths_that_no_section_has_do_nothing() {
    let mut session = VisibilityOverrides::new();
    session.set(&path("zzz"), Visibility::Summary);
    let tree = tree([plain("a", [])]);
    assert_eq!(tree.render(&Setting::new(&[]).session(&session)).unwrap().text(), "# a\n\na");
}

#[test]
fn a_missing_session_file_is_an_empty_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    assert_eq!(VisibilityOverrides::read(&file).unwrap(), VisibilityOverrides::new());
    let mut session = VisibilityOverrides::new();
    session.set(&["a.b".to_owned(), "c".to_owned()], Visibility::Full);
    session.set(&path("d"), Visibility::Summary);
    session.write(&file).unwrap();
    assert_eq!(VisibilityOverrides::read(&file).unwrap(), session);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "{\n  \"visibility\": {\n    \"a.b/c\": \"full\",\n    \"d\": \"summary\"\n  }\n}\n");
}

#[test]
fn a_file_that_is_no_session_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    for (text, at) in [
        ("{\"visibility\": {\"a\": \"half\"}}", "\"half\""),
        ("{\"visibility\": []}", "["),
        ("{\"visibilty\": {\"a\": \"full\"}}", "\"visibilty\""),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = VisibilityOverrides::read(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let excerpt = error.diagnostic().place.as_ref().unwrap().text().to_owned();
        assert!(excerpt.starts_with(at), "{excerpt}");
    }
}

#[test]
fn commands_that_open_sections_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.json");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let file = &file;
            scope.spawn(move || {
                VisibilityOverrides::update(file, |session| {
                    session.set(&[format!("s{number}")], Visibility::Full);
                })
                .unwrap();
            });
        }
    });
    assert_eq!(VisibilityOverrides::read(&file).unwrap().iter().count(), 16);
}

#[cfg(unix)]
#[test]
fn a_session_behind_a_link_is_written_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
    std::fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    VisibilityOverrides::update(&link, |session| session.set(&path("a"), Visibility::Full)).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(VisibilityOverrides::read(&real).unwrap().get(&path("a")), Some(Visibility::Full));
}
