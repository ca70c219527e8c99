//! Spans in, files and lines out: every file is read back.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use cuebook_trace::{Backend, Console, Frame, Recorder, TraceLimits, Tracy, is_ours};
use serde_json::{Value, json};
use tracing::field::Empty;
use tracing::{Span, debug_span, info_span};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

fn subscriber(
    recorder: Recorder,
) -> impl tracing::Subscriber + Send + Sync + for<'l> tracing_subscriber::registry::LookupSpan<'l> {
    Registry::default().with(recorder.with_filter(filter_fn(is_ours)))
}

fn recording(recorder: Recorder, run: impl FnOnce()) {
    tracing::subscriber::with_default(subscriber(recorder), run);
}

fn span(name: &str) -> Span {
    macro_rules! one {
        ($name:literal) => {
            info_span!(
                target: "cuebook", $name, signature = concat!("cuebook.", $name), prompt = Empty, inputs = Empty,
                result = Empty, error = Empty, error.type = Empty, gen_ai.request.model = Empty,
                gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty, api_key = Empty, note = Empty,
            )
        };
    }
    match name {
        "run" => one!("run"),
        "render" => one!("render"),
        "execute" => one!("execute"),
        _ => one!("turn"),
    }
}

/// The files of a folder, as text, by name.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn only_trace(folder: &Path) -> Value {
    let files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    serde_json::from_str(&files[0].1).unwrap()
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Keeps the traces that it gets.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Frame>>>);

impl Backend for Kept {
    fn name(&self) -> String {
        "a test".to_owned()
    }

    fn finished(&self, root: &Frame) -> io::Result<()> {
        self.0.lock().unwrap().push(root.clone());
        Ok(())
    }
}

#[test]
fn a_run_is_one_file_with_ordered_frames_and_usage() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("made/on/demand");
    recording(Recorder::new().with(Tracy::new(&traces)), || {
        let run = span("run");
        run.record("prompt", "team/greeting");
        run.record("inputs", r#"{"name":"Ada"}"#);
        let _run = run.enter();
        {
            let render = span("render");
            let _render = render.enter();
            render.record("result", "Hello Ada");
        }
        for tokens in [10u64, 20] {
            let execute = span("execute");
            let _execute = execute.enter();
            execute.record("gen_ai.request.model", "gpt-4o");
            execute.record("gen_ai.usage.input_tokens", tokens);
            execute.record("gen_ai.usage.output_tokens", 3i64);
        }
        run.record("result", r#"{"answer":42}"#);
    });

    let files = files(&traces);
    assert_eq!(files.len(), 1, "no temporary file stays: {files:?}");
    assert!(files[0].0.starts_with("team_greeting.20") && files[0].0.ends_with("Z.tracy"), "{}", files[0].0);
    let document: Value = serde_json::from_str(&files[0].1).unwrap();
    assert_eq!(document["runtime"], "cuebook");
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    let trace = &document["trace"];
    assert_eq!(trace["name"], "run");
    assert_eq!(trace["signature"], "cuebook.run");
    assert_eq!(trace["inputs"], json!({"name": "Ada"}));
    assert_eq!(trace["result"], json!({"answer": 42}));
    assert_eq!(trace["prompt"], "team/greeting");
    assert_eq!(trace["__usage"], json!({"prompt_tokens": 30, "completion_tokens": 6, "total_tokens": 36}));
    let names: Vec<&str> =
        trace["__frames"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["render", "execute", "execute"]);
    assert_eq!(trace["__frames"][0]["result"], "Hello Ada");
    assert!(trace["__frames"][0].get("__usage").is_none());
    assert_eq!(trace["__frames"][2]["__usage"]["prompt_tokens"], 20);
    let keys: Vec<&str> = trace.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["name", "__time", "signature", "inputs", "result", "prompt", "__frames", "__usage"]);
}

#[test]
fn times_are_iso_and_durations_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    recording(Recorder::new().with(Tracy::new(folder.path())), || {
        let _span = span("render").entered();
        std::thread::sleep(std::time::Duration::from_millis(20));
    });
    let time = &only_trace(folder.path())["trace"]["__time"];
    let read = |name: &str| time[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(time["start"].as_str().unwrap().ends_with('Z'));
    let between = read("start").duration_until(read("end")).as_micros() as f64 / 1000.0;
    let duration = time["duration"].as_f64().unwrap();
    assert!(duration >= 20.0 && (duration - between).abs() < 0.01, "{time}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_a_trace() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    recording(Recorder::new().with(Tracy::new(folder.path())), || drop(span("render")));
    let entry = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_secret_that_is_an_input_appears_nowhere_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let console = Shared::default();
    recording(Recorder::new().with(Tracy::new(folder.path())).with(Console::to(console.clone())), || {
        let run = span("run");
        let _run = run.enter();
        {
            // The child tells the secret before its parent says that it is one.
            let render = span("render");
            render.record("result", "Log in with violet-sky-42 and wait.");
            render.record("note", r#"{"nested":"{\"say\":\"violet-sky-42\"}"}"#);
        }
        run.record("inputs", r#"{"city":"Oslo","settings":{"apiKey":"violet-sky-42"},"max_tokens":100}"#);
        run.record("api_key", "another-one-7");
        run.record("error", r#"{"type":"AuthError","message":"violet-sky-42 was refused"}"#);
    });
    let (_, text) = files(folder.path()).remove(0);
    for reported in [text.as_str(), &console.text()] {
        assert!(!reported.contains("violet-sky-42") && !reported.contains("another-one-7"), "{reported}");
    }
    let trace = &serde_json::from_str::<Value>(&text).unwrap()["trace"];
    assert_eq!(
        trace["inputs"],
        json!({"city": "Oslo", "settings": {"apiKey": "[REDACTED]"}, "max_tokens": 100})
    );
    assert_eq!(trace["api_key"], "[REDACTED]");
    assert_eq!(trace["__frames"][0]["result"], "Log in with [REDACTED] and wait.");
    assert_eq!(trace["result"]["message"], "[REDACTED] was refused");
}

#[test]
fn an_error_is_the_result_of_its_frame() {
    use cuebook::{Code, Diagnostic, Error, ErrorKind};
    let folder = tempfile::tempdir().unwrap();
    let error = Error::new(ErrorKind::Io, Diagnostic::new(Code::WriteFailed, "the disk is full"));
    recording(Recorder::new().with(Tracy::new(folder.path())), || {
        let run = span("run");
        let _run = run.enter();
        span("render").record("error", error.to_json().to_string());
        let execute = span("execute");
        execute.record("error", "no answer");
        execute.record("error.type", "timeout");
    });
    let trace = &only_trace(folder.path())["trace"];
    let frames = &trace["__frames"];
    assert_eq!(
        frames[0]["result"],
        json!({"exception": ErrorKind::Io.name(), "message": "the disk is full"})
    );
    assert_eq!(frames[0]["error"]["error"]["code"], Code::WriteFailed.as_str());
    assert_eq!(frames[1]["result"], json!({"exception": "timeout", "message": "no answer"}));
    assert!(trace.get("result").is_none());
}

#[test]
fn traces_with_one_name_and_time_never_replace_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let frame = {
        let kept = Kept::default();
        recording(Recorder::new().with(kept.clone()), || drop(span("render")));
        kept.0.lock().unwrap().remove(0)
    };
    let tracy = Tracy::new(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..5).for_each(|_| drop(tracy.write(&frame).unwrap())));
        }
    });
    let files = files(folder.path());
    assert_eq!(files.len(), 40);
    assert!(files.iter().any(|(name, _)| name.ends_with("Z-40.tracy")));
    assert!(
        files
            .iter()
            .all(|(name, text)| name.ends_with(".tracy") && serde_json::from_str::<Value>(text).is_ok())
    );
}

#[test]
fn roots_on_many_threads_are_separate_files() {
    let folder = tempfile::tempdir().unwrap();
    let dispatch = tracing::Dispatch::new(subscriber(Recorder::new().with(Tracy::new(folder.path()))));
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let dispatch = dispatch.clone();
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for _ in 0..10 {
                        let run = span("run");
                        run.record("note", thread);
                        let _run = run.enter();
                        span("render").record("note", thread);
                    }
                });
            });
        }
    });
    let files = files(folder.path());
    assert_eq!(files.len(), 60);
    for (_, text) in files {
        let document: Value = serde_json::from_str(&text).unwrap();
        let frames = document["trace"]["__frames"].as_array().unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0]["note"], document["trace"]["note"]);
    }
}

#[test]
fn a_span_belongs_to_its_parent_on_whatever_thread_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let dispatch = tracing::Dispatch::new(subscriber(Recorder::new().with(Tracy::new(folder.path()))));
    tracing::dispatcher::with_default(&dispatch, || {
        let run = span("run");
        let children: Vec<_> = (0..4)
            .map(|n: u64| {
                let (dispatch, run) = (dispatch.clone(), run.clone());
                std::thread::spawn(move || {
                    tracing::dispatcher::with_default(&dispatch, || {
                        let child = run.in_scope(|| span("execute"));
                        child.record("gen_ai.usage.input_tokens", n);
                    });
                })
            })
            .collect();
        drop(run);
        children.into_iter().for_each(|child| child.join().unwrap());
    });
    let trace = &only_trace(folder.path())["trace"];
    assert_eq!(trace["__frames"].as_array().unwrap().len(), 4);
    assert_eq!(trace["__usage"]["prompt_tokens"], 6);
}

#[test]
fn an_unwritable_folder_warns_once_and_fails_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "not a folder").unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let kept = Kept::default();
    let recorder = Recorder::new()
        .with(Tracy::new(file.join("traces")))
        .with(kept.clone())
        .on_warning(move |warning| heard.lock().unwrap().push(warning.to_owned()));
    recording(recorder, || (0..3).for_each(|_| drop(span("render"))));
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("a-file") && warnings[0].contains("the run continues"), "{warnings:?}");
    assert_eq!(kept.0.lock().unwrap().len(), 3, "the other backend got all of them");
}

#[test]
fn a_backend_that_panics_fails_nothing() {
    struct Broken;
    impl Backend for Broken {
        fn name(&self) -> String {
            "broken".to_owned()
        }
        fn finished(&self, _: &Frame) -> io::Result<()> {
            std::panic::resume_unwind(Box::new("broken"))
        }
    }
    let warnings = Arc::new(Mutex::new(0));
    let heard = Arc::clone(&warnings);
    let kept = Kept::default();
    let recorder =
        Recorder::new().with(Broken).with(kept.clone()).on_warning(move |_| *heard.lock().unwrap() += 1);
    recording(recorder, || (0..2).for_each(|_| drop(span("render"))));
    assert_eq!((*warnings.lock().unwrap(), kept.0.lock().unwrap().len()), (1, 2));
}

#[test]
fn large_values_are_cut_with_a_mark() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TraceLimits { depth: 3, frames: 6, value_bytes: 40, trace_bytes: 1000 };
    recording(Recorder::new().limits(limits).with(Tracy::new(folder.path())), || {
        let run = span("run");
        run.record("note", "long ".repeat(1000));
        let _one = run.enter();
        {
            let _two = span("turn").entered();
            let _three = span("turn").entered();
            let _four = span("turn").entered();
            let _five = span("turn").entered();
        }
        (0..10).for_each(|_| drop(span("render")));
    });
    let trace = &only_trace(folder.path())["trace"];
    assert_eq!(trace["note"], format!("{}… [cut: 40 of 5000 bytes]", "long ".repeat(8)));
    let frames = trace["__frames"].as_array().unwrap();
    assert_eq!(frames.len(), 2, "a turn, and one render; the deep ones count too");
    assert_eq!(frames[0]["__frames"][0]["__cut"], "2 frames left out");
    assert_eq!(trace["__cut"], "9 frames left out");
}

#[test]
fn a_trace_has_a_limit_of_all_its_values_together() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TraceLimits { trace_bytes: 10_000, ..TraceLimits::default() };
    recording(Recorder::new().limits(limits).with(Tracy::new(folder.path())), || {
        let _run = span("run").entered();
        for _ in 0..100 {
            span("render").record("note", "x".repeat(1000));
        }
    });
    let (_, text) = files(folder.path()).remove(0);
    assert_eq!(text.matches(&"x".repeat(1000)).count(), 9);
    assert!(text.contains("… [cut: 0 of 1000 bytes]"));
}

#[test]
fn foreign_spans_are_not_traced_and_do_not_split_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    recording(Recorder::new().with(Tracy::new(folder.path())), || {
        let _server = info_span!(target: "my_server", "request", password = "outer").entered();
        let _run = span("run").entered();
        let _tool = info_span!(target: "cuebookish", "tool", password = "inner").entered();
        let _load = debug_span!(target: "cuebook::prompt", "load").entered();
        tracing::info!(target: "cuebook", "an event is no frame");
    });
    let trace = &only_trace(folder.path())["trace"];
    assert_eq!(trace["name"], "run");
    assert_eq!(trace["__frames"].as_array().unwrap().len(), 1);
    assert_eq!(trace["__frames"][0]["name"], "load");
}

#[test]
fn usage_of_a_frame_wins_over_the_sum_of_its_children() {
    let kept = Kept::default();
    recording(Recorder::new().with(kept.clone()), || {
        let run = span("run");
        let _run = run.enter();
        let answer = r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":9}}"#;
        for _ in 0..2 {
            span("execute").record("result", answer);
        }
        run.record("gen_ai.usage.input_tokens", 10u64);
        run.record("gen_ai.usage.output_tokens", 4u64);
    });
    let kept = kept.0.lock().unwrap();
    let usage = kept[0].usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.total), (10, 4, 14));
    assert_eq!(kept[0].frames[0].usage.unwrap().total, 9);
}

#[test]
fn the_console_shows_a_tree() {
    let out = Shared::default();
    recording(Recorder::new().with(Console::to(out.clone())), || {
        let run = span("run");
        run.record("prompt", "greeting");
        let _run = run.enter();
        span("render").record("inputs", r#"{"name":"Ada"}"#);
        let execute = span("execute");
        execute.record("gen_ai.usage.input_tokens", 12u64);
        execute.record("note", "two\nlines");
        execute.record("error", r#"{"type":"ModelError","message":"no answer"}"#);
    });
    let text = out.text();
    let digits = |line: &str| line.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect::<String>();
    let lines: Vec<String> = text.lines().map(|line| digits(line).replace("ms", "µs")).collect();
    assert_eq!(
        lines,
        [
            "run greeting µs  → tokens",
            "  render µs  inputs={\"name\":\"Ada\"}",
            "  execute µs  → tokens  note=\"two\\nlines\" ✗ ModelError: no answer",
        ],
        "{text}"
    );
    assert!(text.contains("12→0 tokens"), "{text}");
}
