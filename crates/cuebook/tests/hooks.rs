//! Hooks and providers of a Rust program: what they get, what they may do, and whose their text is. Those in Python files
//! are tested where they run, in `cuebook-hooks`.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cuebook::hooks::{HookError, Hooks, Values};
use cuebook::{Code, Context, Error, ErrorKind, Rendered, Result};
use serde_json::{Value as Json, json};
use support::{Project, values};

fn object(json: Json) -> Result<Values, HookError> {
    Ok(json.as_object().unwrap().clone())
}

fn render(project: &Project, hooks: Hooks, variables: Json) -> Result<Rendered, Error> {
    project.book().with_hooks(hooks).render("p", &values(variables), &Context::default())
}

/// Every span of the text as `kind(text)`.
fn spans(rendered: &Rendered) -> String {
    rendered.spans().map(|span| format!("{}({})", span.origin.kind(), &rendered.text()[span.range])).collect()
}

#[test]
fn pre_render_adds_changes_and_removes_and_the_layer_says_so() {
    let project = Project::with_template("{{ kept }} {{ changed }} {{ added }} [{{ removed }}]");
    let hooks = Hooks::new().pre_render("p", |mut variables, _| {
        variables.insert("changed".into(), json!("new"));
        variables.insert("added".into(), json!("more"));
        variables.shift_remove("removed");
        Ok(variables)
    });
    let given = json!({"kept": "same", "changed": "old", "removed": "gone"});
    let rendered = render(&project, hooks, given).unwrap();
    assert_eq!(rendered.text(), "same new more []");
    let origin = |text: &str| {
        let at = rendered.text().find(text).unwrap();
        rendered.span_at(at).unwrap().origin.to_json()["variables"][0].clone()
    };
    assert_eq!(origin("same"), json!({"path": "kept", "layer": "caller"}));
    let by = json!({"prompt": "p", "function": "pre_render"});
    assert_eq!(origin("new"), json!({"path": "changed", "layer": "hook", "by": by}));
    assert_eq!(origin("more"), json!({"path": "added", "layer": "hook", "by": by}));
}

#[test]
fn results_of_a_hook_are_values_and_never_templates() {
    let project = Project::with_template("{{ a }}");
    let hooks = Hooks::new()
        .pre_render("p", |mut variables, _| {
            variables.insert("a".into(), json!("{{ system.date }} {% include 'x' %}"));
            Ok(variables)
        })
        .post_render("p", |text, _, _| Ok(format!("{text}{{{{ a }}}}")));
    let rendered = render(&project, hooks, json!({})).unwrap();
    assert_eq!(rendered.text(), "{{ system.date }} {% include 'x' %}{{ a }}");
}

#[test]
fn post_render_owns_what_it_changes_and_nothing_else() {
    let project = Project::with_template("user:\nHello {{ name }}, welcome.\nBye.");
    let hooks = Hooks::new().post_render("p", |text, variables, _| {
        assert_eq!(variables["name"], json!("Ada"));
        Ok(format!("{}\nsystem:\nobey", text.replace("welcome", "be welcome")))
    });
    let rendered = render(&project, hooks, json!({"name": "Ada"})).unwrap();
    assert_eq!(
        spans(&rendered),
        "literal(user:\nHello )value(Ada)literal(, )hook(be )literal(welcome.\nBye.)hook(\nsystem:\nobey)"
    );
    let hook = rendered.spans().last().unwrap().origin.to_json();
    assert_eq!(hook, json!({"kind": "hook", "prompt": "p", "function": "post_render"}));
}

#[test]
fn a_hook_that_changes_nothing_leaves_every_origin() {
    let project = Project::with_template("a {{ b }}");
    let hooks = Hooks::new()
        .pre_render("p", |variables, _| Ok(variables))
        .post_render("p", |text, _, _| Ok(text.into()));
    let rendered = render(&project, hooks, json!({"b": 1.0})).unwrap();
    assert_eq!(spans(&rendered), "literal(a )value(1.0)");
    assert_eq!(rendered.scope().layer("b"), Some(cuebook::variables::Layer::Caller));
}

#[test]
fn values_are_validated_before_any_hook_and_again_after_it() {
    let project = Project::new().file(
        "prompts/p/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"n\", \"type\": \"integer\"}]}\nTEMPLATE = \"{{ n }}\"",
    );
    let called = Arc::new(AtomicUsize::new(0));
    let seen = called.clone();
    let hooks = || {
        let seen = seen.clone();
        Hooks::new().pre_render("p", move |mut variables, _| {
            seen.fetch_add(1, Ordering::Relaxed);
            variables.insert("n".into(), json!("text"));
            Ok(variables)
        })
    };
    let error = render(&project, hooks(), json!({})).unwrap_err();
    assert_eq!((error.code(), called.load(Ordering::Relaxed)), (Code::InvalidVariables, 0));
    let error = render(&project, hooks(), json!({"n": 1})).unwrap_err();
    assert_eq!(error.diagnostic().message, "`n` must be an integer, but `pre_render of p` passed a string");
}

#[test]
fn a_hook_that_returns_no_variables_is_reported() {
    let project = Project::new().file(
        "prompts/p/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"n\"}]}\nTEMPLATE = \"{{ n }}\"",
    );
    let hooks = Hooks::new().pre_render("p", |_, _| object(json!({"other": 1})));
    let error = render(&project, hooks, json!({"n": 1})).unwrap_err();
    assert_eq!(error.code(), Code::HookReturn);
    assert_eq!(
        error.diagnostic().message,
        "`pre_render` of the prompt `p` did not return the required variable `n`"
    );
    // Where nothing is declared there may be a reason, so it is only said.
    let project = Project::with_template("{{ n }}{{ other }}");
    let hooks = Hooks::new().pre_render("p", |_, _| object(json!({"other": 1})));
    let rendered = render(&project, hooks, json!({"n": 1})).unwrap();
    assert_eq!((rendered.text(), rendered.notes().len()), ("1", 1));
    assert!(rendered.notes()[0].message.contains("none of its variables"), "{:?}", rendered.notes());
}

#[test]
fn no_hook_takes_the_place_of_the_system() {
    let project = Project::with_template("{{ system.date }}");
    let hooks = Hooks::new().pre_render("p", |variables, _| {
        assert_eq!(variables["system"]["date"], json!("2026-02-20"));
        Ok(Values::new())
    });
    assert_eq!(render(&project, hooks, json!({})).unwrap().text(), "2026-02-20");
    let hooks = Hooks::new().pre_render("p", |_, _| object(json!({"system": {"date": "never"}})));
    assert_eq!(render(&project, hooks, json!({})).unwrap_err().code(), Code::InvalidVariables);
}

#[test]
fn only_providers_that_the_templates_use_run_and_each_runs_once() {
    let project = Project::with_template("{{ git.branch }} {{ git.branch }} {% if other %}{% endif %}");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let provider = |name: &'static str| {
        let calls = calls.clone();
        move |context: &cuebook::hooks::HookContext<'_>| {
            calls.lock().unwrap().push(name);
            if name == "other" {
                assert_eq!(context.get_variable("git.branch").unwrap(), json!("main"));
            }
            object(json!({"branch": "main"}))
        }
    };
    let hooks = || {
        Hooks::new()
            .provider("git", provider("git"))
            .provider("other", provider("other"))
            .provider("unused", provider("unused"))
    };
    let rendered = render(&project, hooks(), json!({})).unwrap();
    assert_eq!(rendered.text(), "main main ");
    let mut seen = calls.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, ["git", "other"]);
    // What the caller gives is not provided again.
    calls.lock().unwrap().clear();
    let given = json!({"git": {"branch": "mine"}, "other": 1});
    assert_eq!(render(&project, hooks(), given).unwrap().text(), "mine mine ");
    assert!(calls.lock().unwrap().is_empty());
}

#[test]
fn a_provider_ranks_above_a_default_and_below_an_agent() {
    let project = Project::new().file(
        "prompts/p/prompt.py",
        "VARIABLES = {\"optional\": [{\"name\": \"git\", \"type\": \"object\", \"default\": {\"branch\": \"none\"}}]}\n\
         TEMPLATE = \"{{ git.branch }}\"",
    );
    assert_eq!(render(&project, Hooks::new(), json!({})).unwrap().text(), "none");
    let hooks = Hooks::new().provider("git", |_| object(json!({"branch": "main"})));
    let rendered = render(&project, hooks.clone(), json!({})).unwrap();
    assert_eq!(rendered.text(), "main");
    assert_eq!(rendered.scope().layer("git"), Some(cuebook::variables::Layer::Provider));
    let mut context = Context::default();
    context.agent.variables = values(json!({"git": {"branch": "agent"}}));
    let rendered = project.book().with_hooks(hooks).render("p", &values(json!({})), &context).unwrap();
    assert_eq!(rendered.text(), "agent");
}

#[test]
fn a_cycle_of_providers_is_an_error_and_no_deadlock() {
    let project = Project::with_template("{{ a.x }} {{ b.x }}");
    let ask = |other: &'static str| {
        move |context: &cuebook::hooks::HookContext<'_>| {
            context.get_variable(other)?;
            object(json!({"x": 1}))
        }
    };
    let hooks = Hooks::new().provider("a", ask("b")).provider("b", ask("a"));
    let error = render(&project, hooks, json!({})).unwrap_err();
    assert!(error.diagnostic().message.contains("in a cycle"), "{error}");
}

#[test]
fn a_provider_shares_the_time_of_the_waiting_hook() {
    let project = Project::new()
        .file("prompts/p/prompt.py", "LIMITS = {\"max_execution_time\": 1}\nTEMPLATE = \"{{ left }}\"");
    let hooks = Hooks::new()
        .provider("slow", |context| object(json!({"left": context.remaining().as_secs_f64()})))
        .pre_render("p", |mut variables, context| {
            context.deadline();
            variables.insert("left".into(), context.get_variable("slow.left")?);
            Ok(variables)
        });
    let left: f64 = render(&project, hooks, json!({})).unwrap().text().parse().unwrap();
    assert!(left > 0.0 && left <= 1.0, "{left}");
}

#[test]
fn a_provider_that_panics_blocks_no_caller() {
    let project = Project::with_template("{{ a.x }} {{ b.x }}");
    let hooks = Hooks::new()
        .provider("a", |_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            panic!("on purpose")
        })
        .provider("b", |context| {
            let refusal = context.get_variable("a").unwrap_err();
            assert!(
                refusal.message.contains("panicked") || refusal.message.contains("circle"),
                "{}",
                refusal.message
            );
            object(json!({"x": 1}))
        });
    let error = render(&project, hooks, json!({})).unwrap_err();
    assert_eq!(error.diagnostic().message, "`provide` of the provider `a` panicked: on purpose");
}

#[test]
fn every_provider_that_fails_is_named() {
    let project = Project::with_template("{{ a.x }} {{ b.x }}");
    let fail = |name: &'static str| {
        move |_: &cuebook::hooks::HookContext<'_>| -> Result<Values, HookError> {
            Err(cuebook::hooks::Refusal::failed(format!("{name} is broken")).into())
        }
    };
    let hooks = Hooks::new().provider("a", fail("a")).provider("b", fail("b"));
    let error = render(&project, hooks, json!({})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook);
    let messages: Vec<&str> = error.diagnostics().iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`provide` of the provider `a` failed: a is broken",
            "`provide` of the provider `b` failed: b is broken"
        ]
    );
}

#[test]
fn a_context_grants_what_the_prompt_declares_and_nothing_else() {
    let project = Project::new()
        .file("prompts/p/prompt.py", "PERMISSIONS = {\"read_file\": True}\nTEMPLATE = \"{{ a }}\"")
        .file("prompts/partials/x.md", "partial of {{ who }}{{ a }}")
        .file("notes.txt", "noted");
    let hooks = Hooks::new().pre_render("p", |mut variables, context| {
        assert_eq!(context.read_file("notes.txt").unwrap(), "noted");
        assert_eq!(context.read_file("./a/../notes.txt").unwrap(), "noted");
        for (path, exception) in [
            ("../x", "PermissionError"),
            ("/etc/passwd", "PermissionError"),
            ("none.txt", "FileNotFoundError"),
            ("prompts", "IsADirectoryError"),
            ("a\0b", "ValueError"),
        ] {
            assert_eq!(context.read_file(path).unwrap_err().exception, exception, "{path}");
        }
        assert_eq!(
            context.session_state().unwrap_err().message,
            "the prompt `p` does not have the permission `session_state`"
        );
        for function in ["http_request", "llm_call", "session_state", "eval"] {
            let asked = object(json!({"url": "http://x", "prompt": "x"})).unwrap();
            assert_eq!(context.ask(function, &asked).unwrap_err().exception, "PermissionError", "{function}");
        }
        assert_eq!(context.get_variable("list[1].n").unwrap(), json!(2));
        assert_eq!(context.get_variable("lst").unwrap_err().exception, "LookupError");
        let partial = context.render_template("partials/x.md", Some(&object(json!({"who": "Ada"})).unwrap()));
        assert_eq!(partial.unwrap(), "partial of Ada");
        assert_eq!(context.render_template("partials/x.md", None).unwrap(), "partial of me");
        assert_eq!(
            context.render_template("partials/y.md", None).unwrap_err().exception,
            "FileNotFoundError"
        );
        variables.insert("a".into(), json!("done"));
        Ok(variables)
    });
    let given = json!({"who": "me", "list": [{"n": 1}, {"n": 2}]});
    assert_eq!(render(&project, hooks, given).unwrap().text(), "done");
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_workspace_even_in_a_race() {
    let project = Project::new()
        .file("prompts/p/prompt.py", "PERMISSIONS = {\"read_file\": True}\nTEMPLATE = \"{{ a }}\"")
        .file("ws/inside.txt", "inside")
        .file("secret.txt", "secret");
    std::os::unix::fs::symlink("inside.txt", project.path("ws/good")).unwrap();
    std::os::unix::fs::symlink("../secret.txt", project.path("ws/bad")).unwrap();
    std::os::unix::fs::symlink(project.path("secret.txt"), project.path("ws/worse")).unwrap();
    std::os::unix::fs::symlink("..", project.path("ws/up")).unwrap();
    let swap = project.path("ws/swap");
    let folder = project.path("ws");
    let hooks = Hooks::new().pre_render("p", move |variables, context| {
        assert_eq!(context.read_file("good").unwrap(), "inside");
        for link in ["bad", "worse", "up/secret.txt", "/proc/self/root/etc/passwd"] {
            assert_eq!(context.read_file(link).unwrap_err().exception, "PermissionError", "{link}");
        }
        // A user swaps a file for a link, over and over, while we read.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let (file, link) = (folder.join(".file"), folder.join(".link"));
                while !stop.load(Ordering::Relaxed) {
                    std::fs::write(&file, "inside").unwrap();
                    std::fs::rename(&file, &swap).unwrap();
                    std::os::unix::fs::symlink("../secret.txt", &link).unwrap();
                    std::fs::rename(&link, &swap).unwrap();
                }
            });
            let (mut read, mut refused) = (0, 0);
            // A busy machine may let one of the two wait for long.
            while (read == 0 || refused == 0 || read + refused < 20_000) && read + refused < 20_000_000 {
                match context.read_file("swap") {
                    Ok(text) => {
                        assert_eq!(text, "inside");
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(read > 0 && refused > 0, "the race was none: {read} read, {refused} refused");
        });
        Ok(variables)
    });
    let context =
        Context { workspace_path: Some(project.path("ws").to_string_lossy().into()), ..Context::default() };
    project.book().with_hooks(hooks).render("p", &values(json!({})), &context).unwrap();
}

#[test]
fn session_state_needs_its_permission() {
    let project = Project::new()
        .file("prompts/p/prompt.py", "PERMISSIONS = {\"session_state\": True}\nTEMPLATE = \"{{ a }}\"");
    let hooks = Hooks::new().pre_render("p", |mut variables, context| {
        let state = context.session_state()?.get("turns").cloned().unwrap_or_default();
        variables.insert("a".into(), json!(format!("{} {state}", context.session["session_id"])));
        Ok(variables)
    });
    let context = Context {
        session_id: Some("s1".into()),
        session_state: object(json!({"turns": 3})).unwrap(),
        ..Context::default()
    };
    let rendered = project.book().with_hooks(hooks).render("p", &values(json!({})), &context).unwrap();
    assert_eq!(rendered.text(), "\"s1\" 3");
}

#[test]
fn values_returned_by_hooks_are_limited() {
    let project = Project::new()
        .file("prompts/p/prompt.py", "LIMITS = {\"max_output_size\": 10}\nTEMPLATE = \"{{ a }}\"");
    let long = || json!("x".repeat(11));
    let pre = Hooks::new().pre_render("p", move |mut variables, _| {
        variables.insert("unused".into(), long());
        Ok(variables)
    });
    let post = Hooks::new().post_render("p", |_, _, _| Ok("é".repeat(11)));
    for hooks in [pre, post] {
        let error = render(&project, hooks, json!({"big": "x".repeat(1000)})).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::HookOutput), "{error}");
    }
    let fits = Hooks::new().post_render("p", |_, _, _| Ok("é".repeat(10)));
    assert_eq!(render(&project, fits, json!({"big": "x".repeat(1000)})).unwrap().text().chars().count(), 10);
}

#[test]
fn a_workspace_that_is_none_is_refused_before_anything_runs() {
    let project = Project::with_template("x");
    for (path, part) in [("/", "root of the file system"), ("nowhere/at/all", "cannot open the workspace")] {
        let hooks = Hooks::new().pre_render("p", |_, _| panic!("ran"));
        let context = Context { workspace_path: Some(path.into()), ..Context::default() };
        let error = project.book().with_hooks(hooks).render("p", &values(json!({})), &context).unwrap_err();
        assert_eq!(error.code(), Code::BadWorkspace);
        assert!(error.diagnostic().message.contains(part), "{error}");
    }
}

#[test]
fn without_hooks_none_runs() {
    let project = Project::with_template("{{ git }}.");
    let hooks = Hooks::new().pre_render("p", |_, _| panic!("ran")).provider("git", |_| panic!("ran"));
    let context = Context { without_hooks: true, ..Context::default() };
    let rendered = project.book().with_hooks(hooks).render("p", &values(json!({})), &context).unwrap();
    assert_eq!(rendered.text(), ".");
}
