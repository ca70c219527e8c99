//! Start a thread, follow it, let it reach a limit, and resume it. A scripted model answers.

use std::fs;
use std::sync::Arc;

use cuebook::items::Spaces;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::{Engine, RunRequest, Status, Update};

#[derive(Debug, serde::Deserialize)]
struct City {
    city: String,
}

const CITY: &str = "---\nmodel: mock-model\noutputs:\n  - {name: city, kind: string, required: true}\n---\nuser:\nName a city.\n";

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (project, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::create_dir_all(project.path().join("prompts"))?;
    fs::write(project.path().join("prompts/city.prompty"), CITY)?;
    // The first answer has the wrong form, so the model is asked again.
    let script = Script::new().reply(Reply::text("Dunedin")).reply(Reply::text("{\"city\": \"Dunedin\"}"));
    let model = Mock::start(script)?;
    fs::create_dir_all(user.path().join(".ai/config/providers"))?;
    let provider = model.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", "");
    fs::write(user.path().join(".ai/config/providers/mock.yaml"), provider)?;

    let engine = Arc::new(Engine::new(Spaces::new(project.path(), Some(user.path()))));
    let thread = engine.start(&engine.book()?, RunRequest::new("city").limit("turns", 1))?;
    let id = thread.id().clone();
    for update in thread.updates() {
        if let Update::Text(text) = update.update {
            println!("model: {text}");
        }
    }
    let stopped = thread.join()?;
    println!(
        "{}: {}",
        stopped.status,
        stopped.error.map(|error| error.code().to_string()).unwrap_or_default()
    );
    assert_eq!(stopped.status, Status::Suspended);

    let thread = engine.resume(&id).limit("turns", 5).start()?;
    let events = thread.events().count();
    let City { city } = thread.join()?.completed()?.outputs_as()?;
    println!("{city}, after {} more events", if events > 0 { "some" } else { "no" });
    Ok(())
}
