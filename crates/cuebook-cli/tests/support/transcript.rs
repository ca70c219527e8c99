//! Markdown that is run: a page shows files and a session at a terminal, and this makes sure that the session is true.
//!
//! ````text
//! ```file prompts/hi/template.md          writes the file
//! ```jinja2 file prompts/hi/template.md   the same, with a language for those who colour it
//! ```file prompts/hi/template.md base64   the same, for bytes that are no text
//! ```link prompts/a/template.md -> ../b   makes a symbolic link
//! ```model                                what the model says from here on: JSON, one reply after the other
//! ```console                              runs the lines that begin with `$ ` and compares what they print
//! $ cuebook render hi
//! Hi
//! [exit 1]                                only if the command fails
//! ````
//!
//! All blocks of a page share one project, in their order; `$ cd` holds until the end of its block. What a command prints
//! is its stdout, then its stderr. `...` alone on a line stands for any lines. Dates, times and the project's path are
//! written as `<DATE>`, `<TIME>` and `<ROOT>`, the digits of nonces as `<NONCE>`, the 16 of fingerprints as `<KEY>` and
//! of cut hashes as `<HASH>`, the milliseconds of threads as `<THREAD>`, how long they took as `<SECONDS>`, and numbers of
//! processes as `<PID>`. With `CUEBOOK_BLESS=1` the sessions are rewritten as they are.
//!
//! A model answers at `localhost:8080`: that is what a page writes into its files. A server of the test stands behind it, at
//! another port, and if a page has no file of a provider, one is written: `home/.ai/config/providers/local.yaml`.
//!
//! The chapters of a guide are pages that go on where the one before them ended: [`Setup`] is where they play. There `$ cd` holds
//! from then on, files are written where the reader stands, `~` is the reader's home, and `$ cuebook mock …` has
//! the model say what the file of `--script` says, or a greeting.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cuebook_mock::{Mock, Reply, Script};
use serde_json::Value as Json;

use super::Project;

/// Where pages say that a model answers.
const SERVER: &str = "localhost:8080";
/// Where files of the user's providers are.
const PROVIDERS: &str = "home/.ai/config/providers";
/// A provider for pages that are about something else.
const PROVIDER: &str = "name: local\napi: openai-chat\nbase_url: http://localhost:8080/v1\ntiers: {fast: small, general: small, \
                        high: small}\nmodels:\n  small: {context_window: 32000, max_output: 4096, price: {input: 1, output: 10}}\n";

/// Runs a page and gives back everything that its commands printed.
pub fn run_file(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let run = run(&text);
    if run.rewritten == text {
        return run.printed;
    }
    if std::env::var_os("CUEBOOK_BLESS").is_some() {
        std::fs::write(path, &run.rewritten).unwrap();
        return run.printed;
    }
    panic!(
        "{} does not show what happens (- the page, + what happens; CUEBOOK_BLESS=1 rewrites it):\n{}",
        path.display(),
        diff(&text, &run.rewritten)
    );
}

/// What came of a page.
pub struct Run {
    /// The page with its sessions as they are now; the page itself, if they were right.
    pub rewritten: String,
    /// Everything that the commands printed.
    pub printed: String,
}

/// Runs the blocks of a page in a fresh project.
pub fn run(page: &str) -> Run {
    let mut stage = Setup::new();
    stage.walks = false;
    stage.run(page)
}

/// Where pages play: a project, and the folder that the reader stands in.
pub struct Setup {
    pub project: Project,
    /// Where the reader is, and the next page begins.
    folder: PathBuf,
    /// Whether `$ cd` holds beyond its block.
    walks: bool,
    /// Further variables of the environment.
    variables: Vec<(String, OsString)>,
}

impl Setup {
    /// An empty folder, for pages that follow each other.
    pub fn new() -> Setup {
        let project = Project::new();
        Setup { folder: project.path().to_owned(), project, walks: true, variables: Vec::new() }
    }

    /// Every command finds this in its environment.
    pub fn variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    /// A script of the shell that commands find under this name, before any other program.
    #[cfg(unix)]
    pub fn program(&mut self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let folder = self.project.path().join("bin");
        self.project.write_at(&folder.join(name), script);
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        let command = self.project.command("sh", &folder);
        let path = command.get_envs().find_map(|(name, value)| value.filter(|_| name == "PATH"));
        let others = std::env::split_paths(path.expect("a PATH")).collect::<Vec<_>>();
        let path = std::env::join_paths(std::iter::once(folder).chain(others)).unwrap();
        self.variable("PATH", path);
    }

    /// Runs the blocks of a page, where the one before it ended.
    pub fn run(&mut self, page: &str) -> Run {
        run_on(self, page)
    }

    /// Where a file of a page is written.
    fn place(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.project.home().join(below),
            None => self.folder.join(path),
        }
    }
}

fn run_on(stage: &mut Setup, page: &str) -> Run {
    let mut run = Run { rewritten: String::new(), printed: String::new() };
    let mut lines = page.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        run.rewritten.push_str(line);
        let fence: String = line.chars().take_while(|letter| *letter == '`').collect();
        if fence.len() < 3 {
            continue;
        }
        let mut body = Vec::new();
        let mut closing = "";
        for line in lines.by_ref() {
            if line.trim_end() == fence {
                closing = line;
                break;
            }
            body.push(line);
        }
        assert!(!closing.is_empty(), "the block `{}` is never closed", line.trim_end());
        let mut info = line.trim_end()[fence.len()..].split_whitespace();
        match (info.next(), info.collect::<Vec<_>>().as_slice()) {
            (Some("file"), [path]) | (Some(_), ["file", path]) => {
                let text = body.concat();
                let text = match &stage.project.model {
                    Some(model) => text.replace(SERVER, model.url().trim_start_matches("http://")),
                    None if text.contains(SERVER) => {
                        let model = listen(&mut stage.project);
                        text.replace(SERVER, &model)
                    }
                    None => text,
                };
                stage.project.write_at(&stage.place(path), text);
            }
            (Some("model"), []) => {
                let text = body.concat();
                let replies = serde_json::Deserializer::from_str(&text).into_iter::<Json>();
                let replies: Json = replies.collect::<Result<_, _>>().expect("replies are JSON");
                let script = Script::from_json(&replies).expect("replies that can be made");
                let model = listen(&mut stage.project);
                stage.project.model.as_ref().expect("a model").play(script);
                let folder = stage.project.path().join(PROVIDERS);
                if !folder.is_dir() {
                    stage.project.write(&format!("{PROVIDERS}/local.yaml"), PROVIDER.replace(SERVER, &model));
                }
            }
            (Some("file"), [path, "base64"]) => {
                stage.project.write_at(&stage.place(path), base64(&body.concat()))
            }
            #[cfg(unix)]
            (Some("link"), [from, "->", to]) => stage.project.link(from, to),
            (Some("console"), []) => {
                run.rewritten.push_str(&session(stage, &body, &mut run.printed));
                run.rewritten.push_str(closing);
                continue;
            }
            (Some("file" | "link" | "model" | "console"), _) => {
                panic!("this block is not understood: {line}")
            }
            // A block of another language is there to be read.
            _ => {}
        }
        run.rewritten.extend(body);
        run.rewritten.push_str(closing);
    }
    run
}

/// Starts a listener where the page's model is, and gives the real address.
fn listen(project: &mut Project) -> String {
    let start = || Mock::start(Script::new()).expect("a port");
    project.model.get_or_insert_with(start).url().trim_start_matches("http://").to_owned()
}

/// Runs one session. What matches stays as it is written, with its `...`.
fn session(stage: &mut Setup, body: &[&str], printed: &mut String) -> String {
    let mut rewritten = String::new();
    let mut folder = stage.folder.clone();
    let mut lines = body.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            panic!("a session begins with a command, as in `$ cuebook list`, and not with: {line}");
        };
        let mut command = command.to_owned();
        rewritten.push_str(line);
        // A command goes on behind a backslash at the end of its line.
        while command.trim_end().ends_with('\\')
            && let Some(more) = lines.next()
        {
            command.push_str(more);
            rewritten.push_str(more);
        }
        let mut wanted = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            wanted.push_str(line);
        }
        if let Some(target) = command.trim_end().strip_prefix("cd ") {
            folder.push(target);
            assert!(folder.is_dir(), "there is no folder {target}");
            assert!(wanted.trim().is_empty(), "`cd` prints nothing");
            rewritten.push_str(&wanted);
            continue;
        }
        if let Some(words) = command.strip_prefix("cuebook mock ")
            && command.trim_end().ends_with('&')
        {
            let file = words.strip_prefix("--script ").and_then(|words| words.split_whitespace().next());
            let script = match file {
                Some(file) => {
                    let replies = std::fs::read(folder.join(file)).expect("a file with replies");
                    let replies = serde_json::from_slice(&replies).expect("replies are JSON");
                    Script::from_json(&replies).expect("replies that can be made")
                }
                None => Script::new().reply(Reply::text("Hello from the mock model.").usage(10, 6)).forever(),
            };
            listen(&mut stage.project);
            stage.project.model.as_ref().expect("a model").play(script);
            assert!(wanted.trim().is_empty(), "the model of a page runs in the background");
            rewritten.push_str(&wanted);
            continue;
        }
        let found = outcome(stage, &command, &folder);
        printed.push_str(&found);
        rewritten.push_str(if matches(&wanted, &found) { &wanted } else { &found });
    }
    if stage.walks {
        stage.folder = folder;
    }
    rewritten
}

fn outcome(stage: &Setup, command: &str, folder: &Path) -> String {
    let project = &stage.project;
    let command = match &project.model {
        Some(model) => &command.replace(SERVER, model.url().trim_start_matches("http://")),
        None => command,
    };
    let output = project
        .command("sh", folder)
        .envs(stage.variables.iter().map(|(name, value)| (name, value)))
        .args(["-c", command])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let mut text = String::new();
    for bytes in [&output.stdout, &output.stderr] {
        text.push_str(&String::from_utf8_lossy(bytes));
        // A rendered prompt need not end with a newline; on the page it does.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => text.push_str(&format!("[exit {code}]\n")),
        None => text.push_str("[killed]\n"),
    }
    // A line of output that looks like a fence would end the block that shows it.
    assert!(!text.lines().any(|line| line.starts_with("```")), "`{command}` prints a fence: show less of it");
    if let Some(model) = &project.model {
        text = text.replace(model.url().trim_start_matches("http://"), SERVER);
    }
    normalise(&text, project.path())
}

/// What the nonce of a rich input begins with.
const NONCE: &str = "__PROMPTY_THREAD_";

/// Writes what differs from run to run as `<ROOT>`, `<DATE>`, `<TIME>` and `<NONCE>`.
pub fn normalise(text: &str, root: &Path) -> String {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut text = text.to_owned();
    for path in [&*real, root] {
        // The home folder is known to pages by the link to it.
        let home = path.with_file_name("home");
        text = text.replace(&*home.to_string_lossy(), "<ROOT>/home");
        text = text.replace(&*path.to_string_lossy(), "<ROOT>");
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(letter) = rest.chars().next() {
        // A digit before would make it part of a longer number.
        let fresh = !out.ends_with(|before: char| before.is_ascii_alphanumeric());
        if let Some(digits) = rest.strip_prefix(NONCE).and_then(|after| after.get(..16))
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            out.push_str(NONCE);
            out.push_str("<NONCE>");
            rest = &rest[NONCE.len() + 16..];
        } else if out.ends_with('-') && has_shape(rest, "ddddddddddddd") {
            out.push_str("<THREAD>");
            rest = &rest[13..];
            // Two that began in the same moment are distinguished by a number.
            if let Some(after) = rest.strip_prefix('-')
                && has_shape(after, "d")
            {
                rest = &after[1..];
            }
        } else if out.ends_with("hash is ") && rest.bytes().take_while(u8::is_ascii_hexdigit).count() == 64 {
            out.push_str("<HASH>");
            rest = &rest[64..];
        } else if fresh && let Some(after) = seconds(rest) {
            out.push_str("<SECONDS> s");
            rest = after;
        } else if let Some(after) = ["\"elapsed_seconds\": ", "process ", "\"pid\": "]
            .iter()
            .find(|before| out.ends_with(**before))
            .and_then(|before| number(rest).map(|after| (before, after)))
        {
            out.push_str(if after.0.contains("seconds") { "<SECONDS>" } else { "<PID>" });
            rest = after.1;
        } else if fresh && is_fingerprint(rest) {
            let is_hash = rest[16..].starts_with('…');
            out.push_str(if is_hash { "<HASH>" } else { "<KEY>" });
            rest = &rest[16..];
        } else if fresh && has_shape(rest, "dddd-dd-dd") {
            out.push_str("<DATE>");
            rest = &rest["dddd-dd-dd".len()..];
            if let Some(time) = rest.strip_prefix(['T', ' '])
                && has_shape(time, "dd:dd:dd")
            {
                out.push_str(&rest[..1]);
                rest = after_time(time);
                out.push_str("<TIME>");
            }
        } else if fresh && has_shape(rest, "dd:dd:dd") {
            out.push_str("<TIME>");
            rest = after_time(rest);
        } else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    out
}

/// What follows a time in seconds and tenths, as in `0.3 s`.
fn seconds(text: &str) -> Option<&str> {
    let (whole, rest) = text.split_once('.')?;
    let is_number = !whole.is_empty() && whole.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && has_shape(rest, "d s") && !rest[3..].starts_with(char::is_alphanumeric)).then(|| &rest[3..])
}

/// What follows a number.
fn number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    (rest.len() < text.len()).then_some(rest)
}

/// Whether a text begins with 16 hexadecimal digits, as the fingerprint of a key and the beginning of a hash have them.
fn is_fingerprint(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.bytes().take_while(is_digit).count();
    digits == 16 && !text[16..].starts_with(|next: char| next.is_alphanumeric())
}

/// Whether a text begins with digits where the shape has a `d`, and with the shape's own characters elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |(index, wanted): (usize, u8)| match bytes.get(index) {
        Some(found) if wanted == b'd' => found.is_ascii_digit(),
        Some(found) => *found == wanted,
        None => false,
    };
    shape.bytes().enumerate().all(fits) && !bytes.get(shape.len()).is_some_and(u8::is_ascii_digit)
}

/// What follows a time, its fraction and its zone.
fn after_time(text: &str) -> &str {
    let mut rest = &text["dd:dd:dd".len()..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            rest = &fraction[digits..];
        }
    }
    if let Some(after) = rest.strip_prefix('Z') {
        return after;
    }
    if rest.starts_with(['+', '-']) && has_shape(&rest[1..], "dd:dd") {
        return &rest["+dd:dd".len()..];
    }
    rest
}

/// Whether an output is as expected; `...` alone on a line stands for any lines.
fn matches(wanted: &str, found: &str) -> bool {
    let wanted: Vec<&str> = wanted.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    // reached[i]: the expectation up to here can account for the first i lines.
    let mut reached = vec![false; found.len() + 1];
    reached[0] = true;
    for line in wanted {
        let mut next = vec![false; found.len() + 1];
        if line.trim() == "..." {
            let first = reached.iter().position(|reached| *reached);
            next.iter_mut().skip(first.unwrap_or(found.len() + 1)).for_each(|reached| *reached = true);
        } else {
            for (index, given) in found.iter().enumerate() {
                next[index + 1] = reached[index] && *given == line;
            }
        }
        reached = next;
    }
    reached[found.len()]
}

/// The lines of two texts side by side: what only the first has with `-`, what only the second has with `+`.
pub fn diff(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    // The longest common subsequence from every pair of positions on.
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = String::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push_str(&format!("  {}\n", old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            out.push_str(&format!("- {}\n", old[i]));
            i += 1;
        } else {
            out.push_str(&format!("+ {}\n", new[j]));
            j += 1;
        }
    }
    out
}

fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
