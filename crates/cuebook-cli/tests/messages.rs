//! What a newcomer reads: messages that name the problem and the way out, warnings about silent surprises, output that fits a terminal,
//! and a new project whose commands work.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use support::{Project, python_or_skip};

/// Runs the command in a project: exit code, stdout, stderr.
fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// What a command that fails says.
fn refused(project: &Project, args: &[&str]) -> String {
    let (code, _, reported) = cuebook(project, args);
    assert_ne!(code, 0, "{args:?}: {reported}");
    reported
}

fn has(reported: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(reported.contains(part), "no `{part}` in: {reported}");
    }
}

// Messages

#[test]
fn yaml_errors_name_open_brackets_and_missing_quotes() {
    let project = Project::new();
    project.write("prompts/a.prompty", "---\ninputs: [\n  q: {kind: string}\n---\nuser:\n{{ q }}\n");
    let reported = refused(&project, &["render", "a"]);
    has(&reported, &["`[` is not closed", "a.prompty:2:9"]);
    let input = "{kind: string, description: Say: hello}";
    project.write("prompts/b.prompty", format!("---\ninputs:\n  q: {input}\n---\nuser:\n{{{{ q }}}}\n"));
    let reported = refused(&project, &["render", "b"]);
    has(&reported, &["b.prompty:3:6", "put a text that holds `: ` in quotes"]);
    assert!(!reported.contains("is not closed"), "{reported}");
}

#[cfg(unix)]
#[test]
fn a_path_with_backslashes_is_shown_as_it_was_typed() {
    let project = Project::new();
    project.write("prompts/a/template.md", "Hi.\n");
    let reported = refused(&project, &["render", r"prompts\a\template.md"]);
    has(&reported, &["CB110", r"prompts\a\template.md", "write `/` between folders: prompts/a/template.md"]);
}

#[test]
fn a_missing_prompt_lists_the_searched_places() {
    let project = Project::new();
    project.write("prompts/greeting/template.md", "Hi.\n");
    let reported = refused(&project, &["render", "greting"]);
    has(
        &reported,
        &[
            "CB101",
            "no prompt `greting` in user_data/shared/prompts, prompts, ",
            "the built-in prompts",
            "did you mean `greeting`?",
        ],
    );
    project.write("prompts/note.md", "Hi.\n");
    has(&refused(&project, &["render", "note"]), &["move prompts/note.md to prompts/note/template.md"]);
    project.write("agents/one.json", r#"{"prompt_id": "greting"}"#);
    let reported = refused(&project, &["render", "--agent", "agents/one.json"]);
    has(&reported, &["`prompt_id` of agents/one.json names it", "did you mean `greeting`?"]);
}

#[test]
fn a_traceback_of_a_tool_keeps_its_lines() {
    let project = Project::new();
    let tool = "version: 1.0.0\ntool_type: shell\ncategory: demo\ndescription: Fails\nexecutor_id: rye/core/primitives/subprocess\n";
    let script = r#"printf 'Traceback (most recent call last):\n  File "x.py", line 1\nZeroDivisionError: division by zero\n' >&2; exit 1"#;
    project.write(
        ".ai/tools/demo/fail.yaml",
        format!("{tool}config: {{command: sh, args: ['-c', '{}']}}\n", script.replace('\'', "''")),
    );
    for args in [&["keys", "generate"][..], &["sign", "tool", "demo/fail"]] {
        assert_eq!(cuebook(&project, args).0, 0);
    }
    let reported = refused(&project, &["execute", "tool", "demo/fail"]);
    has(
        &reported,
        &[
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nZeroDivisionError: division by zero\n",
        ],
    );
    has(&reported, &["demo/fail failed with exit code 1: ZeroDivisionError: division by zero\n"]);
}

#[test]
fn a_field_that_is_missing_is_spelt_out_with_its_file() {
    let project = Project::new();
    assert_eq!(cuebook(&project, &["keys", "generate"]).0, 0);
    project.write(
        ".ai/tools/demo/say.py",
        "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__tool_description__ = \"Says\"\n",
    );
    let reported = refused(&project, &["sign", "tool", "demo/say"]);
    has(&reported, &["Missing required field: category", "say.py", "write `__category__ = \"demo\"` into"]);
}

#[test]
fn a_directive_that_cannot_be_read_names_its_file_and_code_once() {
    let project = Project::new();
    assert_eq!(cuebook(&project, &["keys", "generate"]).0, 0);
    project.write(
        ".ai/directives/demo/broken.md",
        "# Broken\n\n```xml\n<directive name=\"broken\">\n  <metadata>\n</directive>\n```\n",
    );
    let reported = refused(&project, &["sign", "directive", "demo/broken"]);
    let error = reported.split("for more about this").next().unwrap();
    has(error, &["Invalid directive structure: line "]);
    assert_eq!(error.matches("demo/broken.md").count(), 1, "{reported}");
    assert_eq!(error.matches("CB326").count(), 1, "{reported}");
}

#[test]
fn an_unknown_model_gets_the_nearest_names() {
    let project = Project::new();
    project.write("prompts/ask/template.md", "Hi.\n");
    let reported = refused(&project, &["run", "ask", "--model", "gpt5-mini"]);
    has(&reported, &["no provider offers `gpt5-mini`", "did you mean `gpt-5-mini`"]);
    assert!(reported.len() < 300, "{reported}");
}

#[test]
fn an_unknown_provider_is_shown_where_the_file_names_it() {
    let project = Project::new();
    project.write("prompts/a.prompty", "---\nmodel:\n  id: gpt-4o\n  provider: openia\n---\nuser:\nHi.\n");
    for reported in
        [refused(&project, &["render", "a", "--as", "wire"]), cuebook(&project, &["check", "a"]).1]
    {
        has(&reported, &["CB602", "a.prompty:4:13", "provider: openia"]);
    }
    let reported = refused(&project, &["render", "a", "--as", "wire:openia"]);
    assert!(!reported.contains("a.prompty:"), "{reported}");
}

// Surprises

/// What `check` and `render` say of a prompt. Both say it once.
fn surprise(project: &Project, args: &[&str], code: &str) -> String {
    let (_, found, _) = cuebook(project, &["check", args[0]]);
    let (exit, _, reported) = cuebook(project, &[&["render"], args].concat());
    assert_eq!(exit, 0, "{reported}");
    for said in [&found, &reported] {
        assert_eq!(said.matches(&format!("[{code}]")).count(), 1, "{code}: {said}");
    }
    assert!(!reported.contains("about this prompt"), "{reported}");
    reported
}

#[test]
fn an_empty_template_is_reported() {
    let project = Project::new();
    project.write("prompts/a/template.md", " \n");
    project.write("prompts/b.prompty", "---\nname: b\n---\n");
    has(&surprise(&project, &["a"], "CB336"), &["prompts/a/template.md: the template is empty"]);
    surprise(&project, &["b"], "CB336");
}

#[test]
fn a_language_that_falls_back_is_reported() {
    let project = Project::new();
    project.write("prompts/a/template.md", "Hello. {% include \"partials/rules.md\" %}\n");
    project.write("prompts/a/template.ja.md", "やあ。{% include \"partials/rules.md\" %}\n");
    project.write("prompts/partials/rules.md", "Be kind.\n");
    let render =
        |language: &str| cuebook(&project, &["render", "a", "--context", &format!("language={language}")]).2;
    has(
        &render("fr"),
        &["[CB337]", "no version in the language `fr`", "a/template.fr.md, or choose one of: ja"],
    );
    // Japanese with English rules.
    let mixed = "partials/rules.md: there is no version in the language `ja`";
    has(&render("ja"), &[mixed, "write prompts/partials/rules.ja.md"]);
    has(&cuebook(&project, &["check", "a"]).1, &[mixed]);
    project.write("prompts/partials/rules.ja.md", "やさしく。\n");
    for known in ["ja", "ja-JP", "en"] {
        assert!(!render(known).contains("CB337"), "{known}");
    }
    has(&cuebook(&project, &["show", "a"]).1, &["languages ja"]);
    std::fs::remove_file(project.path().join("prompts/partials/rules.ja.md")).unwrap();
    // A partial that has languages, and not this one.
    project.write("prompts/partials/rules.de.md", "Sei nett.\n");
    has(&render("ja"), &["partials/rules.md: there is no version in the language `ja`"]);
    has(
        &cuebook(&project, &["check", "a"]).1,
        &["partials/rules.md: there is no version in the language `ja`"],
    );
    // The project's language.
    project.write("cuebook.toml", "[library]\nlanguage = \"fr\"\n");
    for said in [cuebook(&project, &["render", "a"]).2, cuebook(&project, &["check", "a"]).1] {
        has(&said, &["a/template.md: there is no version in the language `fr`"]);
    }
}

#[test]
fn an_unknown_role_is_reported_and_can_be_declared() {
    let project = Project::new();
    let body = "system:\nBe kind.\n\nThe rules:\n- none\n\nhuman:\nHello!\n";
    project.write("prompts/a.prompty", format!("---\nname: a\n---\n{body}"));
    let reported = surprise(&project, &["a"], "CB323");
    has(&reported, &["`human:` is not a role", "a.prompty:10:1", "did you mean `user:`?"]);
    let (_, messages, _) = cuebook(&project, &["render", "a", "--as", "messages"]);
    assert_eq!(messages.matches("\"role\"").count(), 1, "{messages}");
    let roles = "template: {parser: {kind: prompty, options: {roles: {human: user}}}}";
    project.write("prompts/a.prompty", format!("---\nname: a\n{roles}\n---\n{body}"));
    let (code, messages, reported) = cuebook(&project, &["render", "a", "--as", "messages"]);
    assert!(code == 0 && reported.is_empty(), "{reported}");
    assert_eq!(messages.matches("\"role\": \"user\"").count(), 1, "{messages}");
    project
        .write("prompts/a.prompty", format!("---\nname: a\n{}\n---\n{body}", roles.replace("user", "boss")));
    has(&refused(&project, &["render", "a"]), &["roles.human", "system, user, assistant, developer or text"]);
    // Every such line is reported, whatever follows it, except in a block of code.
    let body = "user:\nExample:\n\n  items:\n  - one\n\n```\nhost:\nx\n```\nassistent:\n";
    project.write("prompts/b.prompty", format!("---\nname: b\n---\n{body}"));
    for reported in [cuebook(&project, &["check", "b"]).1, cuebook(&project, &["render", "b"]).2] {
        has(
            &reported,
            &[
                "b.prompty:5:1",
                "b.prompty:7:3",
                "roles: {items: text}",
                "put `assistant:` on a separate line",
            ],
        );
        assert_eq!(reported.matches("warning[CB323]").count(), 3, "{reported}");
        assert!(reported.lines().all(|line| line.chars().count() <= 80), "{reported}");
    }
    let texts = "template: {parser: {kind: prompty, options: {roles: {example: text, Items: text}}}}";
    project.write(
        "prompts/b.prompty",
        format!("---\nname: b\n{texts}\n---\n{}", body.replace("assistent:\n", "")),
    );
    assert_eq!(cuebook(&project, &["render", "b"]).2, "");
    project.write("prompts/c.prompty", "---\nname: c\n---\nuser:\nHi.\ncritic:\nNo.\n");
    has(&surprise(&project, &["c"], "CB323"), &["`critic:` is not a role", "declare the word"]);
}

#[test]
fn an_output_limit_names_its_setting_in_every_dialect() {
    let project = Project::new();
    let text = "This text is longer than five characters.\n";
    project.write("user_data/shared/prompts/defaults.json", r#"{"limits": {"max_output_size": 5}}"#);
    project.write("prompts/template/template.md", text);
    project.write("prompts/prompty.prompty", format!("---\nname: prompty\n---\nsystem:\n{text}"));
    project.write("prompts/tree.sections.md", format!("# A\n\n{text}"));
    project.write("prompts/dotprompt.prompt", text);
    let front = "---\nname: skill\ndescription: A skill that is too long.\n---\n";
    project.write("skills/skill/SKILL.md", format!("{front}{text}"));
    for prompt in ["template", "prompty", "tree", "dotprompt", "skill"] {
        let reported = refused(&project, &["render", prompt]);
        has(&reported, &["error[CB503]", "help: ", "`max_output_size`", "defaults.json"]);
    }
}

#[test]
fn a_loop_over_a_conversation_is_reported() {
    let project = Project::new();
    let text = "---\nname: l\ninputs: {h: {kind: thread}}\n---\nsystem:\n{% for m in h %}{{ m.content }}\n{% endfor %}\n";
    project.write("prompts/l.prompty", text);
    let given = ["l", "--var", "h:=[{\"role\": \"user\", \"content\": \"Hi\"}]"];
    let (_, _, reported) = cuebook(&project, &[&["render"][..], &given].concat());
    has(&reported, &["CB324", "`h` is an input of the kind thread", "l.prompty:6:"]);
    let (_, found, _) = cuebook(&project, &["check", "l"]);
    has(&found, &["CB324", "l.prompty:6:"]);
}

#[test]
fn a_kind_as_a_default_is_reported() {
    let project = Project::new();
    project.write(
        "prompts/a.prompty",
        "---\ninputs: {q: string, topic: bees}\n---\nuser:\n{{ q }} {{ topic }}\n",
    );
    let reported = surprise(&project, &["a"], "CB338");
    has(&reported, &["`inputs.q` has the default text \"string\"", "write `q: {kind: string}`"]);
    project.write(
        "prompts/b.prompty",
        "---\ninputs:\n  q: {kind: string, default: string}\n---\nuser:\n{{ q }}\n",
    );
    assert!(!cuebook(&project, &["check", "b"]).1.contains("CB338"));
}

#[test]
fn windows_line_ends_of_a_prompty_file_are_reported() {
    let project = Project::new();
    project.write("prompts/a.prompty", "---\r\nname: a\r\n---\r\nuser:\r\nHi.\r\n");
    has(&surprise(&project, &["a"], "CB312"), &["warning[CB312]: prompts/a.prompty"]);
}

#[test]
fn a_prompt_larger_than_the_window_is_reported() {
    let project = Project::new();
    let words = "word ".repeat(10_000);
    project.write("prompts/a.prompty", format!("---\nmodel: gpt-4\n---\nuser:\n{words}\n"));
    has(&surprise(&project, &["a"], "CB512"), &["tokens, but gpt-4 reads at most 8192"]);
    // Another model reads more, and a value counts too.
    let (_, _, reported) = cuebook(&project, &["render", "a", "--model", "gpt-4o"]);
    assert!(!reported.contains("CB512"), "{reported}");
    project
        .write("prompts/b.prompty", "---\nmodel: gpt-4\ninputs:\n  q: {kind: string}\n---\nuser:\n{{ q }}\n");
    let (_, _, reported) = cuebook(&project, &["render", "b", "--var", &format!("q={words}")]);
    has(&reported, &["CB512"]);
}

// The terminal

#[test]
fn explain_and_list_fit_into_80_columns() {
    let project = Project::new();
    let folder = "prompts/a_prompt_with_a_rather_long_name_for_its_folder";
    project.write(
        &format!("{folder}/template.md"),
        format!("{} {{{{ agent_name }}}}\nEnd.\n", "Some words. ".repeat(20)),
    );
    let long = "a value that is long ".repeat(9);
    let value = format!("agent_name={long}");
    for args in [
        &["list"][..],
        &["explain", "a_prompt_with_a_rather_long_name_for_its_folder", "--var", &value],
        &["explain", "general_system", "--var", "agent_name=Rumi"],
    ] {
        let (code, shown, reported) = cuebook(&project, args);
        assert_eq!(code, 0, "{reported}");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
    let (_, shown, _) = cuebook(&project, &["list"]);
    has(&shown, &["built-in:general_system"]);
    let (_, shown, _) = cuebook(&project, &["explain", "general_system", "--var", "agent_name=Rumi"]);
    has(&shown, &["general_system from built-in:general_system", "built-in:"]);
    assert!(!shown.contains("ecosystem/default"), "{shown}");
}

/// Runs a command on a terminal of 60 columns, and gives what it shows.
#[cfg(unix)]
fn on_terminal(project: &Project, args: &[&str], pager: &str) -> String {
    let spawn = "import fcntl, os, pty, struct, sys, termios\n\
                 pid, fd = pty.fork()\n\
                 if pid == 0:\n\
                 \x20fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 60, 0, 0))\n\
                 \x20os.execvp(sys.argv[1], sys.argv[1:])\n\
                 out = b''\n\
                 while True:\n\
                 \x20try: some = os.read(fd, 65536)\n\
                 \x20except OSError: break\n\
                 \x20if not some: break\n\
                 \x20out += some\n\
                 os.waitpid(pid, 0)\n\
                 sys.stdout.buffer.write(out)\n";
    let mut command = project.command("python3", project.path());
    let command = command.args(["-c", spawn, env!("CARGO_BIN_EXE_cuebook")]).args(args);
    let output = command.env("PAGER", pager).env("TERM", "xterm").output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

#[cfg(unix)]
#[test]
fn help_is_laid_out_for_the_terminal_and_shown_by_the_pager() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    let plain = |text: &str| anstream::adapter::strip_str(text).to_string();
    let shown = plain(&on_terminal(&project, &["help", "testing", "--no-pager"], "false"));
    assert!(shown.starts_with("Testing prompts\n"), "{shown}");
    for line in shown.lines().filter(|line| !line.starts_with("    ")) {
        assert!(!line.contains("```") && !line.contains("| --- |") && !line.starts_with('#'), "{line}");
        assert!(line.chars().count() <= 60, "{line}");
    }
    let paged = plain(&on_terminal(&project, &["help", "testing"], "sed s/^/PAGED/"));
    assert!(paged.starts_with("PAGEDTesting prompts\n"), "{paged}");
    // A pager that is not there shows nothing, so the page is printed.
    let shown = plain(&on_terminal(&project, &["help", "CB101"], "no-such-pager-here 2>/dev/null"));
    assert!(shown.starts_with("CB101: prompt-not-found\n"), "{shown}");
    // Elsewhere the page is what was written.
    assert!(cuebook(&project, &["help", "testing"]).1.starts_with("# Testing prompts\n"));
}

#[test]
fn root_names_the_project_and_project_is_another_name_for_it() {
    let project = Project::new();
    project.write("there/prompts/a/template.md", "Hi.\n");
    for option in ["--root", "--project"] {
        let (code, text, _) = cuebook(&project, &["render", "a", option, "there"]);
        assert_eq!((code, text.trim()), (0, "Hi."), "{option}");
        let (code, threads, reported) = cuebook(&project, &["thread", "list", option, "there", "--json"]);
        assert_eq!((code, threads.trim()), (0, "[]"), "{reported}");
    }
    assert!(!cuebook(&project, &["run", "--help"]).1.contains("--project"));
}

// A new project

#[test]
fn an_empty_folder_says_what_to_do_next() {
    let project = Project::new();
    for args in [&["render"][..], &["render", "hello"], &["run"], &["run", "hello"], &["attack"], &["tokens"]]
    {
        has(&refused(&project, args), &["no prompts yet", "cuebook init", "/template.md"]);
    }
    for args in [["check"], ["test"]] {
        let (code, _, said) = cuebook(&project, &args);
        assert_eq!(code, 0, "{said}");
        has(&said, &["prompts"]);
    }
    has(&cuebook(&project, &["verify"]).2, &["no items"]);
}

#[test]
fn each_language_uses_the_same_variables() {
    let project = Project::new();
    project.write(
        "prompts/hi/prompt.py",
        "VARIABLES = {\"optional\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}]}\n",
    );
    project.write("prompts/hi/template.md", "Hello {{ a }}{{ b }}\n");
    project.write("prompts/hi/template.de.md", "Hallo {{ a }}\n");
    let (code, text, said) = cuebook(&project, &["render", "hi", "--language", "de", "--var", "a=Ada"]);
    assert_eq!((code, text.trim(), said.as_str()), (0, "Hallo Ada", ""));
    let (_, found, said) = cuebook(&project, &["check", "hi", "--json"]);
    assert_eq!(found.matches("unused variable").count(), 1, "{found}{said}");
    has(&found, &["unused variable `c`"]);
}

#[test]
fn list_suggests_the_nearest_type_and_tag() {
    let project = Project::new();
    let said = |args: &[&str]| cuebook(&project, args).2;
    assert_eq!(said(&["list", "--type", "systm"]), "no matching prompt; did you mean `system`?\n");
    has(&said(&["list", "--type", "xyzzy"]), &["`cuebook list` without a filter shows all of them"]);
}

#[test]
fn mock_prints_the_command_that_uses_it() {
    for (api, wanted) in [
        ("openai-chat", "OPENAI_API_KEY=mock cuebook run PROMPT --provider openai"),
        ("anthropic", "ANTHROPIC_API_KEY=mock cuebook run PROMPT --provider anthropic"),
        ("gemini", "GEMINI_API_KEY=mock cuebook run PROMPT --provider gemini"),
    ] {
        let project = Project::new();
        project.write("prompts/hi/template.md", "Say hi.\n");
        let mut mock = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        let mut child =
            mock.args(["mock", "--api", api]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let command = lines.map(Result::unwrap).find(|line| line.contains("cuebook run PROMPT")).unwrap();
        has(&command, &[wanted]);
        let output = project
            .command("sh", project.path())
            .args([
                "-c",
                &command
                    .replace("PROMPT", "hi")
                    .replace("cuebook run", &format!("'{}' run", env!("CARGO_BIN_EXE_cuebook"))),
            ])
            .output()
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            said.trim(),
            "Hello from the mock model.",
            "{api}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn every_command_that_init_prints_works() {
    let project = Project::new();
    let (code, _, reported) = cuebook(&project, &["init", "my prompts"]);
    assert_eq!(code, 0, "{reported}");
    for file in [
        "prompts/greeting/template.md",
        "prompts/partials/tone.md",
        "prompts/greeting/tests.md",
        ".github/workflows/prompts.yml",
    ] {
        assert!(project.path().join("my prompts").join(file).is_file(), "{file}");
    }
    let (_, commands) = reported.split_once("now try:\n").unwrap();
    let commands: Vec<&str> = commands.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(commands.len() >= 5 && commands[0] == "cd 'my prompts'", "{commands:?}");
    let script = format!("set -e\n{}\n", commands.join("\n"));
    let output = project.command("sh", project.path()).args(["-c", &script]).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    has(&said, &["You are a friendly assistant. You are talking to Ada", "partials/tone.md", "no problems"]);
    assert!(!said.contains("warning"), "{said}");
    // The workflow runs the same program.
    let folder = project.path().join("my prompts");
    let workflow = std::fs::read_to_string(folder.join(".github/workflows/prompts.yml")).unwrap();
    let commands: Vec<&str> = workflow
        .lines()
        .filter_map(|line| line.split_once("- run: cuebook "))
        .map(|(_, command)| command)
        .collect();
    assert!(commands.len() >= 2, "{workflow}");
    for command in commands {
        let mut run = project.command(env!("CARGO_BIN_EXE_cuebook"), &folder);
        let output = run.args(command.split(' ')).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
