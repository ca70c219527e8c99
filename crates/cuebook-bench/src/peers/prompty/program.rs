//! Prompty's Rust crates as a peer: one JSON request per line in, one JSON answer per line out.
//!
//! `{"load": {"file": path, "values": {…}}}` reads a file and answers with its text, its messages and the body of a request.
//! `{"time": "render"}`, `"messages"` and `"wire"` answer with the nanoseconds of one call, measured here, so that the pipe
//! costs nothing. `{"library": folder, "values": {…}}` reads and renders every file of a folder. `--once FILE VALUES` renders a file and ends.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use prompty::Agent;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TURN: Duration = Duration::from_millis(1);

struct Loaded {
    agent: Agent,
    values: Value,
}

impl Loaded {
    fn render(&self) -> Result<String> {
        Ok(block_on(prompty::render(&self.agent, &self.values))?)
    }

    fn messages(&self) -> Result<Vec<prompty::Message>> {
        Ok(block_on(prompty::prepare(&self.agent, Some(&self.values)))?)
    }

    fn wire(&self) -> Result<Vec<u8>> {
        let body = prompty_openai::build_chat_args(&self.agent, &self.messages()?)?;
        Ok(serde_json::to_vec(&body)?)
    }

    fn answer(&self) -> Result<Value> {
        let messages: Vec<Value> = self.messages()?.iter().map(prompty_openai::message_to_wire).collect();
        let wire: Value = serde_json::from_slice(&self.wire()?)?;
        Ok(json!({"text": self.render()?, "messages": messages, "wire": wire}))
    }

    fn time(&self, what: &str) -> Result<Value> {
        match what {
            "render" => turn(|| self.render()),
            "messages" => turn(|| self.messages()),
            "wire" => turn(|| self.wire()),
            other => Err(format!("there is no {other}").into()),
        }
    }
}

fn turn<T>(mut call: impl FnMut() -> Result<T>) -> Result<Value> {
    let started = Instant::now();
    let mut calls = 0;
    while started.elapsed() < TURN {
        // The clock is asked once for several calls, so that it hardly counts.
        for _ in 0..8 {
            black_box(call()?);
        }
        calls += 8;
    }
    Ok(json!(started.elapsed().as_nanos() as f64 / f64::from(calls)))
}

fn library(folder: &Path, values: &Value) -> Result<Value> {
    let started = Instant::now();
    let mut prompts = 0;
    for entry in std::fs::read_dir(folder)? {
        let agent = prompty::load(entry?.path())?;
        black_box(block_on(prompty::render(&agent, values))?);
        prompts += 1;
    }
    Ok(json!({"prompts": prompts, "nanoseconds": started.elapsed().as_nanos() as f64}))
}

fn load(file: &str, values: Value) -> Result<Loaded> {
    Ok(Loaded { agent: prompty::load(Path::new(file))?, values })
}

fn answer(line: &str, loaded: &mut Option<Loaded>) -> Result<Value> {
    let mut request: Value = serde_json::from_str(line)?;
    if let Some(folder) = request["library"].as_str() {
        return library(Path::new(folder), &request["values"]);
    }
    if let Some(what) = request["time"].as_str() {
        return loaded.as_ref().ok_or("nothing is loaded")?.time(what);
    }
    let values = request["load"]["values"].take();
    let file = request["load"]["file"].as_str().ok_or("no file")?;
    loaded.insert(load(file, values)?).answer()
}

fn main() -> Result<()> {
    prompty::register_defaults();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout().lock();
    if let [once, file, values] = &words[..]
        && once == "--once"
    {
        let text = load(file, serde_json::from_str(values)?)?.render()?;
        return Ok(out.write_all(text.as_bytes())?);
    }
    let mut loaded = None;
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&line?, &mut loaded).unwrap_or_else(|error| json!({"failed": error.to_string()}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
