//! Every write is atomic and locked: processes resolve, install, approve and remove at once, one of them is killed in the
//! middle, a thousand times, and no file is ever torn or lost.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod robust_support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use robust_support::{CUEBOOK, Project, Random, Run, files, wait};
use serde_json::Value as Json;

const ROUNDS: usize = 1_000;
const PROMPTS: usize = 6;
const PACKS: [&str; 3] = ["alpha", "beta", "gamma"];
const RESOLUTIONS: &str = "user_data/shared/prompts/resolution.json";
const APPROVALS: &str = ".ai/config/approvals";

/// Something that a process is reported to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Prompt, and which of its two places.
    Resolve(usize, usize),
    /// Pack, version, and whether it may replace another.
    Install(usize, usize, bool),
    Remove(usize),
    Approve(usize),
}

impl Task {
    fn any(random: &mut Random) -> Task {
        let pack = random.below(PACKS.len());
        match random.below(10) {
            0..=3 => Task::Resolve(random.below(PROMPTS), random.below(2)),
            4 => Task::Install(pack, random.below(2), false),
            5..=7 => Task::Install(pack, random.below(2), true),
            8 => Task::Remove(pack),
            _ => Task::Approve(pack),
        }
    }

    fn arguments(self) -> Vec<String> {
        let words = match self {
            Task::Resolve(prompt, place) => return vec!["resolve".into(), id(prompt), source(prompt, place)],
            Task::Install(pack, version, upgrade) => {
                let from = format!("versions/{version}/{}", PACKS[pack]);
                let mut words = vec!["pack".into(), "install".into(), from];
                words.extend(upgrade.then(|| "--upgrade".to_owned()));
                return words;
            }
            Task::Remove(pack) => ["pack", "remove", PACKS[pack], "--yes"],
            Task::Approve(pack) => ["pack", "approve", PACKS[pack], "--yes"],
        };
        words.map(str::to_owned).to_vec()
    }

    /// What can be seen from the outside when it fails although no one killed it.
    fn may_fail_with(self) -> &'static [&'static str] {
        match self {
            Task::Resolve(..) | Task::Install(_, _, true) => &[],
            Task::Install(_, _, false) => &["CB206"],
            Task::Remove(_) => &["CB205"],
            // The pack may be gone, or be another one than was shown.
            Task::Approve(_) => &["CB205", "CB207"],
        }
    }
}

fn id(prompt: usize) -> String {
    format!("prompt_{prompt}")
}

fn source(prompt: usize, place: usize) -> String {
    format!("{}/{}", ["user_data/shared/prompts", "prompts"][place], id(prompt))
}

fn project() -> Project {
    let project = Project::new();
    for prompt in 0..PROMPTS {
        for place in 0..2 {
            project.put(&format!("{}/template.md", source(prompt, place)), "text");
        }
    }
    for (index, pack) in PACKS.iter().enumerate() {
        for version in 0..2 {
            let folder = format!("versions/{version}/{pack}");
            let own = format!("of_{pack}");
            project.put(
                &format!("{folder}/pack.json"),
                format!(
                    r#"{{"pack_id": "{pack}", "version": "{}.0.0", "type": "prompt_pack", "prompts": ["{own}"]}}"#,
                    version + 1
                ),
            );
            project.put(&format!("{folder}/prompts/{own}/template.md"), format!("version {version}\n"));
            project.put(
                &format!("{folder}/prompts/{own}/prompt.py"),
                format!("METADATA = {{\"version\": \"{}.0.0\"}}\n", version + 1),
            );
            for part in 0..4 + version + index {
                let text = format!("part {part} of version {version}\n").repeat(40);
                project.put(&format!("{folder}/prompts/partials/part_{part}.md"), text);
            }
        }
    }
    project
}

fn start(project: &Project, arguments: &[String]) -> Child {
    Command::new(CUEBOOK)
        .args(arguments)
        .current_dir(project.root())
        .env_remove("CUEBOOK_ROOT")
        .env_remove("USER_SPACE")
        .env("HOME", project.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn json(path: &Path) -> BTreeMap<String, Json> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            panic!("{} is torn ({error}): {}", path.display(), String::from_utf8_lossy(&bytes))
        }),
        Err(_) => BTreeMap::new(),
    }
}

/// What the user of the project approved.
fn approvals(project: &Project) -> Json {
    let folder = fs::read_dir(project.home().join(APPROVALS)).into_iter().flatten().flatten();
    let mut files = folder.map(|entry| entry.path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "json"));
    file.map(|file| json(&file)["packs"].clone()).unwrap_or_default()
}

/// The state of the project as it must be: for every entry, what it may be now.
struct Fixture {
    project: Project,
    /// The files of every version of every pack.
    versions: Vec<[BTreeMap<String, Vec<u8>>; 2]>,
    /// The digest under which every version is approved.
    digests: Vec<[String; 2]>,
    resolutions: BTreeMap<usize, usize>,
    /// The version that is installed.
    packs: [Option<usize>; 3],
    approved: BTreeSet<usize>,
}

impl Fixture {
    fn new() -> Fixture {
        let project = project();
        let versions = PACKS
            .iter()
            .map(|pack| [0, 1].map(|version| files(&project.path(&format!("versions/{version}/{pack}")))))
            .collect();
        let mut world = Fixture {
            project,
            versions,
            digests: Vec::new(),
            resolutions: BTreeMap::new(),
            packs: [None; 3],
            approved: BTreeSet::new(),
        };
        for (pack, id) in PACKS.iter().enumerate() {
            let digests = [0, 1].map(|version| {
                world.must(Task::Install(pack, version, true));
                world.must(Task::Approve(pack));
                approvals(&world.project)[id]["digest"].as_str().unwrap().to_owned()
            });
            world.digests.push(digests);
            world.packs[pack] = Some(1);
            world.approved.insert(pack);
        }
        world
    }

    fn must(&self, task: Task) -> Duration {
        let begin = Instant::now();
        let run = wait(start(&self.project, &task.arguments()), b"");
        assert_eq!(run.code, Some(0), "{task:?}: {}", run.stderr);
        begin.elapsed()
    }

    /// Compares the files with what the two tasks may have made of them.
    fn verify(&mut self, tasks: &[(Task, Run)]) {
        self.verify_resolutions(tasks);
        for pack in 0..PACKS.len() {
            self.verify_pack(pack, tasks);
        }
        self.verify_approvals(tasks);
    }

    fn verify_resolutions(&mut self, tasks: &[(Task, Run)]) {
        let found = json(&self.project.path(RESOLUTIONS));
        for prompt in 0..PROMPTS {
            let mine: Vec<(usize, bool)> = tasks
                .iter()
                .filter_map(|(task, run)| match task {
                    Task::Resolve(of, place) if *of == prompt => Some((*place, run.code == Some(0))),
                    _ => None,
                })
                .collect();
            let now = found.get(&id(prompt)).map(|entry| {
                let now = entry["source"].as_str().unwrap();
                assert_eq!(entry["candidates"].as_array().unwrap().len(), 2, "{entry}");
                (0..2).find(|place| source(prompt, *place) == now).unwrap()
            });
            let mut allowed: Vec<Option<usize>> = mine.iter().map(|(place, _)| Some(*place)).collect();
            if !mine.iter().any(|(_, done)| *done) {
                allowed.push(self.resolutions.get(&prompt).copied());
            }
            assert!(allowed.contains(&now), "{}: {now:?} is none of {allowed:?}", id(prompt));
            self.resolutions.extend(now.map(|now| (prompt, now)));
        }
    }

    fn verify_pack(&mut self, pack: usize, tasks: &[(Task, Run)]) {
        let folder = self.project.path(&format!("user_data/packs/{}", PACKS[pack]));
        let now = folder.is_dir().then(|| {
            let content = files(&folder);
            let version = self.versions[pack].iter().position(|version| *version == content);
            version.unwrap_or_else(|| {
                panic!("{} is a mixture: {:?}", PACKS[pack], content.keys().collect::<Vec<_>>())
            })
        });
        let mut allowed = Vec::new();
        let mut settled = false;
        for (task, run) in tasks {
            let target = match task {
                Task::Install(of, version, _) if *of == pack => Some(*version),
                Task::Remove(of) if *of == pack => None,
                _ => continue,
            };
            // A task that failed by itself has changed nothing.
            if run.code != Some(1) {
                allowed.push(target);
            }
            settled |= run.code == Some(0);
        }
        if !settled {
            allowed.push(self.packs[pack]);
        }
        assert!(allowed.contains(&now), "{}: {now:?} is none of {allowed:?}", PACKS[pack]);
        self.packs[pack] = now;
    }

    fn verify_approvals(&mut self, tasks: &[(Task, Run)]) {
        let found = approvals(&self.project);
        for (task, run) in tasks {
            if let (Task::Approve(pack), Some(0)) = (task, run.code) {
                self.approved.insert(*pack);
            }
        }
        for pack in &self.approved {
            let entry = found.get(PACKS[*pack]).unwrap_or_else(|| panic!("{} is lost", PACKS[*pack]));
            let digest = entry["digest"].as_str().unwrap();
            assert!(self.digests[*pack].iter().any(|known| known == digest), "approved a mixture: {entry}");
        }
    }

    /// Names beside the packs and the choices that no command should leave behind.
    fn litter(&self) -> Vec<String> {
        ["user_data/packs", "user_data/shared/prompts", "user_data"]
            .iter()
            .flat_map(|folder| fs::read_dir(self.project.path(folder)).unwrap())
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with('.') && !name.ends_with(".lock"))
            .collect()
    }
}

#[test]
fn concurrent_killed_writers_lose_nothing() {
    let seed = match std::env::var("RELIABILITY_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64,
    };
    let mut random = Random::new(seed);
    let mut world = Fixture::new();
    // The longest of a few runs; the kill falls anywhere within it.
    let typical = |task: Task| (0..3).map(|_| world.must(task)).max().unwrap();
    let resolving = typical(Task::Resolve(0, 0));
    let installing = typical(Task::Install(0, 1, true));
    world.resolutions.insert(0, 0);
    let (mut killed, mut finished) = (0, 0);
    for round in 0..ROUNDS {
        let tasks = [Task::any(&mut random), Task::any(&mut random)];
        let victim = random.below(2);
        let span = match tasks[victim] {
            Task::Resolve(..) => resolving,
            _ => installing,
        };
        let delay = span.mul_f64(random.below(1000) as f64 / 1000.0);
        let context =
            format!("RELIABILITY_SEED={seed}, round {round}, {tasks:?}, kill {victim} after {delay:?}");
        let mut children = tasks.map(|task| start(&world.project, &task.arguments()));
        std::thread::sleep(delay);
        // It may have ended already, and then there is nothing to kill.
        let _ = children[victim].kill();
        let runs = children.map(|child| wait(child, b""));
        let done: Vec<(Task, Run)> = tasks.into_iter().zip(runs).collect();
        for (index, (task, run)) in done.iter().enumerate() {
            match run.code {
                Some(0) => finished += 1,
                None if index == victim => killed += 1,
                _ => {
                    let known = task.may_fail_with().iter().any(|code| run.stderr.contains(code));
                    assert!(known, "{context}\n{task:?} failed: {}", run.stderr);
                }
            }
        }
        let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.verify(&done)));
        if let Err(failure) = verified {
            eprintln!("{context}\n{done:?}");
            std::panic::resume_unwind(failure);
        }
    }
    assert!(killed > ROUNDS / 10, "only {killed} were killed in time: the test tests nothing");
    // On a busy machine the kill comes early for a slow command, so this only says that commands do come to their end.
    assert!(finished > ROUNDS / 2, "only {finished} commands came to their end");
    // Locks of dead processes block no process, and the living clear up after them.
    for prompt in 0..PROMPTS {
        world.must(Task::Resolve(prompt, 0));
    }
    for pack in 0..PACKS.len() {
        world.must(Task::Install(pack, 0, true));
        world.must(Task::Approve(pack));
    }
    assert_eq!(world.litter(), [] as [&str; 0]);
}

#[test]
fn eight_processes_record_choices_at_once_and_none_is_lost() {
    const EACH: usize = 12;
    let project = Project::new();
    for prompt in 0..8 * EACH {
        project.put(&format!("prompts/{}/template.md", id(prompt)), "text");
    }
    std::thread::scope(|scope| {
        for process in 0..8 {
            let project = &project;
            scope.spawn(move || {
                for prompt in process * EACH..(process + 1) * EACH {
                    let arguments = ["resolve".to_owned(), id(prompt), source(prompt, 1)];
                    let run = wait(start(project, &arguments), b"");
                    assert_eq!(run.code, Some(0), "{}", run.stderr);
                }
            });
        }
    });
    let found = json(&project.path(RESOLUTIONS));
    assert_eq!(found.len(), 8 * EACH);
}

#[test]
fn concurrent_choices_are_all_recorded() {
    const EACH: usize = 25;
    let project = Project::new();
    for prompt in 0..8 * EACH {
        project.put(&format!("prompts/{}/template.md", id(prompt)), "text");
    }
    let book = cuebook::Book::open(project.root());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let book = &book;
            scope.spawn(move || {
                for prompt in thread * EACH..(thread + 1) * EACH {
                    book.set_resolution(&id(prompt), &source(prompt, 1)).unwrap();
                }
            });
        }
    });
    let found = json(&project.path(RESOLUTIONS));
    assert_eq!(found.len(), 8 * EACH);
    for prompt in 0..8 * EACH {
        assert_eq!(found[&id(prompt)]["source"], source(prompt, 1));
    }
}
