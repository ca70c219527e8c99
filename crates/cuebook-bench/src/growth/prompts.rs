//! Shapes of templates and sections.

use super::shape::{Project, Shape, each, words};

const TEMPLATE: &str = "prompts/p/template.md";

pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::new("literal text", "render", 60_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("Line {n} of the text.\n")))?;
            words("render p")
        }),
        Shape::new("absent variables", "render", 20_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n} }}}}\n")))?;
            words("render p")
        }),
        Shape::new("given variables", "render", 20_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n} }}}}\n")))?;
            values(project, size)?;
            words("render p --vars v.json")
        }),
        Shape::new("growing sets", "render", 2_900, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{% set x = x ~ v{n} %}}\n")) + "{{ x }}")?;
            words("render p")
        }),
        Shape::new("checked sets", "check", 40_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{% set x = x ~ v{n} %}}\n")))?;
            words("check p")
        }),
        Shape::new("flat sets", "render", 2_900, |project, size| {
            let sets = each(size, |n| format!("{{% set a{n} = {n} %}}{{{{ a{n} }}}}\n"));
            project.write(TEMPLATE, sets)?;
            words("render p")
        }),
        Shape::new("macros", "render", 4_000, |project, size| {
            let macros = each(size, |n| format!("{{% macro m{n}(a) %}}{{{{ a }}}}{{% endmacro %}}\n"));
            let calls = each(size, |n| format!("{{{{ m{n}(v{n}) }}}}\n"));
            project.write(TEMPLATE, macros + &calls)?;
            words("render p")
        }),
        Shape::new("conditions", "render", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{% if a{n} == {n} %}}x{{% endif %}}\n")))?;
            words("render p")
        }),
        Shape::new("different includes", "render", 1_500, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{% include 'parts/i{n}.md' %}}\n")))?;
            for n in 0..size {
                project.write(
                    &format!("prompts/parts/i{n}.md"),
                    format!("{{% set s{n} = v{n} %}}{{{{ s{n} }}}}"),
                )?;
            }
            words("render p")
        }),
        Shape::new("one include, many times", "render", 5_000, |project, size| {
            project.write(TEMPLATE, each(size, |_| "{% include 'parts/i.md' %}\n".to_owned()))?;
            project.write("prompts/parts/i.md", "{{ v }}")?;
            words("render p")
        }),
        Shape::new("sets and includes", "render", 1_400, |project, size| {
            let one = |n| format!("{{% set a{n} = v{n} %}}{{% include 'parts/i.md' %}}\n");
            project.write(TEMPLATE, each(size, one))?;
            project.write("prompts/parts/i.md", "{{ v }}")?;
            words("render p")
        }),
        Shape::new("blocks", "render", 4_000, |project, size| {
            let block = |n| format!("{{% block b{n} %}}{{{{ v{n} }}}}{{% endblock %}}\n");
            project.write("prompts/parts/base.md", each(size, block))?;
            project.write(TEMPLATE, "{% extends 'parts/base.md' %}\n".to_owned() + &each(size, block))?;
            words("render p")
        }),
        Shape::new("a loop", "render", 100_000, |project, size| {
            project.write(TEMPLATE, "{% for x in xs %}{{ loop.index }}: {{ x }}\n{% endfor %}")?;
            project.write("v.json", format!("{{\"xs\": [{}0]}}", each(size, |n| format!("{n}, "))))?;
            words("render p --vars v.json")
        }),
        Shape::new("filters of a list", "render", 100_000, |project, size| {
            project.write(TEMPLATE, "{{ xs|sort|unique|map('string')|join(', ')|length }}")?;
            project
                .write("v.json", format!("{{\"xs\": [{}0]}}", each(size, |n| format!("{}, ", size - n))))?;
            words("render p --vars v.json")
        }),
        Shape::new("a long value", "render", 400_000, |project, size| {
            project.write(TEMPLATE, "{{ v|upper|replace('A', 'b')|trim }}")?;
            project.write("v.json", format!("{{\"v\": \"{}\"}}", "a word ".repeat(size)))?;
            words("render p --vars v.json")
        }),
        Shape::new("unknown values", "render", 40_000, |project, size| {
            project.write(TEMPLATE, each(200, |n| format!("{{{{ name_{n} }}}}\n")))?;
            values(project, size)?;
            words("render p --vars v.json --strict")
        })
        .code(1),
        Shape::new("spans as JSON", "render", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("a {{{{ v{n} }}}}\n")))?;
            values(project, size)?;
            words("render p --vars v.json --json")
        }),
        Shape::new("segments", "render", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("a {{{{ v{n} }}}}\n")))?;
            values(project, size)?;
            words("render p --vars v.json --as segments")
        }),
        Shape::new("flat sections", "render", 8_000, |project, size| {
            sections(project, size)?;
            words("render s")
        }),
        Shape::new("sections with values", "render", 4_000, |project, size| {
            let inputs = each(size, |n| format!("  v{n}: {{kind: string, default: x}}\n"));
            let parts = each(size, |n| format!("# Part {n}\nSee $v{n}.\n\n"));
            project.write("prompts/s.sections.md", format!("---\nname: S\ninputs:\n{inputs}---\n{parts}"))?;
            words("render s")
        }),
        Shape::new("absent variables, explained", "explain", 20_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n} }}}}\n")))?;
            words("explain p")
        }),
        Shape::new("given variables, explained", "explain", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("a {{{{ v{n} }}}}\n")))?;
            values(project, size)?;
            words("explain p --vars v.json")
        }),
        Shape::new("flat sections, explained", "explain", 8_000, |project, size| {
            sections(project, size)?;
            words("explain s")
        }),
        Shape::new("a page of origins", "explain", 8_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("a {{{{ v{n} }}}}\n")))?;
            values(project, size)?;
            words("explain p --vars v.json --html o.html --force")
        }),
        Shape::new("tokens of a long text", "tokens", 60_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("Line {n} of the text.\n")))?;
            words("tokens p")
        }),
        Shape::new("tokens of sections", "tokens", 4_000, |project, size| {
            sections(project, size)?;
            words("tokens s")
        }),
        Shape::new("undeclared variables", "check", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n} }}}}\n")))?;
            words("check p")
        }),
        Shape::new("findings in one line", "check", 8_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n}|nofilter }}}} ")))?;
            words("check p")
        })
        .code(1),
        Shape::new("flat sections, checked", "check", 8_000, |project, size| {
            sections(project, size)?;
            words("check s")
        }),
        Shape::new("a prompt, shown", "show", 10_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("{{{{ v{n} }}}}\n")))?;
            words("show p")
        }),
        Shape::new("flat sections, converted", "convert", 8_000, |project, size| {
            sections(project, size)?;
            words("convert s --to template")
        }),
        Shape::new("a long text, converted", "convert", 20_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("Line {n} of the text.\n")))?;
            words("convert p --to prompty")
        }),
        Shape::new("variables, converted", "convert", 4_000, |project, size| {
            project.write(TEMPLATE, each(size, |n| format!("a {{{{ v{n} }}}}\n")))?;
            words("convert p --to prompty")
        }),
        Shape::new("an attack on a long text", "attack", 8_000, |project, size| {
            let text = each(size, |n| format!("Line {n} of the text.\n"));
            project.write(TEMPLATE, text + "{{ a }} and {{ b }}")?;
            words("attack p")
        }),
        Shape::new("overrides", "overrides", 4_000, |project, size| {
            sections(project, size)?;
            words("overrides list")
        }),
    ]
}

fn values(project: &Project, size: usize) -> Result<(), String> {
    let all: Vec<String> = (0..size).map(|n| format!("\"v{n}\": \"value {n}\"")).collect();
    project.write("v.json", format!("{{{}}}", all.join(", ")))
}

fn sections(project: &Project, size: usize) -> Result<(), String> {
    let parts = each(size, |n| format!("# Part {n}\nWhat part {n} says.\n\n"));
    project.write("prompts/s.sections.md", format!("---\nname: S\n---\n{parts}"))
}
