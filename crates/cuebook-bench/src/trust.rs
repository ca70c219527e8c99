//! What trust costs: the first verification of an item in a process against reading the file and one bare verification of
//! an Ed25519 signature (target: at most 3 times as long), and a later one against reading the file; and searches over a
//! hundred thousand items, when everything has been read once (target: at most 50 ms), with what they keep in memory, which must
//! grow no faster than the number of items.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cuebook::actions::search::{SearchRequest, Searcher};
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};

use crate::measure::compare;

/// How many items are searched; memory may grow as they do, and no faster.
const SIZES: [usize; 2] = [10_000, 100_000];
/// Items of a folder.
const FOLDER: usize = 100;
/// Runs of a search, of which the best counts.
const RUNS: usize = 20;

/// Prints the rows.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!("\ntrust: verification of a directive of 3 kB");
    verification()?;
    let mut searched = Vec::new();
    for items in SIZES {
        println!("\nsearch: {items} items, warm (target: at most 50 ms)");
        searched.push(search(items)?);
    }
    println!("\nsearch: memory (target: no more for an item when there are more of them)");
    println!("{:>14} {:>12} {:>14}", "items", "all", "an item");
    for (items, searched) in SIZES.iter().zip(&searched) {
        println!("{items:>14} {:>9.1} MB {:>8} bytes", searched.kept as f64 / 1e6, searched.kept / items);
    }
    Ok(())
}

/// A project that was searched. It stays until all are measured, so that none takes the memory of another.
struct SearchedProject {
    _project: tempfile::TempDir,
    _searcher: Searcher,
    /// Bytes that the searcher keeps.
    kept: usize,
}

fn verification() -> Result<(), Box<dyn Error>> {
    let (project, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let spaces = Spaces::new(project.path(), Some(user.path()));
    let key = SigningKey::generate()?;
    let now = "2026-02-26T00:00:00Z".parse()?;
    Trust::new(&spaces).add(SpaceKind::User, key.public(), "me", Some(&key), now)?;
    let body = "Say hello, and mean it.\n".repeat(110);
    let text = format!(
        "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <category>demo</category>\n  </metadata>\n</directive>\n```\n\n{body}"
    );
    let path = project.path().join(".ai/directives/demo/greet.md");
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let purpose = Purpose::at("directives/demo/greet.md").ok_or("no purpose")?;
    fs::write(&path, sign_for(&purpose, "md", text.as_bytes(), &key, now)?)?;
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(Duration::from_millis(50));
    let located = spaces.find(ItemType::Directive, &ItemId::new("demo/greet")?)?.ok_or("no item")?;
    let message = [b'a'; 64];
    let signature = key.sign(&message);
    let bare = || {
        let bytes = fs::read(&path).unwrap_or_default();
        (bytes, key.public().verify(&message, &signature))
    };
    let cold =
        compare(bare, || located.clone().read(1 << 20).and_then(|item| Trust::new(&spaces).verify(&item)));
    row("cold, against reading and one bare verification", cold.peer, cold.ours);
    let trust = Trust::new(&spaces);
    let warm = compare(
        || fs::read(&path).unwrap_or_default(),
        || located.clone().read(1 << 20).and_then(|item| trust.verify(&item)),
    );
    row("warm, against reading", warm.peer, warm.ours);
    Ok(())
}

fn row(name: &str, peer: f64, ours: f64) {
    println!("  {name:52} {:8.1} µs  {:8.1} µs  {:5.2} times", peer / 1e3, ours / 1e3, ours / peer);
}

fn search(items: usize) -> Result<SearchedProject, Box<dyn Error>> {
    let project = tempfile::tempdir()?;
    let root = project.path().join(".ai/knowledge");
    for folder in 0..items / FOLDER {
        let path = root.join(format!("area{folder}"));
        fs::create_dir_all(&path)?;
        for item in 0..FOLDER {
            let name = format!("note{item}");
            let text = format!(
                "```yaml\nname: {name}\ntitle: Note {item} about area {folder}\ndescription: What is known of subject {} in this area\ncategory: area{folder}\n```\n\nThe quick brown fox number {} jumps over the lazy dog, as it has done for years.\n",
                item * 7919 % 1000,
                folder * item
            );
            fs::write(path.join(format!("{name}.md")), text)?;
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    let spaces = Spaces::new(project.path(), None);
    let trust = Trust::new(&spaces);
    let before = resident();
    let searcher = Searcher::new(spaces);
    let started = Instant::now();
    let found = searcher.search(&SearchRequest::new("knowledge", "fox"), &trust)?;
    println!(
        "  the first search reads everything: {:.2} s, {} found",
        started.elapsed().as_secs_f64(),
        found.total
    );
    let kept = resident().saturating_sub(before);
    for query in [
        "fox",
        "subject 77",
        "zebra",
        "note99* OR area999",
        "\"brown fox\" NOT area1",
        "no* AND lazy",
        "*",
        "",
    ] {
        let request = SearchRequest::new("knowledge", query);
        let best = (0..RUNS).map(|_| {
            let started = Instant::now();
            let answer = searcher.search(&request, &trust);
            (started.elapsed(), answer.map_or(0, |found| found.total))
        });
        let (best, total) = best.min().unwrap_or_default();
        println!("  {query:28} {:8.2} ms  {total:7} found", best.as_secs_f64() * 1e3);
    }
    Ok(SearchedProject { _project: project, _searcher: searcher, kept })
}

/// Bytes of memory that the process holds, as far as the system says.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages =
        pages.and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()));
    pages.unwrap_or_default() * 4096
}
