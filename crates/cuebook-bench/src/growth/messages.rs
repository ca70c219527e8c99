//! Shapes of `.prompty` and `.prompt` files: messages, inputs, tools, YAML; and other engines.

use super::shape::{Project, Shape, each, words};

pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::new("messages", "render", 10_000, |project, size| {
            prompty(project, "p", "", &messages(size))?;
            words("render p --as messages")
        }),
        Shape::new("messages on the wire", "render", 10_000, |project, size| {
            prompty(project, "p", "", &messages(size))?;
            words("render p --as wire:openai")
        }),
        Shape::new("a conversation", "render", 10_000, |project, size| {
            prompty(
                project,
                "p",
                "inputs:\n  - {name: talk, kind: thread}\n",
                "system:\nHi.\n\n{{ talk }}\n",
            )?;
            let one = |n| format!("{{\"role\": \"user\", \"content\": \"message {n}\"}}, ");
            let last = "{\"role\": \"user\", \"content\": \"last\"}";
            project.write("v.json", format!("{{\"talk\": [{}{last}]}}", each(size, one)))?;
            words("render p --vars v.json --as messages")
        }),
        Shape::new("inputs", "render", 4_000, |project, size| {
            inputs(project, size, "")?;
            words("render p")
        }),
        Shape::new("inputs, checked", "check", 4_000, |project, size| {
            inputs(project, size, "")?;
            words("check p")
        }),
        Shape::new("strict inputs", "render", 4_000, |project, size| {
            inputs(project, size, ", strict: true")?;
            words("render p --as segments")
        }),
        Shape::new("tools", "render", 2_000, |project, size| {
            prompty(project, "p", &tools(size, "does"), "system:\nHi.\n")?;
            words("render p --as wire:openai")
        }),
        Shape::new("front matter", "check", 6_000, |project, size| {
            let one = |n| format!("  key{n}: {{a: [1, 2], b: text {n}}}\n");
            prompty(project, "p", &("metadata:\n".to_owned() + &each(size, one)), "system:\nHi.\n")?;
            words("check p")
        }),
        Shape::new("nested front matter", "check", 60, |project, size| {
            let lines = each(size, |n| format!("{}k:\n", " ".repeat(2 + n)));
            let last = format!("{}k: 1\n", " ".repeat(2 + size));
            prompty(project, "p", &format!("metadata:\n{lines}{last}"), "system:\nHi.\n")?;
            words("check p")
        }),
        Shape::new("mustache sections", "render", 10_000, |project, size| {
            let body = each(size, |n| format!("{{{{#a{n}}}}}x{{{{/a{n}}}}}\n"));
            prompty(project, "p", "template: {format: mustache}\n", &format!("system:\n{body}"))?;
            words("render p")
        }),
        Shape::new("names of a .prompt", "render", 4_000, |project, size| {
            project.write("prompts/p.prompt", each(size, |n| format!("{{{{v{n}}}}}\n")))?;
            words("render p")
        }),
        Shape::new("names of a .prompt, checked", "check", 4_000, |project, size| {
            project.write("prompts/p.prompt", each(size, |n| format!("{{{{v{n}}}}}\n")))?;
            words("check p")
        }),
        Shape::new("picoschema", "check", 4_000, |project, size| {
            picoschema(project, size)?;
            words("check p")
        }),
        Shape::new("picoschema, rendered", "render", 4_000, |project, size| {
            picoschema(project, size)?;
            words("render p")
        }),
        Shape::new("an attack on many inputs", "attack", 6_400, |project, size| {
            inputs(project, size, "")?;
            words("attack p")
        }),
        Shape::new("tools, compared", "diff", 2_000, |project, size| {
            prompty(project, "a", &tools(size, "does"), "system:\nHi.\n")?;
            prompty(project, "b", &tools(size, "makes"), "system:\nHi.\n")?;
            words("diff prompts/a.prompty prompts/b.prompty")
        })
        .code(1),
        Shape::new("inputs, compared", "diff", 2_000, |project, size| {
            let inputs = |word: &str| {
                let one = |n| format!("  - {{name: {word}{n}, kind: string, default: x}}\n");
                "inputs:\n".to_owned() + &each(size, one)
            };
            prompty(project, "a", &inputs("a"), "system:\nHi.\n")?;
            prompty(project, "b", &inputs("b"), "system:\nHi.\n")?;
            words("diff prompts/a.prompty prompts/b.prompty")
        })
        .code(1),
        Shape::new("lines, compared", "diff", 10_000, |project, size| {
            prompty(project, "a", "", &("system:\n".to_owned() + &each(size, |n| format!("Line {n}\n"))))?;
            let other = each(size, |n| format!("Line {}\n", if n % 50 == 0 { n + 1 } else { n }));
            prompty(project, "b", "", &("system:\n".to_owned() + &other))?;
            words("diff prompts/a.prompty prompts/b.prompty")
        })
        .code(1),
        Shape::new("messages, compared", "diff", 4_000, |project, size| {
            prompty(project, "a", "", &messages(size))?;
            prompty(project, "b", "", &messages(size).replace("message 1", "other 1"))?;
            words("diff prompts/a.prompty prompts/b.prompty")
        })
        .code(1),
        Shape::new("tokens of messages", "tokens", 4_000, |project, size| {
            prompty(project, "p", "", &messages(size))?;
            words("tokens p")
        }),
        Shape::new("messages, explained", "explain", 8_000, |project, size| {
            prompty(project, "p", "", &messages(size))?;
            words("explain p")
        }),
        Shape::new("messages, converted", "convert", 2_000, |project, size| {
            prompty(project, "p", "", &messages(size))?;
            words("convert p --to sections")
        }),
        Shape::new("cases", "test", 2_000, |project, size| {
            project.write("prompts/p/template.md", "Hi {{ name }}!")?;
            let one = |n| {
                format!(
                    "## case {n}\n\n```yaml inputs\nname: A{n}\n```\n\n```text contains\nHi A{n}\n```\n\n"
                )
            };
            project.write("prompts/p/tests.md", "# Cases\n\n".to_owned() + &each(size, one))?;
            words("test p")
        }),
    ]
}

fn prompty(project: &Project, name: &str, front: &str, body: &str) -> Result<(), String> {
    project.write(
        &format!("prompts/{name}.prompty"),
        format!("---\nname: {name}\nmodel: gpt-4o\n{front}---\n{body}"),
    )
}

/// Inputs, and a tag for each.
fn inputs(project: &Project, size: usize, more: &str) -> Result<(), String> {
    let one = |n| format!("  - {{name: v{n}, kind: string, default: x{more}}}\n");
    let body = each(size, |n| format!("{{{{v{n}}}}}\n"));
    prompty(project, "p", &("inputs:\n".to_owned() + &each(size, one)), &format!("system:\n{body}"))
}

/// A `.prompt` file with inputs and outputs in a short schema, and a tag for each input.
fn picoschema(project: &Project, size: usize) -> Result<(), String> {
    let keys = |optional: &str| each(size, |n| format!("    v{n}{optional}: string, the value {n}\n"));
    let defaults = each(size, |n| format!("    v{n}: x\n"));
    let (inputs, outputs) = (keys(""), keys("?"));
    let body = each(size, |n| format!("{{{{v{n}}}}}\n"));
    let front = format!("input:\n  default:\n{defaults}  schema:\n{inputs}output:\n  schema:\n{outputs}");
    project.write("prompts/p.prompt", format!("---\n{front}---\n{body}"))
}

fn messages(size: usize) -> String {
    let role = |n: usize| if n.is_multiple_of(2) { "user" } else { "assistant" };
    "system:\nHi.\n\n".to_owned() + &each(size, |n| format!("{}:\nThis is message {n}.\n\n", role(n)))
}

fn tools(size: usize, verb: &str) -> String {
    let one = |n| format!("  - {{name: tool{n}, kind: function, description: It {verb} {n}}}\n");
    "tools:\n".to_owned() + &each(size, one)
}
