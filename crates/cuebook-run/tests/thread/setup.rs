//! A project with directives, and a model that follows a script.

use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::store::{Filter, Record, Store};
use cuebook_run::{
    Event, ExecuteRequest, Finished, Ignore, Kind, Resume, Settings, ThreadId, ThreadRun, whole_log,
};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

use crate::support::{self, Fixture};

pub struct Setup {
    pub world: Fixture,
    pub mock: Mock,
}

impl Setup {
    pub fn new(script: Script) -> Setup {
        Setup::with(script, Settings::default(), |yaml| yaml)
    }

    /// With a provider file that is a little different.
    pub fn with(script: Script, settings: Settings, change: impl FnOnce(String) -> String) -> Setup {
        let world = Fixture::with(settings);
        let mock = Mock::start(script).unwrap();
        let folder = world.user().join(".ai/config/providers");
        std::fs::create_dir_all(&folder).unwrap();
        let yaml = mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", "");
        let yaml = format!("{yaml}retry: {{attempts: 1}}\n");
        std::fs::write(folder.join("mock.yaml"), change(yaml)).unwrap();
        Setup { world, mock }
    }

    /// A directive of the project: what stands in its metadata, and its body.
    pub fn directive(&self, name: &str, metadata: &str, body: &str) -> &Setup {
        self.extending(name, "", metadata, body)
    }

    /// One that extends another.
    pub fn extending(&self, name: &str, attributes: &str, metadata: &str, body: &str) -> &Setup {
        let (outputs, body) = body.split_once("---\n").unwrap_or(("", body));
        let text = format!(
            "# A directive\n\n```xml\n<directive name=\"{name}\" version=\"1.0.0\"{attributes}>\n  <metadata>\n    \
             <description>A test.</description>\n    <category>demo</category>\n    <model tier=\"fast\" />\n    {metadata}\n  \
             </metadata>\n{outputs}</directive>\n```\n\n{body}\n"
        );
        self.world.signed(&format!("directives/demo/{name}.md"), &text);
        self
    }

    /// A directive that may use the tools of the project and returns a word.
    pub fn worker(&self, metadata: &str) -> &Setup {
        let permissions = "<permissions><execute><tool>demo.*</tool></execute></permissions>";
        self.directive("work", &format!("{permissions}{metadata}"), &format!("{WORD}---\nWork."))
    }

    /// A Python function as a tool of the project.
    pub fn tool(&self, name: &str, code: &str) -> &Setup {
        let text = format!(
            "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"rye/core/runtimes/python/function\"\n\
             __category__ = \"demo\"\n__tool_description__ = \"A test\"\n\ndef execute(params, project_path):\n    {}\n",
            code.replace('\n', "\n    ")
        );
        self.world.signed(&format!("tools/demo/{name}.py"), &text);
        self
    }

    pub fn request(&self, id: &str, limits: Json) -> ExecuteRequest {
        let limit_overrides = limits.as_object().cloned().unwrap_or_default();
        ExecuteRequest { thread: true, limit_overrides, ..support::request("directive", id, json!({})) }
    }

    pub fn run(&self, id: &str) -> Json {
        self.run_within(id, json!({}))
    }

    pub fn run_within(&self, id: &str, limits: Json) -> Json {
        self.world.engine.answer(&self.request(id, limits), &Ignore).json
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.world.engine.threads(None).unwrap()
    }

    pub fn record(&self, id: &ThreadId) -> Record {
        self.store().record(id).unwrap().unwrap()
    }

    /// All threads, the oldest first.
    pub fn records(&self) -> Vec<Record> {
        let mut records = self.store().list(&Filter::default()).unwrap();
        records.reverse();
        records
    }

    pub fn log(&self, id: &ThreadId) -> Vec<Event> {
        whole_log(&*self.store(), &self.record(id)).unwrap()
    }

    pub fn payloads(&self, id: &ThreadId, kind: Kind) -> Vec<Json> {
        self.log(id).into_iter().filter(|event| event.kind == kind).map(|event| event.payload).collect()
    }

    pub fn resume(&self, id: &ThreadId, limits: Json) -> Finished {
        let how =
            Resume { limit_overrides: limits.as_object().cloned().unwrap_or_default(), ..Resume::default() };
        match self.world.engine.resume_with(None, None, id, &how, &Ignore).unwrap() {
            ThreadRun::Finished(finished) => *finished,
            ThreadRun::Detached { .. } => panic!("it runs elsewhere"),
        }
    }

    /// What the model was reported in a request, as text.
    pub fn reported(&self, request: usize) -> String {
        self.mock.requests()[request].body["messages"].to_string()
    }

    /// The results that the model was reported in its last request, by call.
    pub fn results(&self) -> Vec<(String, String)> {
        let body = self.mock.requests().pop().unwrap().body;
        let parts =
            body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
        let result = |part: &Json| {
            let text = match &part["content"] {
                Json::Array(parts) => {
                    parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>()
                }
                other => other.as_str().unwrap_or_default().to_owned(),
            };
            Some((part["tool_use_id"].as_str()?.to_owned(), text))
        };
        parts.flatten().filter(|part| part["type"] == "tool_result").filter_map(result).collect()
    }
}

/// An output that is a word.
pub const WORD: &str = "  <outputs><output name=\"word\" type=\"string\">A word</output></outputs>\n";

pub fn id_of(answer: &Json) -> ThreadId {
    ThreadId::known(answer["thread_id"].as_str().unwrap_or_else(|| panic!("{answer:#}")))
}

pub fn code_of(answer: &Json) -> &str {
    answer["metadata"]["error"]["code"].as_str().unwrap_or_default()
}

/// A call of a tool of the project.
pub fn call(id: &str, tool: &str, parameters: Json) -> Reply {
    Reply::call(id, "rye_execute", json!({"item_type": "tool", "item_id": tool, "parameters": parameters}))
        .usage(100, 10)
}

/// A call of a directive in a thread of its own.
pub fn spawn(id: &str, directive: &str, more: Json) -> Reply {
    let mut arguments =
        json!({"item_type": "directive", "item_id": directive, "parameters": {}, "thread": true});
    let Json::Object(more) = more else { panic!("{more}") };
    arguments.as_object_mut().unwrap().extend(more);
    Reply::call(id, "rye_execute", arguments).usage(100, 10)
}

pub fn returns(id: &str, word: &str) -> Reply {
    Reply::call(id, "directive_return", json!({"word": word})).usage(100, 10)
}

pub fn says(text: &str) -> Reply {
    Reply::text(text).usage(100, 10)
}

pub fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    replies.into_iter().fold(Script::new(), Script::reply)
}

pub fn map(json: Json) -> Map<String, Json> {
    json.as_object().unwrap().clone()
}

/// A stage whose provider has a key, and the key. It stands in a variable that every test has, because a test cannot set one
/// without disturbing the others.
pub fn with_key(script: Script) -> (Setup, String) {
    let stage = Setup::with(script, Settings::default(), |yaml| format!("{yaml}key: CARGO_MANIFEST_DIR\n"));
    (stage, std::env::var("CARGO_MANIFEST_DIR").unwrap())
}
