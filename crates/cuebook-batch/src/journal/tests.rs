use cuebook::chat::reply::{Answer, ProviderState, Reply, Usage};

use super::*;
use crate::problem::Problem;

fn key(number: u64) -> Key {
    let text = format!("{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    Key::read(&text).unwrap()
}

fn answer(text: &str) -> Answered {
    let answer = Answer {
        reply: Reply::Text(text.to_owned()),
        thinking: None,
        usage: None,
        finish: Some("stop".to_owned()),
        model: None,
        id: None,
        provider_state: ProviderState::default(),
    };
    Answered::of(&answer, Usage { input: Some(3), ..Usage::default() }, Money::from_nanos(7))
}

fn failed() -> Failed {
    let problem = Problem { code: "CB722".into(), message: "no".into(), hint: None };
    Failed { problem, cost: Money::from_nanos(2), run: 0 }
}

#[test]
fn an_answer_outlives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    {
        let journal = Journal::open(&output, "then").unwrap();
        for number in 0..200 {
            journal.answered(key(number), &answer(&format!("answer {number}"))).unwrap();
        }
    }
    let journal = Journal::open(&output, "now").unwrap();
    assert_eq!((journal.answers(), journal.began().as_str()), (200, "then"));
    assert_eq!(journal.spent(), Money::from_nanos(1_400));
    for number in 0..200 {
        let kept = journal.get(key(number)).unwrap().unwrap();
        assert_eq!(kept, QuestionRecord::Answered(Box::new(answer(&format!("answer {number}")))));
    }
    assert_eq!(journal.get(key(200)).unwrap(), None);
}

#[test]
fn the_index_finds_every_key_after_it_has_grown() {
    let mut index = Index::new();
    (0..20_000).for_each(|number| index.add(key(number), number));
    for number in 0..20_000 {
        assert!(index.places(key(number)).any(|(_, place)| place == number), "{number}");
    }
    let (slot, _) = index.places(key(7)).find(|(_, place)| *place == 7).unwrap();
    index.replace(slot, 1 << 39);
    assert!(index.places(key(7)).any(|(_, place)| place == 1 << 39));
    let wrong = (20_000..40_000).filter(|number| index.places(key(*number)).next().is_some()).count();
    assert!(wrong < 200, "{wrong} keys that are not there look as if they were");
}

#[test]
fn a_line_without_its_end_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    Journal::open(&output, "then").unwrap().answered(key(1), &answer("one")).unwrap();
    let path = Journal::path_of(&output);
    let whole = std::fs::read(&path).unwrap();
    let line = whole.iter().rposition(|byte| *byte == b'{').unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    assert!(line > last);
    for cut in last + 1..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let journal = Journal::open(&output, "now").unwrap();
        assert_eq!(journal.get(key(1)).unwrap(), None, "cut at {cut}");
        journal.answered(key(1), &answer("again")).unwrap();
        drop(journal);
        let journal = Journal::open(&output, "now").unwrap();
        assert!(journal.get(key(1)).unwrap().is_some());
    }
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    Journal::open(&output, "then").unwrap().answered(key(1), &answer("one")).unwrap();
    let path = Journal::path_of(&output);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("nonsense\n{text}")).unwrap();
    let error = Journal::open(&output, "now").unwrap_err();
    assert_eq!(error.code(), Code::BadJournal);
    assert_eq!(error.field("line"), Some(&json!(1)));
}

#[test]
fn a_failure_counts_in_its_own_run_only() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    {
        let journal = Journal::open(&output, "then").unwrap();
        journal.failed(key(1), &failed()).unwrap();
        assert!(matches!(journal.get(key(1)).unwrap(), Some(QuestionRecord::Failed(_))));
    }
    let journal = Journal::open(&output, "now").unwrap();
    assert_eq!(journal.get(key(1)).unwrap(), None);
    assert_eq!(journal.spent(), Money::from_nanos(2));
    journal.answered(key(1), &answer("yes")).unwrap();
    assert!(matches!(journal.get(key(1)).unwrap(), Some(QuestionRecord::Answered(_))));
    journal.done().unwrap();
    assert_eq!(journal.spent(), Money::ZERO);
}

#[test]
fn two_processes_do_not_share_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    let journal = Journal::open(&output, "then").unwrap();
    assert_eq!(Journal::open(&output, "now").unwrap_err().code(), Code::BatchBusy);
    drop(journal);
    Journal::open(&output, "now").unwrap();
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    let _journal = Journal::open(&output, "then").unwrap();
    let mode = std::fs::metadata(Journal::path_of(&output)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn threads_that_write_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.jsonl");
    let journal = Journal::open(&output, "then").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0..50 {
                    journal.answered(key(thread * 1000 + number), &answer("yes")).unwrap();
                }
            });
        }
    });
    drop(journal);
    assert_eq!(Journal::open(&output, "now").unwrap().answers(), 200);
}

#[test]
fn processes_that_share_a_folder_share_answers() {
    let folder = tempfile::tempdir().unwrap();
    let kept = |journal: &Journal, number: u64| journal.get(key(number)).unwrap();
    let first = Journal::share(folder.path(), "now").unwrap();
    first.answered(key(1), &answer("one")).unwrap();
    let second = Journal::share(folder.path(), "now").unwrap();
    assert_eq!(kept(&second, 1), Some(QuestionRecord::Answered(Box::new(answer("one")))));
    second.answered(key(2), &answer("two")).unwrap();
    first.failed(key(3), &failed()).unwrap();
    second.answered(key(4), &answer("four")).unwrap();
    let third = Journal::share(folder.path(), "now").unwrap();
    for number in [2, 4, 2] {
        assert!(kept(&first, number).is_some() && kept(&third, number).is_some(), "{number}");
    }
    // A failure of another process is asked again.
    assert_eq!((kept(&second, 3), kept(&third, 3)), (None, None));
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files(), 3);
    drop(second);
    let fourth = Journal::share(folder.path(), "now").unwrap();
    assert_eq!((files(), kept(&fourth, 2).is_some()), (3, true));
    fourth.answered(key(5), &answer("five")).unwrap();
    assert!(kept(&first, 5).is_some() && kept(&third, 5).is_some());
}
