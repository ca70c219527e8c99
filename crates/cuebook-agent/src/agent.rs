//! An agent in memory: functions for tools, any function or provider for the model, and nothing that is kept.

mod run;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::Duration;

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, ToolCall};
use cuebook::prompt::{Model, Property, Tools};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use self::run::Run;
use super::model::{self, AskModel};
use super::{
    AgentEvent, Cancel, Ended, Events, Guard, ModelFailure, Observer, Performed, Question, Start, Steering,
    Step,
};
use cuebook_run::provider::Provider;

/// How often a model is asked in one run, unless the caller says otherwise.
const MAX_TURNS: u32 = 10;
/// How many calls one answer may make, unless the caller says otherwise.
const MAX_CALLS: usize = 64;
/// How often a model is asked the same before it is given up.
const ATTEMPTS: u32 = 3;

type Function<'a> = Box<dyn Fn(&ToolCall, &Map<String, Json>) -> Performed + Sync + 'a>;
type Compaction<'a> = Box<dyn Fn(&[Message]) -> Result<String, String> + Sync + 'a>;
type Effect<'a> = Box<dyn Fn(&Json) -> Result<(), String> + Sync + 'a>;

/// An agent: a model, tools that it may call, and conditions for its runs.
///
/// ```
/// use cuebook::chat::reply::{Answer, Reply, ToolCall};
/// use cuebook::chat::{Message, Role};
/// use cuebook_agent::{Agent, Guard, Permit};
/// use serde_json::json;
///
/// // A model that asks for the weather once, and then repeats what it was reported.
/// let agent = Agent::new(|question| {
///     let last = question.messages.last().map(|message| message.texts().collect::<String>()).unwrap_or_default();
///     let reply = match question.turn {
///         0 => Reply::ToolCalls {
///             calls: vec![ToolCall {
///                 id: "call-1".into(),
///                 name: "get_weather".into(),
///                 arguments: r#"{"city": "Oslo"}"#.into(),
///             }],
///             text: None,
///         },
///         _ => Reply::Text(format!("It is {last}.")),
///     };
///     Ok(Answer { reply, thinking: None, usage: None, finish: None, model: None, id: None, provider_state: Default::default() })
/// })
/// .tool("get_weather", |arguments| match arguments["city"].as_str() {
///     Some("Oslo") => Ok("cold"),
///     _ => Err("it is unknown this city"),
/// })
/// .guard(Guard::new().tool(|name, _| match name {
///     "get_weather" => Permit::Allowed,
///     _ => Permit::Denied("only the weather".into()),
/// }));
///
/// let ended = agent.run(vec![Message::text(Role::User, "How is the weather in Oslo?")]);
/// assert_eq!(ended.outcome.unwrap(), json!("It is cold."));
/// assert_eq!(ended.turns, 2);
/// assert_eq!(ended.conversation.len(), 4);
/// ```
pub struct Agent<'a> {
    ask_model: AskModel<'a>,
    tools: IndexMap<String, Function<'a>>,
    bindings: HashMap<String, Vec<(String, String)>>,
    inputs: Map<String, Json>,
    guards: Vec<Guard<'a>>,
    steering: Steering,
    cancel: Cancel,
    budget: Option<usize>,
    compaction: Option<Compaction<'a>>,
    most_turns: u32,
    most_calls: usize,
    attempts: u32,
    pause: Box<dyn Fn(u32) -> Duration + Sync + 'a>,
    concurrent: bool,
    alone: HashSet<String>,
    observers: Vec<Box<dyn Observer + 'a>>,
    effects: Vec<(String, Effect<'a>)>,
    model: Option<String>,
    prompt: Option<String>,
}

impl<'a> Agent<'a> {
    /// An agent that asks with this function.
    pub fn new(ask: impl Fn(&Question<'_>) -> Result<Answer, ModelFailure> + Sync + 'a) -> Agent<'a> {
        Agent::with(Box::new(ask))
    }

    /// An agent that asks a provider's model, which gets these tools and outputs. The functions behind the tools are
    /// still to be [given](Agent::tool); their bindings are known.
    pub fn of(
        provider: &'a dyn Provider,
        model: &'a Model,
        tools: &'a Tools,
        outputs: &'a [Property],
    ) -> Agent<'a> {
        let mut agent = Agent::with(model::asks(provider, model, tools, outputs));
        agent.model = Some(model.id.clone());
        for tool in tools {
            for (parameter, input) in &tool.bindings {
                agent = agent.bind(&tool.name, parameter, input);
            }
        }
        agent
    }

    fn with(ask_model: AskModel<'a>) -> Agent<'a> {
        Agent {
            ask_model,
            tools: IndexMap::new(),
            bindings: HashMap::new(),
            inputs: Map::new(),
            guards: Vec::new(),
            steering: Steering::new(),
            cancel: Cancel::new(),
            budget: None,
            compaction: None,
            most_turns: MAX_TURNS,
            most_calls: MAX_CALLS,
            attempts: ATTEMPTS,
            pause: Box::new(model::pause),
            concurrent: true,
            alone: HashSet::new(),
            observers: Vec::new(),
            effects: Vec::new(),
            model: None,
            prompt: None,
        }
    }

    /// Gives it a tool: a function of the arguments that answers with a text, or says why it cannot. A failure is sent to the model,
    /// and so is a panic.
    #[must_use]
    pub fn tool<T: Into<String>, E: Display>(
        self,
        name: impl Into<String>,
        function: impl Fn(&Map<String, Json>) -> Result<T, E> + Sync + 'a,
    ) -> Agent<'a> {
        self.tool_with(name, move |call, arguments| match function(arguments) {
            Ok(text) => Performed::answer(text),
            Err(why) => Performed::failed(&call.name, &why.to_string()),
        })
    }

    /// Gives it a tool that sees the whole call, and may end the run, replace the prompt, or not know what it did.
    #[must_use]
    pub fn tool_with(
        mut self,
        name: impl Into<String>,
        function: impl Fn(&ToolCall, &Map<String, Json>) -> Performed + Sync + 'a,
    ) -> Agent<'a> {
        self.tools.insert(name.into(), Box::new(function));
        self
    }

    /// Fills a parameter of a tool with an [input](Agent::inputs), whatever the model writes there.
    #[must_use]
    pub fn bind(mut self, tool: &str, parameter: &str, input: &str) -> Agent<'a> {
        let bindings = self.bindings.entry(tool.to_owned()).or_default();
        bindings.push((parameter.to_owned(), input.to_owned()));
        self
    }

    /// The inputs that bindings take their values from.
    #[must_use]
    pub fn inputs(mut self, inputs: Map<String, Json>) -> Agent<'a> {
        self.inputs = inputs;
        self
    }

    /// Adds a guard that looks at questions, answers or calls. With several guards all must agree.
    #[must_use]
    pub fn guard(mut self, guard: Guard<'a>) -> Agent<'a> {
        self.guards.push(guard);
        self
    }

    /// Where messages for the model come from while it runs.
    #[must_use]
    pub fn steering(mut self, steering: &Steering) -> Agent<'a> {
        self.steering = steering.clone();
        self
    }

    /// What stops it.
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Agent<'a> {
        self.cancel = cancel.clone();
        self
    }

    /// How many characters the conversation may have. What is too much is summed up before the model is asked. See [`super::fit`].
    #[must_use]
    pub fn budget(mut self, characters: usize) -> Agent<'a> {
        self.budget = Some(characters);
        self
    }

    /// Sums up what leaves the conversation. If that fails, or says nothing, it is summed up in a simple way. See
    /// [`super::summary_request`] for what to ask a model.
    #[must_use]
    pub fn compaction(
        mut self,
        sum_up: impl Fn(&[Message]) -> Result<String, String> + Sync + 'a,
    ) -> Agent<'a> {
        self.compaction = Some(Box::new(sum_up));
        self
    }

    /// How often the model is asked in one run; ten times unless this says otherwise.
    #[must_use]
    pub fn most_turns(mut self, turns: u32) -> Agent<'a> {
        self.most_turns = turns;
        self
    }

    /// Lets one answer make at most so many calls: 64 unless this is called. An answer with more of them ends the run.
    pub fn most_calls(mut self, calls: usize) -> Agent<'a> {
        self.most_calls = calls;
        self
    }

    /// How often the model is asked the same if it does not answer; three times unless this says otherwise.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Agent<'a> {
        self.attempts = attempts;
        self
    }

    /// The pause before the next attempt; seconds that double unless this says otherwise.
    #[must_use]
    pub fn pause(mut self, pause: impl Fn(u32) -> Duration + Sync + 'a) -> Agent<'a> {
        self.pause = Box::new(pause);
        self
    }

    /// Whether the calls of one answer are made at the same time. They are, unless this says otherwise.
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Agent<'a> {
        self.concurrent = concurrent;
        self
    }

    /// Has calls of a tool made one after another, before the others of the same answer. A tool that replaces the prompt needs this.
    #[must_use]
    pub fn alone(mut self, tool: impl Into<String>) -> Agent<'a> {
        self.alone.insert(tool.into());
        self
    }

    /// Adds a listener for every step.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + 'a) -> Agent<'a> {
        self.observers.push(Box::new(observer));
        self
    }

    /// Has a function hear what happens, as people would be shown it.
    #[must_use]
    pub fn on_event(self, notify: impl Fn(&AgentEvent<'_>) + Sync + 'a) -> Agent<'a> {
        self.observe(Events::new(notify))
    }

    /// Does something with the result of each run that is done. What comes of it is noted, and changes nothing.
    #[must_use]
    pub fn after(
        mut self,
        name: impl Into<String>,
        effect: impl Fn(&Json) -> Result<(), String> + Sync + 'a,
    ) -> Agent<'a> {
        self.effects.push((name.into(), Box::new(effect)));
        self
    }

    /// The id of its prompt, for tracers.
    #[must_use]
    pub fn prompt(mut self, id: impl Into<String>) -> Agent<'a> {
        self.prompt = Some(id.into());
        self
    }

    /// Runs until the model is done. The conversation comes back in every case, so that nothing that was said is lost.
    pub fn run(&self, messages: Vec<Message>) -> Ended {
        self.resume(Start { conversation: messages, ..Start::default() })
    }

    /// Goes on from where a run stopped.
    pub fn resume(&self, start: Start) -> Ended {
        let ended = super::run(&Run::new(self), start);
        if let Ok(result) = &ended.outcome {
            for (name, effect) in &self.effects {
                self.notify(&Step::After { name, outcome: None });
                let outcome = effect(result);
                self.notify(&Step::After { name, outcome: Some(&outcome) });
            }
        }
        ended
    }
}
