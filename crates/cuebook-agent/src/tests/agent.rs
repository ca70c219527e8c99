//! What an agent can be given, and what observers make of its runs.

use super::*;

#[test]
fn a_tool_without_a_function_stops_the_run() {
    let made = AtomicUsize::new(0);
    let agent = calling(vec![call("a", "look", "{}"), call("b", "lokk", "{}")]).tool("look", |_| {
        made.fetch_add(1, Ordering::Relaxed);
        Ok::<_, String>("seen")
    });
    let ended = agent.run(question());
    let Err(Halt::Failed(error)) = ended.outcome else { panic!("it must fail") };
    assert_eq!(error.code(), Code::NoHandler);
    assert_eq!(error.diagnostic().message, "Tool not registered: lokk");
    assert!(error.diagnostic().hint.as_deref().is_some_and(|hint| hint.contains("look")));
    assert_eq!(made.load(Ordering::Relaxed), 0);
}

#[test]
fn a_model_that_never_ends_comes_to_its_limit() {
    let agent = Agent::new(|_| Ok(calls(&[call("a", "look", "{}")])))
        .tool("look", |_| Ok::<_, String>("seen"))
        .most_turns(4);
    let ended = agent.run(question());
    let Err(Halt::Suspended(error)) = ended.outcome else { panic!("it must stop") };
    assert_eq!(error.diagnostic().message, "Agent loop exceeded 4 iterations");
    assert_eq!(ended.turns, 4);
    assert_eq!(ended.conversation.len(), 2 + 4 * 2);
}

#[test]
fn an_empty_answer_is_retried() {
    let asked = AtomicUsize::new(0);
    let agent = Agent::new(|question| {
        assert_eq!(question.attempt as usize, asked.fetch_add(1, Ordering::Relaxed));
        Err(ModelFailure::accident("the line is dead"))
    })
    .pause(|_| Duration::ZERO);
    let ended = agent.run(question());
    let Err(Halt::Failed(error)) = ended.outcome else { panic!("it must fail") };
    assert_eq!(error.diagnostic().message, "LLM call failed after 3 retries: the line is dead");
    assert_eq!(error.field("messages").unwrap().as_array().unwrap().len(), 2);
    assert_eq!(ended.conversation, question());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn an_answer_that_may_have_come_is_not_asked_for_again() {
    let asked = AtomicUsize::new(0);
    let journal = Journal::new(&question());
    let agent = Agent::new(|_| {
        asked.fetch_add(1, Ordering::Relaxed);
        Err(ModelFailure { indeterminate: true, ..ModelFailure::accident("the line broke while it spoke") })
    })
    .observe(&journal);
    let ended = agent.run(question());
    assert!(matches!(ended.outcome, Err(Halt::Indeterminate(_))));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(journal.status(), TurnStatus::ReconciliationRequired);
    assert!(journal.checkpoint().unwrap().start().is_none());
}

#[test]
fn a_call_with_an_unknown_effect_waits_for_a_decision() {
    let journal = Journal::new(&question());
    let wanted = vec![call("a", "look", "{}"), call("b", "pay", "{}"), call("c", "look", "{}")];
    let made = Mutex::new(Vec::new());
    let agent = |journal| {
        calling(wanted.clone())
            .concurrent(false)
            .tool_with("look", |call, _| {
                made.lock().unwrap().push(call.id.clone());
                Performed::answer(format!("seen {}", call.id))
            })
            .tool_with("pay", |call, _| {
                made.lock().unwrap().push(call.id.clone());
                Performed { unknown: true, ..Performed::failed("pay", "no answer") }
            })
            .observe(journal)
    };
    let ended = agent(&journal).run(question());
    assert!(matches!(ended.outcome, Err(Halt::Indeterminate(_))));
    // The known result is kept, and the other one is not reported.
    assert_eq!(texts(&ended.conversation)[3..], ["seen a"]);

    let mut checkpoint = journal.checkpoint().unwrap();
    assert_eq!(checkpoint.unknown.as_ref().map(|call| call.id.as_str()), Some("b"));
    assert!(checkpoint.start().is_none());
    checkpoint.settle("paid once", false);
    let start = checkpoint.start().unwrap();
    let journal = Journal::after(checkpoint);
    let ended = agent(&journal).resume(start);
    assert_eq!(texts(&ended.conversation)[3..], ["seen a", "paid once", "seen c", "seen c"]);
    assert_eq!(*made.lock().unwrap(), ["a", "b", "c"]);
    assert_eq!(journal.status(), TurnStatus::Success);
}

#[test]
fn a_run_resumes_from_each_checkpoint_without_repeats() {
    /// Keeps every checkpoint that there was.
    struct All<'j>(&'j Journal, Mutex<Vec<Checkpoint>>);
    impl Observer for All<'_> {
        fn step(&self, step: &Step<'_>) {
            self.0.step(step);
            let mut kept = self.1.lock().unwrap();
            let before = kept.last().map(|last| last.sequence);
            kept.extend(self.0.checkpoint().filter(|it| before != Some(it.sequence)));
        }
    }
    let made = Mutex::new(Vec::new());
    let agent = || {
        calling(vec![call("a", "look", "{}"), call("b", "look", "{}")]).concurrent(false).tool_with(
            "look",
            |call, _| {
                made.lock().unwrap().push(call.id.clone());
                Performed::answer(format!("seen {}", call.id))
            },
        )
    };
    let journal = Journal::new(&question());
    let all = All(&journal, Mutex::default());
    let whole = agent().observe(&all).run(question());
    let checkpoints = all.1.into_inner().unwrap();
    assert_eq!(checkpoints.len(), 5, "two answers, two calls, one round");
    // The last one is behind the end.
    for checkpoint in &checkpoints[..4] {
        let done: Vec<String> = checkpoint.settled.keys().cloned().collect();
        made.lock().unwrap().clear();
        let ended = agent().resume(checkpoint.start().unwrap());
        assert_eq!(ended.conversation, whole.conversation);
        assert!(made.lock().unwrap().iter().all(|id| !done.contains(id)));
    }
}

#[test]
fn a_budget_summarises_the_oldest_messages() {
    let seen: Mutex<Vec<Json>> = Mutex::default();
    let mut conversation = question();
    conversation.extend((0..20).map(|n| Message::text(Role::User, format!("{n} {}", "word ".repeat(50)))));
    let agent = |sum_up: Option<Result<String, String>>| {
        let agent =
            Agent::new(|question| Ok(answer(Reply::Text(texts(question.messages)[1].clone())))).budget(2000);
        match sum_up {
            Some(outcome) => agent.compaction(move |_| outcome.clone()),
            None => agent,
        }
    };
    let run = |sum_up| {
        seen.lock().unwrap().clear();
        kinds(&seen, agent(sum_up)).run(conversation.clone()).outcome.unwrap().as_str().unwrap().to_owned()
    };
    assert!(run(None).starts_with("[Context summary: User asked: well?\nUser asked: 0 word"));
    assert_eq!(names(&seen), ["messages_updated", "done"]);

    assert_eq!(run(Some(Ok("much was said".into()))), "[Context summary: much was said]");
    assert_eq!(names(&seen), ["compaction_start", "compaction_complete", "messages_updated", "done"]);
    let complete = seen.lock().unwrap()[1]["data"].clone();
    // One message is the summary.
    let (removed, remaining) =
        (complete["removed"].as_u64().unwrap(), complete["remaining"].as_u64().unwrap());
    assert_eq!(removed + remaining, 22 + 1);

    for failure in [Err("no model".to_owned()), Ok("  ".to_owned())] {
        assert!(run(Some(failure)).starts_with("[Context summary: User asked: well?"));
        assert_eq!(names(&seen), ["compaction_start", "compaction_failed", "messages_updated", "done"]);
    }
}

#[test]
fn an_answer_that_a_guard_denies_is_no_part_of_the_conversation() {
    let agent = Agent::new(|_| Ok(answer(Reply::Text("the password is swordfish".into()))))
        .guard(Guard::new())
        .guard(Guard::new().output(|message| match message.texts().any(|text| text.contains("password")) {
            true => Permit::Denied("it tells a secret".into()),
            false => Permit::Allowed,
        }));
    let ended = agent.run(question());
    let Err(Halt::Failed(error)) = ended.outcome else { panic!("it must fail") };
    assert_eq!(error.diagnostic().message, "Output guardrail denied: it tells a secret");
    assert_eq!((ended.turns, ended.conversation), (1, question()));
}

#[test]
fn bound_arguments_are_what_guards_and_tools_see() {
    let inputs = json!({"me": "ada"}).as_object().cloned().unwrap();
    let agent = calling(vec![call("a", "mail", r#"{"from": "eve", "to": "bob"}"#)])
        .bind("mail", "from", "me")
        .inputs(inputs)
        .guard(Guard::new().tool(|_, arguments| match arguments["from"] == "ada" {
            true => Permit::Allowed,
            false => Permit::Denied("who is that?".into()),
        }))
        .tool("mail", |arguments| Ok::<_, String>(format!("from {}", arguments["from"])));
    assert_eq!(agent.run(question()).outcome.unwrap(), json!(r#"from "ada""#));
}

#[test]
fn a_pause_ends_when_the_caller_stops() {
    let cancel = Cancel::new();
    let agent = Agent::new(|_| Err(ModelFailure::accident("busy")))
        .pause(|_| Duration::from_secs(30))
        .cancel(&cancel);
    let begun = Instant::now();
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| agent.run(question()));
        std::thread::sleep(Duration::from_millis(50));
        cancel.cancel();
        run.join().unwrap()
    });
    assert!(matches!(ended.outcome, Err(Halt::Cancelled(_))));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_refusal_is_an_error_with_the_words_of_the_model() {
    let agent = Agent::new(|_| Ok(answer(Reply::Refusal("not that".into()))));
    let Err(Halt::Failed(error)) = agent.run(question()).outcome else { panic!("it must fail") };
    assert_eq!(error.diagnostic().message, "Model refused: not that");
}

#[test]
fn pieces_of_an_answer_are_reported_as_they_come() {
    let seen = Mutex::default();
    let agent = Agent::new(|question| {
        question.listener.chunk(&Chunk::Thinking("hm".into()));
        question.listener.chunk(&Chunk::Text("yes".into()));
        Ok(answer(Reply::Text("yes".into())))
    });
    kinds(&seen, agent).run(question());
    assert_eq!(names(&seen), ["thinking", "token", "done"]);
}

#[test]
fn actions_after_a_run_do_not_change_its_result() {
    let journal = Journal::new(&question());
    let agent =
        Agent::new(|_| Ok(answer(Reply::Structured { value: json!({"a": 1}), raw: "{\"a\":1}".into() })))
            .after("remember", |result| Err(format!("cannot remember {result}")))
            .observe(&journal);
    assert_eq!(agent.run(question()).outcome.unwrap(), json!({"a": 1}));
    assert_eq!(journal.events()[5..], ["turn_committed", "post_commit_started", "post_commit_failed"]);
}

#[test]
fn the_stable_prefix_ends_at_a_summary() {
    let mut conversation = question();
    conversation.extend((0..9).map(|_| Message::text(Role::User, "word ".repeat(50))));
    let journal = Journal::new(&conversation);
    let agent = Agent::new(|_| Ok(answer(Reply::Text("ok".into())))).budget(1000).observe(&journal);
    agent.run(conversation);
    assert_eq!(journal.snapshots()[0].stable, 1, "the message of the system");
}

#[test]
fn lines_of_a_run_that_does_not_end_well_say_why() {
    let cancelled = Cancel::new();
    cancelled.cancel();
    let replay = Replay::new("s", "t");
    Agent::new(|_| Ok(answer(Reply::Text("ok".into())))).cancel(&cancelled).observe(&replay).run(question());
    assert_eq!(
        replay.lines(),
        [
            "session:session_start:s:t",
            "turn:turn_start:0",
            "turn:cancelled:0",
            "turn:turn_end:0:cancelled",
            "session:session_end:s:t:cancelled",
            "summary:s:cancelled:turns=1:checkpoints=0",
        ]
    );
    let replay = Replay::new("s", "t");
    let agent = Agent::new(|_| Ok(calls(&[call("exec-1", "add", "{}")])))
        .tool("add", |_| Err::<String, _>("overflow"))
        .most_turns(1)
        .observe(&replay);
    agent.run(question());
    assert_eq!(
        replay.lines()[4..],
        [
            "session:checkpoint_created:s:t",
            "turn:permission_requested:0:exec-1-permission",
            "turn:permission_completed:0:true",
            "turn:tool_execution_start:0:add",
            "turn:tool_execution_complete:0:add:false:exception",
            "turn:tool_result:0:add:false:exception",
            "turn:messages_updated:0",
            "turn:error:1:max_iterations",
            "turn:turn_end:1:error",
            "session:session_end:s:t:error",
            "summary:s:error:turns=1:checkpoints=1",
        ]
    );
}

#[test]
fn a_provider_is_called_once_and_stopped() {
    use cuebook_run::provider::{Category, Listener, Provider, ProviderFailure, ProviderRequest};

    /// Answers with a call once, and then fails in a way that may have cost something.
    struct Broken(AtomicUsize, Cancel);
    impl Provider for Broken {
        fn ask(
            &self,
            ask: &ProviderRequest<'_>,
            listener: &dyn Listener,
        ) -> Result<Answer, Box<ProviderFailure>> {
            assert_eq!((ask.model.id.as_str(), ask.tools.len()), ("small", 1));
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                return Ok(calls(&[call("a", "mail", r#"{"from": "eve"}"#)]));
            }
            self.1.cancel();
            assert!(listener.cancelled());
            let error = Error::new(
                cuebook::ErrorKind::Reply,
                cuebook::Diagnostic::new(Code::NoAnswer, "the line was cut"),
            );
            let (category, partial_text) = (Category::Cancelled, String::new());
            let charge = cuebook_run::provider::Charge::Question;
            Err(Box::new(ProviderFailure { error, category, partial_text, indeterminate: true, charge }))
        }
    }
    let cancel = Cancel::new();
    let provider = Broken(AtomicUsize::new(0), cancel.clone());
    let model = cuebook::prompt::Model { id: "small".into(), ..Default::default() };
    let tools = cuebook::prompt::Tools::from(vec![cuebook::prompt::Tool {
        name: "mail".into(),
        description: None,
        kind: cuebook::prompt::ToolKind::Schema { parameters: json!({"type": "object"}) },
        bindings: [("from".to_owned(), "me".to_owned())].into_iter().collect(),
        extra: Map::new(),
        place: None,
    }]);
    let agent = Agent::of(&provider, &model, &tools, &[])
        .inputs(json!({"me": "ada"}).as_object().cloned().unwrap())
        .cancel(&cancel)
        .tool("mail", |arguments| Ok::<_, String>(format!("from {}", arguments["from"])));
    let ended = agent.run(question());
    assert_eq!(last(&ended.conversation), r#"from "ada""#);
    assert!(
        matches!(ended.outcome, Err(Halt::Cancelled(_))),
        "whoever wants to stop need not find out anything"
    );
    assert_eq!(provider.0.load(Ordering::Relaxed), 2);
}
