//! A scripted provider to try agents with, without a key and without a network.

use std::process::ExitCode;

use cuebook_mock::{Api, Mock, Reply, Script};

const USAGE: &str = "usage: cuebook-mock [--api openai-chat|openai-responses|anthropic|gemini] [--script FILE] [--at HOST:PORT]

FILE is JSON: a list of replies, as in [{\"text\": \"Hello.\", \"usage\": {\"input\": 10, \"output\": 3}}].
Without it every request is answered with a greeting.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut api = Api::OpenAiChat;
    let mut script = Script::new().reply(Reply::text("Hello from the mock server.").usage(10, 6)).forever();
    let mut address = "127.0.0.1:0".to_owned();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--api" => {
                let name = value()?;
                let found = Api::ALL.into_iter().find(|api| api.as_str() == name);
                api = found.ok_or_else(|| format!("there is no interface {name}\n{USAGE}"))?;
            }
            "--script" => {
                let file = value()?;
                let text = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
                let json = serde_json::from_slice(&text).map_err(|error| format!("{file}: {error}"))?;
                script = Script::from_json(&json).map_err(|why| format!("{file}: {why}"))?;
            }
            "--at" => address = value()?,
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            _ => return Err(format!("what is {word}?\n{USAGE}")),
        }
    }
    let mock = Mock::start_at(script, &address).map_err(|error| format!("{address}: {error}"))?;
    println!(
        "# Put this into .ai/config/providers/mock.yaml of your user space, and set MOCK_KEY to anything."
    );
    print!("{}", mock.provider_yaml(api));
    loop {
        std::thread::park();
    }
}
