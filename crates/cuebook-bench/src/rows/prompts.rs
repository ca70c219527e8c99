//! The prompts that everybody renders. Each is written twice: with Jinja's marks, and with Handlebars' for dotprompt. Both give the same
//! messages, which is checked before anything is measured.

use std::fmt::Write;

use serde_json::{Value as Json, json};

/// A prompt with its values.
pub struct Case {
    pub name: &'static str,
    pub what: &'static str,
    /// Front matter of a `.prompty` file.
    front: String,
    /// The template for everybody who knows Jinja.
    pub jinja: String,
    /// A whole file for dotprompt.
    pub handlebars: String,
    pub values: Json,
}

impl Case {
    /// The `.prompty` file.
    pub fn file(&self) -> String {
        format!("---\n{}---\n{}", self.front, self.jinja)
    }
}

const DOTPROMPT_FRONT: &str = "---\nmodel: openai/gpt-4o\n---\n";

/// Three variables in a dozen lines.
pub fn small() -> Case {
    let system = "You help the guests of a small hotel. Answer in a friendly way and keep it short; use Markdown where it \
                  makes something clearer.\n\n# Guest\nYou are talking to {{first}} {{last}}.";
    Case {
        name: "small prompt",
        what: "a `.prompty` file with three variables, loaded beforehand and rendered to text",
        front: "name: small\nmodel: gpt-4o\ninputs:\n  - {name: first, kind: string}\n  - {name: last, kind: string}\n  \
                - {name: question, kind: string}\n"
            .into(),
        jinja: format!("system:\n{system}\n\nuser:\n{{{{question}}}}\n"),
        handlebars: format!(
            "{DOTPROMPT_FRONT}{{{{role \"system\"}}}}\n{system}\n\n{{{{role \"user\"}}}}\n{{{{question}}}}\n"
        ),
        values: json!({"first": "Mara", "last": "Lindqvist", "question": "When is breakfast, and can I bring my dog?"}),
    }
}

/// A list of fifty objects.
pub fn list() -> Case {
    let items: Vec<Json> = (0..50)
        .map(|n| {
            json!({
                "name": format!("item {n}"),
                "description": format!("what item number {n} is good for, in a sentence of some length"),
                "urgent": n % 7 == 0,
            })
        })
        .collect();
    Case {
        name: "loop of 50 items",
        what: "a `.prompty` file with a loop over 50 objects, loaded beforehand and rendered to text",
        front: "name: list\nmodel: gpt-4o\ninputs:\n  - {name: items, kind: array, items: {kind: object}}\n".into(),
        jinja: "system:\nThis is what there is:\n{% for item in items %}- {{ item.name }}: {{ item.description }}\
                {% if item.urgent %} (urgent){% endif %}\n{% endfor %}\nuser:\nChoose one.\n"
            .into(),
        handlebars: format!(
            "{DOTPROMPT_FRONT}{{{{role \"system\"}}}}\nThis is what there is:\n{{{{#each items}}}}- {{{{name}}}}: {{{{description}}}}\
             {{{{#if urgent}}}} (urgent){{{{/if}}}}\n{{{{/each}}}}\n{{{{role \"user\"}}}}\nChoose one.\n"
        ),
        values: json!({"items": items}),
    }
}

const TOOLS: [(&str, &str, &str); 20] = [
    ("list_files", "Lists what is in a folder of the project", "folder"),
    ("read_file", "Reads a file, or some lines of it", "path"),
    ("write_file", "Replaces a file as a whole", "path"),
    ("edit_file", "Changes one place of a file", "path"),
    ("move_file", "Gives a file another name", "path"),
    ("search_text", "Finds lines that match a pattern", "pattern"),
    ("search_names", "Finds files by their names", "pattern"),
    ("run_tests", "Runs the tests of one package", "package"),
    ("run_command", "Runs a command that is on the list", "command"),
    ("show_diff", "Shows what has been changed so far", "path"),
    ("show_history", "Shows who changed a file, and why", "path"),
    ("open_issue", "Writes a new issue", "title"),
    ("read_issue", "Reads an issue and its comments", "number"),
    ("comment_issue", "Answers on an issue", "number"),
    ("read_page", "Fetches a page of the documentation", "address"),
    ("ask_user", "Asks the person who is waiting", "question"),
    ("remember", "Keeps a sentence for the next session", "sentence"),
    ("recall", "Looks up what was kept", "subject"),
    ("estimate", "Says how long a change may take", "change"),
    ("finish", "Ends the session with a summary", "summary"),
];

const RULES: &str = "Work in small steps and say what you found after each of them. Read a file before you change it, and run \
    the tests of what you changed. Ask when something is missing, instead of guessing; a question costs less than a wrong \
    change. Never touch files outside of the project. If a tool fails twice in the same way, stop and describe what you saw. \
    Write for people who know the code but have not followed the session: name files and lines, and leave out what they \
    can see for themselves.\n\n\
    A change is done when its tests pass, when the documentation says the same as the code, and when somebody who reads the \
    difference can tell why it was made. Prefer the smallest change that does this. Where two ways are equally good, take the one \
    that is used elsewhere in the project. Keep names that people know. If a rule of the project stands in your way, \
    follow it and say what it cost, so that it can be discussed afterwards.";

/// An agent's prompt: twenty tools, in the text and in the file's own list, and ten turns of a conversation.
pub fn agent() -> Case {
    let mut front = String::from(
        "name: agent\nmodel: gpt-4o\ninputs:\n  - {name: agent_name, kind: string}\n  - {name: position, kind: string}\n  \
         - {name: language, kind: string}\n  - {name: memory, kind: string}\n  - {name: question, kind: string}\n  \
         - {name: tools, kind: array, items: {kind: object}}\n  - {name: turns, kind: array, items: {kind: object}}\ntools:\n",
    );
    for (name, description, argument) in TOOLS {
        // Writing to a string cannot fail.
        let _ = write!(
            front,
            "  - name: {name}\n    kind: function\n    description: {description}.\n    parameters:\n      \
             - {{name: {argument}, kind: string, description: What it is about, required: true}}\n      \
             - {{name: reason, kind: string, description: Why this is the next step}}\n"
        );
    }
    let tools: Vec<Json> = TOOLS
        .iter()
        .map(|(name, description, argument)| {
            json!({
                "name": name,
                "description": format!("{description}."),
                "arguments": [
                    {"name": argument, "description": "what it is about"},
                    {"name": "reason", "description": "why this is the next step"},
                ],
            })
        })
        .collect();
    let turns: Vec<Json> = (1..=10)
        .map(|n| {
            json!({
                "question": format!("Step {n}: the build of package {} is red again. What do you see in its log, and what would you do next?", n * 3),
                "answer": format!("I read its log. Test number {} waits for a port that nobody opens; I would start the server first, wait until it answers, and only then run the rest.", n * 17),
            })
        })
        .collect();
    let tool_lines =
        |each: &str, end: &str, [name, description, inner, inner_end, argument, about]: [&str; 6]| {
            format!(
                "{each}### {{{{{name}}}}}\n{{{{{description}}}}}\n{inner}- {{{{{argument}}}}}: {{{{{about}}}}}\n{inner_end}{end}"
            )
        };
    let jinja_tools = tool_lines(
        "{% for tool in tools %}",
        "{% endfor %}",
        [
            " tool.name ",
            " tool.description ",
            "{% for argument in tool.arguments %}",
            "{% endfor %}",
            " argument.name ",
            " argument.description ",
        ],
    );
    let handlebars_tools = tool_lines(
        "{{#each tools}}",
        "{{/each}}",
        ["name", "description", "{{#each arguments}}", "{{/each}}", "name", "description"],
    );
    Case {
        name: "6 KB agent prompt",
        what: "a `.prompty` file with 20 tools and 10 turns, loaded beforehand and rendered to 6 KB of text",
        front,
        jinja: format!(
            "system:\nYou are {{{{ agent_name }}}}, {{{{ position }}}}.\n\n{RULES}\n\n## Tools\n{jinja_tools}\n## Memory\n\
             {{{{ memory }}}}\n{{% if language != 'en' %}}Answer in {{{{ language }}}}.{{% endif %}}\n\n\
             {{% for turn in turns %}}\nuser:\n{{{{ turn.question }}}}\n\nassistant:\n{{{{ turn.answer }}}}\n{{% endfor %}}\n\
             user:\n{{{{ question }}}}\n"
        ),
        handlebars: format!(
            "{DOTPROMPT_FRONT}{{{{role \"system\"}}}}\nYou are {{{{agent_name}}}}, {{{{position}}}}.\n\n{RULES}\n\n## Tools\n\
             {handlebars_tools}\n## Memory\n{{{{memory}}}}\n\
             {{{{#unlessEquals language \"en\"}}}}Answer in {{{{language}}}}.{{{{/unlessEquals}}}}\n\n\
             {{{{#each turns}}}}{{{{role \"user\"}}}}\n{{{{question}}}}\n\n{{{{role \"model\"}}}}\n{{{{answer}}}}\n\n{{{{/each}}}}\
             {{{{role \"user\"}}}}\n{{{{question}}}}\n"
        ),
        values: json!({
            "agent_name": "Rumi",
            "position": "the engineer on duty of a team that builds prompts",
            "language": "Swedish",
            "memory": "The person prefers short answers and knows the code well.",
            "question": "Thank you. Write down what is left to do, in three lines.",
            "tools": tools,
            "turns": turns,
        }),
    }
}
