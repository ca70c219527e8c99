//! The Rust programs of the book and of the README, compiled and run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ExitCode, Stdio};

use crate::book;
use crate::examples::EXAMPLES;
use crate::support::{Project, python_or_skip};

/// The variable that says which program this binary is.
pub const ASKED: &str = "CUEBOOK_GUIDE_PROGRAM";

/// A program as its readers have it, in a module of its own.
macro_rules! programs {
    ($($name:ident)*) => {
        $(mod $name {
            #![allow(clippy::items_after_statements, reason = "pieces of programs are shown")]
            include!(concat!("../../../../docs/programs/", stringify!($name), ".rs"));

            pub fn start() -> Result<(), String> {
                Ended::ended(main())
            }

            use super::Ended;
        })*

        /// The programs: a name, what starts it, and its text.
        const PROGRAMS: &[Program] = &[$((
            stringify!($name),
            $name::start,
            include_str!(concat!("../../../../docs/programs/", stringify!($name), ".rs")),
        ),)*];
    };
}

programs! { letters lookup pieces }

/// What a `main` may return.
pub trait Ended {
    fn ended(self) -> Result<(), String>;
}

impl Ended for () {
    fn ended(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: std::fmt::Display> Ended for Result<(), E> {
    fn ended(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

/// A program: its name, what starts it, and its text.
pub type Program = (&'static str, fn() -> Result<(), String>, &'static str);

fn all() -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().chain(EXAMPLES)
}

/// Runs a program.
pub fn run(name: &str) -> ExitCode {
    let ended = match all().find(|program| program.0 == name) {
        Some((_, start, _)) => start(),
        None => Err(format!("there is no program {name}")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// What stands in for `cargo` in sessions: `cargo run` is the program that the folder is named after, or the example that is named.
pub fn stand_in() -> String {
    let this = std::env::current_exe().expect("a path");
    let this = this.display();
    format!(
        "#!/bin/sh\ntest \"$1\" = run || exit 101\nexport {ASKED}=$(basename \"$PWD\")\n\
         while test $# -gt 1; do test \"$1\" = --example && {ASKED}=$2; shift; done\nexec '{this}'\n"
    )
}

/// What the book and the README show is a piece of a program here, so the compiler has read it.
pub fn every_program_that_is_shown_is_compiled() {
    let mut shown =
        vec![("README.md".to_owned(), std::fs::read_to_string(book::root().join("README.md")).unwrap())];
    shown.extend(book::pages().into_iter().map(|page| (page.path, page.text)));
    let mut count = 0;
    for (page, text) in shown {
        for (info, block) in book::blocks(&text) {
            if info.split_whitespace().next() != Some("rust") {
                continue;
            }
            count += 1;
            let is_compiled = all().any(|(.., program)| holds(program, &block));
            assert!(
                is_compiled,
                "{page} shows Rust that is in none of docs/programs and of the examples:\n{block}"
            );
        }
    }
    assert!(count >= 5, "{count} pieces of Rust");
}

/// Whether a text has these lines one after the other, further to the right perhaps.
fn holds(text: &str, piece: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let piece: Vec<&str> = piece.lines().collect();
    ["", "    "].iter().any(|indent| {
        let fits = |(line, wanted): (&&str, &&str)| {
            if wanted.is_empty() { line.is_empty() } else { line.strip_prefix(indent) == Some(wanted) }
        };
        lines.windows(piece.len()).any(|window| window.iter().zip(&piece).all(fits))
    })
}

/// The pieces of programs that are shown do what is said of them.
pub fn the_pieces_of_programs_run() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    let begun = project.command("cuebook", project.path()).args(["init", "my-prompts"]).output().unwrap();
    assert!(begun.status.success());
    let support = "---\nmodel: {id: gpt-4o, provider: openai}\n---\nsystem:\nBe brief.\nuser[name=\"{{ customer }}\"]:\n\
                   {{ question }}\n";
    project.write("my-prompts/prompts/support.prompty", support);
    project.write("my-prompts/prompts/angles.prompty", "---\ntemplate: {format: angles}\n---\nDear <who>!\n");
    let card = "{{ name | initials }}{% if name is short %}, {{ team }}{% endif %}\n";
    project.write("my-prompts/prompts/card.prompty", card);
    project.write(
        "my-prompts/prompts/rules.sections.md",
        "# Rule\n\n```yaml section\ntype: shout\n```\n\nbe brief\n",
    );
    let this = std::env::current_exe().expect("a path");
    let output = project
        .command(this, project.path())
        .env(ASKED, "pieces")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    for wanted in [
        "You are a friendly assistant. You are talking to Ada",
        "user: [\"Where is order 7?\"]",
        "Dear Ada!",
        "AL, Tides",
        "# Rule\n\nBE BRIEF",
    ] {
        assert!(stdout.contains(wanted), "{wanted}\n{stdout}{stderr}");
    }
    assert!(stdout.contains("\nIt left on Monday.\n"), "{stdout}");
}

/// The web service answers with texts and errors, and takes no path for an id.
pub fn the_example_service_answers() {
    let project = Project::new();
    let mut service = project
        .command(std::env::current_exe().expect("a path"), project.path())
        .env(ASKED, "service")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    let ask = |path: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answers = [
        ask("/greet", "{\"name\": \"Ada\"}"),
        ask("/greet", "{\"nmae\": \"Ada\"}"),
        ask("/%2Fetc%2Fpasswd", "{}"),
        ask("/greet", "Ada"),
    ];
    service.kill().unwrap();
    service.wait().unwrap();
    for (answer, (status, text)) in
        answers.iter().zip([("200", "Hello Ada!"), ("422", "CB404"), ("422", "CB104"), ("400", "expected")])
    {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text), "{answer}");
    }
}
