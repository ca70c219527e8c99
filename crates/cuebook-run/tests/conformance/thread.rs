//! Whole threads against a model that says what the case has it say. The project of the cases is not with them: `demo/greet` is one
//! of their fixtures, and `demo/parent` is made from what their models received.
//!
//! What carries meaning is compared: what came of the thread, what it used, its limits and capabilities, how often the model was
//! asked, which results it was reported, the rows of registry and ledger. What we decided otherwise is put right here before that:
//! - An answer says `success` and, beside it, how it stands with the thread (decision 23). A result that the outputs replace is not
//!   there, where the reference has an empty text.
//! - The prompt is the listing of the seed (decision 21), so only the body of the directive is looked for in it.
//! - Results are reported as JSON and not as Python writes them; a directive without a thread answers as the seed says (decision 23).
//! - A turn is an answer. The reference counts requests that were not answered, too.
//! - A thread that was refused leaves no row, where the reference leaves one that never ran.
//! - A root's own spend is in the ledger; in the reference it is not.
//! - `0`, `false` and an empty text are values, so a return that has them is one.
//! - Nudges and refusals are in our own words; they must be for the same reason.
//! - The limit on calls in one answer is ours.

mod literal;

use crate::board::only;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::store::{Filter, Record};
use cuebook_run::{
    Engine, ExecuteRequest, Fence, Ignore, Kind, Money, Resume, Settings, ThreadId, whole_log,
};
use serde_json::{Value as Json, json};

use crate::compare;
use crate::support::Fixture;

/// A directive that may have others run.
const PARENT: &str = r#"# Parent

```xml
<directive name="parent" version="1.0.0">
  <metadata>
    <description>parent desc</description>
    <category>demo</category>
    <author>golden</author>
    <model tier="fast" />
    <permissions><execute><directive>demo/*</directive></execute></permissions>
  </metadata>
</directive>
```

Body of parent.
"#;

/// What a separate process gets from its parent.
const JOB: &str = "CUEBOOK_CONFORMANCE_THREAD";
/// The environment of processes is one for all cases.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Not a test: what the process of a thread does that no one waits for.
#[test]
fn carry_out() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [project, user, id] = job.split('\n').collect::<Vec<_>>()[..] else { panic!("{job}") };
    let spaces = Spaces::new(project.as_ref(), Some(user.as_ref()));
    let settings = Settings { fence: Fence::Off, ..Settings::default() };
    let engine = Engine::new(spaces).with_settings(settings);
    engine.carry_out(None, None, &ThreadId::known(id), &Resume::default(), &Ignore).unwrap();
}

/// A project, and a model that follows the script of a case.
struct Setup {
    world: Fixture,
    mock: Mock,
}

impl Setup {
    fn new(meta: &Json, script: Script) -> Setup {
        // The program that threads are handed to is this one, through a script that says what it is to do.
        let folder = tempfile::tempdir().unwrap().keep();
        let program = folder.join("cuebook");
        let world = Fixture::with(Settings { program: Some(program.clone()), ..Settings::default() });
        let (project, user) = (world.project(), world.user());
        let own = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\n{JOB}=\"{}\n{}\n$3\" exec '{}' --exact thread::carry_out --nocapture\n",
            project.display(),
            user.display(),
            own.display()
        );
        write_program(&program, &text);
        let mock = Mock::start(script).unwrap();
        let yaml =
            mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", "").replace("mock-model", "mock-1");
        let (start, _) = yaml.split_once("price:").unwrap();
        let yaml = format!("{start}price: {{input: 10, output: 50}}\nretry: {{base: 0.01, max: 0.02}}\n");
        let providers = world.user().join(".ai/config/providers");
        std::fs::create_dir_all(&providers).unwrap();
        std::fs::write(providers.join("mock.yaml"), yaml).unwrap();
        world.signed("directives/demo/greet.md", meta["fixtures"]["directive_ok"].as_str().unwrap());
        world.signed("directives/demo/parent.md", PARENT);
        Setup { world, mock }
    }

    fn rows(&self) -> Vec<Record> {
        let store = self.world.engine.threads(None).unwrap();
        let mut rows = store.list(&Filter::default()).unwrap();
        rows.reverse();
        rows
    }

    /// Runs what a case asks for, and waits for it where no one else does.
    fn run(&self, input: &Json) -> Json {
        let arguments = json!({
            "item_type": "directive", "item_id": input["item_id"], "parameters": input["parameters"],
            "project_path": self.world.project(),
        });
        let answer = match ExecuteRequest::from_json(&arguments) {
            Ok(request) => self.world.engine.answer(&request, &Ignore).json,
            Err(error) => json!({"status": "error", "error": error.diagnostic().message}),
        };
        let began = Instant::now();
        while self.rows().iter().any(|row| !row.status.is_at_rest())
            && began.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        answer
    }
}

#[cfg(unix)]
fn write_program(path: &PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(not(unix))]
fn write_program(path: &PathBuf, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// What a case may expect.
const EXPECTED: [&str; 7] = [
    "budget_rows",
    "event_types",
    "llm_calls",
    "messages_sent_last_call",
    "registry_rows",
    "response",
    "thread_json",
];

/// Runs a case; nothing if its directive is not with it.
pub fn run(meta: &Json, case: &Json) -> Option<Result<(), String>> {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let input = &case["input"];
    if let Some(operation) = input["operation"].as_str() {
        return Some(orchestrate(meta, input, operation, &case["expect"]["response"]));
    }
    if !matches!(input["item_id"].as_str()?, "demo/greet" | "demo/parent") {
        return None;
    }
    let entries = input["llm_script"].as_array().cloned().unwrap_or_default();
    let stage = Setup::new(meta, script(&entries));
    let answer = stage.run(input);
    let checked = Case { stage: &stage, expect: &case["expect"], entries: &entries, answer: &answer }.check();
    Some(checked.and_then(|()| only(&case["expect"], &EXPECTED)))
}

/// An operation of the orchestrator on a thread that has run.
fn orchestrate(meta: &Json, input: &Json, operation: &str, wanted: &Json) -> Result<(), String> {
    let given = json!({"item_type": "tool", "item_id": "rye/agent/threads/directive_return", "parameters": {"greeting": "Hi"}});
    let stage = Setup::new(meta, script(&[json!([{"id": "c1", "name": "rye_execute", "input": given}])]));
    let ran = stage.run(&json!({"item_id": "demo/greet", "parameters": {"user": "Ann", "thread": true}}));
    let mut parameters = input.clone();
    match operation {
        "wait_threads" | "aggregate_results" => parameters["thread_ids"] = json!([ran["thread_id"]]),
        "list_active" => {}
        _ => parameters["thread_id"] = ran["thread_id"].clone(),
    }
    let answer = stage.world.tool("rye/agent/threads/orchestrator", parameters);
    let wanted = timeless(wanted);
    let found = timeless(&answer);
    for name in ["status", "type", "item_id"] {
        compare::includes(&wanted[name], &found[name])?;
    }
    match operation {
        "get_status" | "get_chain" | "wait_threads" | "cancel_thread" => {
            compare::includes(&wanted["data"], &found["data"])
        }
        // The others tell the same in rows of our own.
        _ => compare::includes(&wanted["data"]["success"], &found["data"]["success"]),
    }
}

/// The replies of a case. The last one is given for ever.
fn script(entries: &[Json]) -> Script {
    let reply = |entry: &Json| {
        if let Some(status) = entry.as_u64() {
            return Reply::error(u16::try_from(status).unwrap(), "no");
        }
        let parts = match entry {
            Json::Array(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        let mut reply = Reply::default();
        for part in &parts {
            reply = match (part.as_str().or(part["text"].as_str()), part["name"].as_str()) {
                (Some(text), _) => reply.and_text(text),
                (_, Some(name)) => {
                    reply.and_call(part["id"].as_str().unwrap_or_default(), name, part["input"].clone())
                }
                _ => reply,
            };
        }
        reply.usage(100, 21)
    };
    entries.iter().fold(Script::new(), |script, entry| script.reply(reply(entry))).forever()
}

/// A value without what differs from run to run.
fn timeless(value: &Json) -> Json {
    match value {
        Json::String(text) => {
            let mut reported = text.replace("<<EPOCH_MS>>", "#");
            // The ids of threads end in a moment.
            for name in ["greet-", "parent-"] {
                let mut from = 0;
                while let Some(at) = reported[from..].find(name).map(|at| from + at + name.len()) {
                    let digits =
                        reported[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(reported.len() - at);
                    if digits >= 12 {
                        reported.replace_range(at..at + digits, "#");
                    }
                    from = at;
                }
            }
            reported.into()
        }
        Json::Array(items) => items.iter().map(timeless).collect(),
        Json::Object(members) => {
            let mut reported = serde_json::Map::new();
            for (name, member) in members {
                let is_volatile = matches!(name.as_str(), "elapsed_seconds" | "_status" | "metadata");
                if !is_volatile && member != "<<VOLATILE>>" {
                    reported.insert(timeless(&json!(name)).as_str().unwrap().to_owned(), timeless(member));
                }
            }
            Json::Object(reported)
        }
        // Sums are counted in whole billionths.
        Json::Number(number) if number.is_f64() => Money::from_units(number.as_f64().unwrap()).to_json(),
        other => other.clone(),
    }
}

struct Case<'c> {
    stage: &'c Setup,
    expect: &'c Json,
    entries: &'c [Json],
    answer: &'c Json,
}

impl Case<'_> {
    fn check(&self) -> Result<(), String> {
        if let Some(given) = self.returned_first()
            && self.answer["outputs"] == given
        {
            // The reference takes these values for missing ones.
            return Ok(());
        }
        let part = |name: &str, outcome: Result<(), String>| outcome.map_err(|why| format!("{name}: {why}"));
        part("response", self.response()).map_err(|why| format!("{why}: {:#}", self.answer))?;
        part("thread", self.thread())?;
        part("rows", self.rows())?;
        part("calls", self.calls())?;
        part("messages", self.messages())
    }

    /// What a call returns, if the reference takes a value of it for none.
    fn returned_first(&self) -> Option<Json> {
        let falsy =
            |value: &Json| matches!(value, Json::Bool(false)) || value == "" || value.as_f64() == Some(0.0);
        let calls = self.entries.iter().filter_map(Json::as_array).flatten().map(|part| &part["input"]);
        let mut returns = calls.filter(|call| call["item_id"] == "rye/agent/threads/directive_return");
        let given = &returns
            .find(|call| call["parameters"].as_object().is_some_and(|given| given.values().any(falsy)))?["parameters"];
        Some(given.clone())
    }

    /// Requests that the model did not answer.
    fn unanswered(&self) -> u64 {
        let asked = self.expect["llm_calls"].as_u64().unwrap_or(0);
        (0..asked).filter(|at| self.entry(*at).is_some_and(Json::is_number)).count() as u64
    }

    fn entry(&self, at: u64) -> Option<&Json> {
        self.entries.get(at as usize).or(self.entries.last())
    }

    /// Whether the model never answers, although it might have: how often that is tried is another matter.
    fn never_answers(&self) -> bool {
        self.entries.last().and_then(Json::as_u64).is_some_and(|status| status == 429 || status >= 500)
    }

    /// Whether a limit was reached. The reference calls for a user who could decide, and there is no user; in its rows the thread
    /// has failed.
    fn escalates(&self) -> bool {
        let said = self.expect["response"]["error"].as_str().unwrap_or_default();
        (said.contains("Escalation") || said.contains("Limit exceeded")) && !self.never_answers()
    }

    /// How it stands with a thread of the reference.
    fn stands(&self, row: &mut Json) {
        if self.escalates() && row["parent_id"].is_null() && row.get("status").is_some() {
            row["status"] = json!("suspended");
        }
    }

    fn response(&self) -> Result<(), String> {
        let (wanted, found) = (timeless(&self.expect["response"]), timeless(self.answer));
        if wanted["status"] == "error" {
            compare::equals(&wanted["status"], &found["status"])?;
            let (wanted_text, text) =
                (wanted["error"].as_str().unwrap_or_default(), found["error"].as_str().unwrap_or_default());
            if self.escalates() {
                // A limit that was reached is reported by its name, and the thread waits.
                let reported = json!([found["thread_status"], self.answer["metadata"]["error"]["code"]]);
                return compare::equals(&json!(["suspended", "CB716"]), &reported);
            }
            // What a provider answered is reported in our own words, with the number that it answered with.
            let by_provider = wanted_text.starts_with("Provider ");
            let same = match self.entries.iter().find_map(Json::as_u64) {
                Some(status) if by_provider || self.never_answers() => text.contains(&status.to_string()),
                _ => text.replace("limits: calls, ", "limits: ") == wanted_text,
            };
            if !same {
                return Err(format!("{text}, wanted {wanted_text}"));
            }
            return match wanted.get("declared_inputs") {
                Some(declared) => compare::equals(declared, &found["declared_inputs"]),
                None => Ok(()),
            };
        }
        compare::equals(&self.answer_of(wanted), &self.answer_of(found))
    }

    /// What an answer says of a thread, in one form for both.
    fn answer_of(&self, mut answer: Json) -> Json {
        let Json::Object(members) = &mut answer else { return answer };
        if let Some(status) = members.shift_remove("thread_status") {
            members.insert("status".into(), status);
        }
        if members.contains_key("outputs") && members.get("result").is_some_and(|result| result == "") {
            members.shift_remove("result");
        }
        members.shift_remove("pid");
        self.fewer_turns(&mut answer["cost"]);
        answer
    }

    /// Takes the requests that were not answered off the turns of the reference.
    fn fewer_turns(&self, cost: &mut Json) {
        let asked = self.unanswered();
        let Some(turns) = cost["turns"].as_u64() else { return };
        if asked > 0
            && turns >= asked
            && self.stage.rows().first().is_some_and(|row| u64::from(row.cost.turns) != turns)
        {
            cost["turns"] = (turns - asked).into();
        }
    }

    /// What the thread was started with, and what it returned.
    fn thread(&self) -> Result<(), String> {
        let wanted = &self.expect["thread_json"];
        let rows = self.stage.rows();
        let Some(row) = rows.first() else {
            return if wanted.is_null() { Ok(()) } else { Err("no thread began".into()) };
        };
        if wanted.is_null() {
            return Err("a thread began".into());
        }
        let store = self.stage.world.engine.threads(None).unwrap();
        let log = whole_log(&*store, row).map_err(|error| error.to_string())?;
        let mut first = log[0].payload.clone();
        if let Some(limits) = first["limits"].as_object_mut() {
            limits.remove("calls");
        }
        let result = row.result.clone().unwrap_or_default();
        let mut found = json!({
            "thread_id": row.id.as_str(), "directive": row.prompt, "status": row.status.as_str(), "model": row.model,
            "cost": row.cost.to_json(), "limits": first["limits"], "capabilities": first["capabilities"],
        });
        if !result["outputs"].is_null() {
            found["outputs"] = result["outputs"].clone();
        }
        let mut wanted = timeless(wanted);
        self.stands(&mut wanted);
        self.fewer_turns(&mut wanted["cost"]);
        compare::equals(&wanted, &timeless(&found))?;
        let count = |kind: Kind| log.iter().filter(|event| event.kind == kind).count();
        for kind in [Kind::CognitionOut, Kind::Return] {
            let wanted = self.expect["event_types"].as_array().into_iter().flatten();
            let wanted = wanted.filter(|event| *event == kind.as_str()).count();
            if wanted != count(kind) {
                return Err(format!("{} events {kind}, wanted {wanted}", count(kind)));
            }
        }
        Ok(())
    }

    fn rows(&self) -> Result<(), String> {
        let store = self.stage.world.engine.threads(None).unwrap();
        let (mut found, mut accounts) = (Vec::new(), Vec::new());
        for row in self.stage.rows() {
            found.push(json!({"directive": row.prompt, "parent_id": row.parent.as_ref().map(ThreadId::as_str), "status": row.status.as_str()}));
            let account = store.account(&row.id).unwrap().unwrap();
            // The reference counts what children spent, and what a child spent itself.
            let spent =
                if row.parent.is_some() { account.spent + account.children } else { account.children };
            accounts.push(json!({
                "parent_thread_id": row.parent.as_ref().map(ThreadId::as_str), "actual_spend": spent.to_json(),
                "max_spend": account.limit.to_json(),
            }));
            if account.settled != row.status.is_settled()
                || account.reserved != Money::ZERO
                || account.held != Money::ZERO
            {
                return Err(format!("the account is not closed: {}", account.to_json()));
            }
        }
        let some = |rows: &Json, names: [&str; 3], began: &dyn Fn(&Json) -> bool| -> Json {
            let row = |row: &Json| {
                names.iter().map(|name| ((*name).to_owned(), row[*name].clone())).collect::<Json>()
            };
            rows.as_array().into_iter().flatten().filter(|row| began(row)).map(row).collect()
        };
        let began = |row: &Json| !row["result"].is_null() || row["status"] == "running";
        let mut wanted = some(&self.expect["registry_rows"], ["directive", "parent_id", "status"], &began);
        wanted.as_array_mut().into_iter().flatten().for_each(|row| self.stands(row));
        compare::equals(&timeless(&wanted), &timeless(&json!(found)))?;
        let wanted =
            some(&self.expect["budget_rows"], ["parent_thread_id", "actual_spend", "max_spend"], &|_| true);
        compare::equals(&timeless(&wanted), &timeless(&json!(accounts)))
    }

    fn calls(&self) -> Result<(), String> {
        let (wanted, found) =
            (self.expect["llm_calls"].as_u64().unwrap_or(0), self.stage.mock.requests().len() as u64);
        match self.never_answers() {
            true if found > 1 => Ok(()),
            _ if wanted == found => Ok(()),
            _ => Err(format!("the model was asked {found} times, wanted {wanted}")),
        }
    }

    /// What the model was reported when it was asked for the last time.
    fn messages(&self) -> Result<(), String> {
        let wanted = timeless(&self.expect["messages_sent_last_call"]);
        let Some(last) = self.stage.mock.requests().pop() else {
            return if wanted.is_null() { Ok(()) } else { Err("the model was not asked".into()) };
        };
        let found = timeless(&last.body["messages"]);
        let (wanted, found) = (blocks(&wanted), blocks(&found));
        if wanted.len() != found.len() {
            return Err(format!("{} blocks, wanted {}: {found:#?}", found.len(), wanted.len()));
        }
        for (at, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            let differs = || format!("block {at}: {found}, wanted {wanted}");
            compare::equals(&json!([wanted["role"], wanted["type"]]), &json!([found["role"], found["type"]]))
                .map_err(|_| differs())?;
            let same = match wanted["type"].as_str() {
                Some("text") if at == 0 => {
                    found["text"].as_str().unwrap_or_default().contains(body(&wanted["text"]))
                }
                // Nudges are in our own words.
                Some("text") if wanted["role"] == "user" => {
                    found["text"].as_str().unwrap_or_default().contains("directive_return")
                        || !wanted["text"].as_str().unwrap_or_default().contains("directive_return")
                }
                Some("tool_result") => self.reported(&wanted["content"], &found["content"]),
                _ => {
                    wanted["text"] == found["text"]
                        && wanted["input"] == found["input"]
                        && wanted["name"] == found["name"]
                }
            };
            if !same || (!wanted["tool_use_id"].is_null() && wanted["tool_use_id"] != found["tool_use_id"]) {
                return Err(differs());
            }
        }
        Ok(())
    }

    /// Whether a result says the same as that of the reference.
    fn reported(&self, wanted: &Json, found: &Json) -> bool {
        let text = |content: &Json| match content {
            Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let (wanted, found) = (text(wanted), text(found));
        let Some(wanted) = literal::parse(&wanted) else {
            // It refuses the same fields.
            let Some((_, fields)) = wanted.split_once("output fields: ") else { return wanted == found };
            let fields = fields.split(". ").next().unwrap_or_default();
            return found.contains("Call directive_return again")
                && fields.split(", ").all(|field| found.contains(field));
        };
        let Ok(found) = serde_json::from_str::<Json>(&found) else { return false };
        let (wanted, found) = (timeless(&wanted), timeless(&found));
        if wanted["status"] == "error" && wanted["data"]["success"] == false {
            // The reference answers with the tool that runs threads, we with the directive.
            return wanted["error"] == found["error"] && found["status"] == "error";
        }
        if wanted["type"] == "tool" && wanted["item_id"].as_str().is_some_and(|id| id.starts_with("rye/")) {
            // The tools that come with us have answers of their own.
            let common = |reported: &Json| {
                json!([
                    reported["status"],
                    reported["type"],
                    reported["item_id"],
                    reported["data"]["success"]
                ])
            };
            return common(&wanted) == common(&found);
        }
        if let (Some(directions), Some(body)) = (wanted["your_directions"].as_str(), found["body"].as_str()) {
            return directions.trim() == body.trim();
        }
        compare::equals(&self.answer_of(wanted), &self.answer_of(found)).is_ok()
    }
}

/// The parts of all messages, each with its role.
fn blocks(messages: &Json) -> Vec<Json> {
    let mut blocks = Vec::new();
    for message in messages.as_array().into_iter().flatten() {
        let parts = match &message["content"] {
            Json::Array(parts) => parts.clone(),
            text => vec![json!({"type": "text", "text": text})],
        };
        blocks.extend(parts.into_iter().map(|mut part| {
            part["role"] = message["role"].clone();
            part
        }));
    }
    blocks
}

/// The body of the directive in what a model of the reference was reported first.
fn body(reported: &Json) -> &str {
    let reported = reported.as_str().unwrap_or_default();
    let body = reported.rsplit_once("</permissions>\n").map_or(reported, |(_, rest)| rest);
    let body = body.split("\nWhen you have completed").next().unwrap_or(body);
    body.split("\n</directive>").next().unwrap_or(body)
}
