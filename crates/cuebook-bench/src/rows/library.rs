//! Large libraries: opened and listed, asked for one prompt, and checked as a whole.
//!
//! No peer has a library or a check. Those that read files of this kind read and render each of them once, which is the way to
//! find out whether they work. Whole libraries are measured once or a few times: they take seconds.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cuebook::{Book, Context};
use cuebook_lab::BookExt;
use serde_json::json;
use tempfile::TempDir;

use crate::measure::{Turns, is_rehearsal};
use crate::peers::{Renderer, Renderers};
use crate::race::Race;
use crate::table::{Peer, Row, Target};

/// How many prompts there are.
const SIZES: [usize; 2] = [10_000, 100_000];
/// How often the short rows are measured, and how often whole libraries are read, by size.
const SHORT: usize = 50;
const WHOLE: [usize; 2] = [3, 1];

/// What peers do instead of a check.
const ONCE: &str = "it has no check: it reads and renders each file once";

/// The same, where it is no more than a part of what ours does and there is no wait for an interpreter.
const BARE: &str = "it has no library, no rules and no check: it reads and renders each file once";

/// The rows.
pub fn rows(peers: &mut Renderers) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for (size, whole) in SIZES.into_iter().zip(WHOLE) {
        // A rehearsal shows that it works, with the true number in the names of its rows.
        let size = if is_rehearsal() { size / 100 } else { size };
        rows.extend(rows_of(size, whole, peers)?);
    }
    Ok(rows)
}

fn rows_of(size: usize, whole: usize, peers: &mut Renderers) -> Result<Vec<Row>, Box<dyn Error>> {
    crate::race::say(&format!("writing {size} prompts"));
    let library = make(size)?;
    let root = library.path();
    let (own, theirs) = (root.join("prompts"), root.join("dotprompts"));
    let short = if is_rehearsal() { 2 } else { SHORT };
    let wanted = format!("prompt_{}", size / 7 * 5);
    let name = format!("{} prompts", grouped(size));

    let listed = move || {
        let started = Instant::now();
        let ids = Book::open(root).library().ids().map_err(|error| error.to_string())?;
        let took = started.elapsed();
        let found = ids.iter().filter(|id| id.starts_with("prompt_")).count();
        if found == size { Ok(nanoseconds(took)) } else { Err(format!("{found} of {size} were found")) }
    };
    let open = Race::new(
        format!("{name}: open"),
        "a library is opened and all ids are listed",
        Ok(Box::new(listed)),
    )
    .floor("reading the names in the folder", Ok(Box::new(|| names(&own, size))))
    .rounds(short)
    .run();

    let resolved = || {
        let started = Instant::now();
        let prepared = Book::open(root).prepare(&wanted, &Context::default());
        let took = started.elapsed();
        prepared.map_err(|error| error.to_string())?;
        Ok(nanoseconds(took))
    };
    let path = own.join(format!("{wanted}.prompty"));
    let one = || {
        let started = Instant::now();
        let read = fs::read(&path);
        let took = started.elapsed();
        read.map(|_| nanoseconds(took)).map_err(|error| error.to_string())
    };
    let what = "a library is opened and one id is found, read and compiled, without any cache";
    let resolve = Race::new(format!("{name}: resolve"), what, Ok(Box::new(resolved)))
        .floor("reading its file", Ok(Box::new(one)))
        .rounds(short)
        .run();

    let checked = || {
        let started = Instant::now();
        let report = Book::open(root).check(&[], |_| {}).map_err(|error| error.to_string())?;
        let took = started.elapsed();
        match report.findings.first() {
            None if report.prompts >= size => Ok(nanoseconds(took)),
            None => Err(format!("{} of {size} were checked", report.prompts)),
            Some(finding) => Err(format!("it found something: {}", finding.message)),
        }
    };
    let Renderers { prompty_python, prompty_rust, dotprompt, .. } = peers;
    let peer = |renderer: &Renderer, note: &str| Peer::new(renderer.name, renderer.version).note(note);
    let what = "every prompt is found, read, compiled and checked with every rule";
    let check = Race::new(format!("{name}: check"), what, Ok(Box::new(checked)))
        .floor("reading every file", Ok(Box::new(|| all(&own, size))))
        .peer(peer(prompty_python, ONCE), read(prompty_python, &own, size))
        .peer(peer(prompty_rust, BARE).yardstick(), read(prompty_rust, &own, size))
        .peer(
            peer(dotprompt, "it reads and renders each file once, in its own format"),
            read(dotprompt, &theirs, size),
        )
        .rounds(whole)
        .run();
    Ok(vec![open, resolve, check.target(Target::Ahead)])
}

/// Turns in which a peer reads and renders a folder.
fn read<'a>(peer: &'a mut Renderer, folder: &'a Path, size: usize) -> Result<Turns<'a>, String> {
    Ok(Box::new(move || {
        let values = json!({"name": "Mara", "tone": "calm", "question": "Why?"});
        let answer = peer.ask(&json!({"library": folder, "values": values}))?;
        if answer["prompts"] != size {
            return Err(format!("it read {} of {size}", answer["prompts"]));
        }
        answer["nanoseconds"].as_f64().ok_or_else(|| "it measured nothing".to_owned())
    }))
}

fn names(folder: &Path, size: usize) -> Result<f64, String> {
    let started = Instant::now();
    let count = fs::read_dir(folder).map_err(|error| error.to_string())?.flatten().count();
    let took = started.elapsed();
    if count == size { Ok(nanoseconds(took)) } else { Err(format!("{count} of {size} are there")) }
}

fn all(folder: &Path, size: usize) -> Result<f64, String> {
    let started = Instant::now();
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?.flatten();
    let count = entries.filter(|entry| fs::read(entry.path()).is_ok()).count();
    let took = started.elapsed();
    if count == size { Ok(nanoseconds(took)) } else { Err(format!("{count} of {size} can be read")) }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// A project with so many prompts, and beside them the same ones as dotprompt writes them.
fn make(size: usize) -> std::io::Result<TempDir> {
    let project = tempfile::tempdir()?;
    let (own, theirs) = (project.path().join("prompts"), project.path().join("dotprompts"));
    fs::create_dir(&own)?;
    fs::create_dir(&theirs)?;
    for number in 0..size {
        let system = format!(
            "You answer questions about subject {number}.\nTalk to {{{{name}}}} in a {{{{tone}}}} tone, and say so when you do not know."
        );
        let file = format!(
            "---\nname: prompt_{number}\ndescription: Answers questions about subject {number}\nmodel: gpt-4o\ninputs:\n  \
             - {{name: name, kind: string}}\n  - {{name: tone, kind: string, default: warm}}\n  - {{name: question, kind: string}}\n---\n\
             system:\n{system}\n\nuser:\n{{{{question}}}}\n"
        );
        fs::write(own.join(format!("prompt_{number}.prompty")), file)?;
        let file = format!(
            "---\nname: prompt_{number}\ndescription: Answers questions about subject {number}\nmodel: openai/gpt-4o\ninput:\n  \
             schema:\n    name: string\n    tone?: string\n    question: string\n  default:\n    tone: warm\n---\n\
             {{{{role \"system\"}}}}\n{system}\n\n{{{{role \"user\"}}}}\n{{{{question}}}}\n"
        );
        fs::write(theirs.join(format!("prompt_{number}.prompt")), file)?;
    }
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(Duration::from_millis(50));
    Ok(project)
}

/// A number as people write it.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [7, 100, 1_000, 10_000, 100_000, 1_234_567].map(grouped),
            ["7", "100", "1,000", "10,000", "100,000", "1,234,567"]
        );
    }

    #[test]
    fn a_generated_library_is_complete_and_valid() {
        let library = make(12).unwrap();
        let report = Book::open(library.path()).check(&[], |_| {}).unwrap();
        assert_eq!(
            report.findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>(),
            [""; 0]
        );
        assert!(report.prompts >= 12);
        assert_eq!(names(&library.path().join("dotprompts"), 12).map(|_| ()), Ok(()));
        assert!(all(&library.path().join("prompts"), 13).is_err());
    }
}
