//! What crosses the border between two notations: the same bytes, and who wrote them.

use cuebook::variables::Layer;
use cuebook::{Code, Context, Origin, Rendered, Variables};
use proptest::prelude::*;
use serde_json::json;

use crate::project::{ADDRESSES, Project, assert_covered, includers, inside};

#[test]
fn every_dialect_can_include_every_other() {
    for (address, said) in ADDRESSES {
        for (id, path, text) in includers(address) {
            let project = Project::new().with(path, &text);
            let rendered =
                project.render(id, json!({"who": "Ann"})).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(inside(rendered.text()).1.trim_end(), said, "{text}");
            assert_covered(&rendered);
        }
    }
}

#[test]
fn included_text_has_its_own_file_and_layers() {
    let project = Project::new().with(
        "prompts/host/template.md",
        "{% include 'prompt:guide#manner' %} {% include 'directive:demo/greet' %} {% include 'prompt:note' %}",
    );
    let rendered = project.render("host", json!({"who": "Ann"})).unwrap();
    let shown: Vec<String> = rendered
        .spans()
        .map(|span| {
            let text = &rendered.text()[span.range.clone()];
            let of = match &span.origin {
                Origin::Literal { source, .. } => source.name().to_owned(),
                Origin::Value { shown, emitted } => {
                    let layers: Vec<String> = shown
                        .iter()
                        .map(|one| format!("{}={:?}", one.path, one.layer.map(Layer::as_str)))
                        .collect();
                    format!("{} at {}", layers.join(","), emitted.file())
                }
                Origin::Frame { name } => name.clone(),
                other => other.kind().to_owned(),
            };
            format!("{text:?} {of} {}", span.section.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "\"# Manner\\n\\n\" heading manner",
            "\"Stay \" prompts/guide.sections.md manner",
            "\"calm\" tone=Some(\"optional\") at prompts/guide.sections.md manner",
            "\".\" prompts/guide.sections.md manner",
            "\" \" prompts/host/template.md -",
            "\"Greet \" .ai/directives/demo/greet.md -",
            "\"Ann\" who=Some(\"caller\") at .ai/directives/demo/greet.md -",
            "\" in a \" .ai/directives/demo/greet.md -",
            "\"calm\" tone=Some(\"optional\") at .ai/directives/demo/greet.md -",
            "\" way.\" .ai/directives/demo/greet.md -",
            "\" \" prompts/host/template.md -",
            "\"Dear \" prompts/note.prompty -",
            "\"Ann\" who=Some(\"caller\") at prompts/note.prompty -",
            "\", be \" prompts/note.prompty -",
            "\"calm\" tone=Some(\"optional\") at prompts/note.prompty -",
            "\".\" prompts/note.prompty -",
        ]
    );
}

#[test]
fn a_prompty_file_includes_only_library_partials() {
    for (include, other) in [
        ("{% include 'partials/tone.md' %}", ""),
        ("{{> partials/tone.md}}", "template: {format: mustache}\n"),
    ] {
        let file = format!("---\nname: host\n{other}---\nHi. {include}");
        let project = Project::new()
            .with("prompts/host.prompty", &file)
            .with("prompts/partials/tone.md", "Be {{ tone }}.");
        let rendered = project.render("host", json!({"tone": "kind"})).unwrap();
        assert_eq!(rendered.text(), "Hi. Be kind.", "{file}");
        let files: Vec<String> =
            rendered.spans().filter_map(|span| Some(span.origin.place()?.file().to_owned())).collect();
        assert_eq!(files[0], "prompts/host.prompty");
        assert!(files[1..].iter().all(|file| file == "prompts/partials/tone.md"), "{files:?}");
        project.write("secret.md", "secret");
        for outside in ["../secret.md", "/etc/passwd", "partials/../../secret.md"] {
            project.write("prompts/host.prompty", file.replace("partials/tone.md", outside));
            let error = project.error("host", json!({}));
            assert_eq!(
                (error.code(), error.diagnostic().file_name()),
                (Code::MissingInclude, Some("prompts/host.prompty"))
            );
        }
    }
}

#[test]
fn an_error_in_an_include_is_reported_with_both_places() {
    let project = Project::new()
        .with("prompts/bad/template.md", "ok\n{{ 1 / 0 }}")
        .with("prompts/broken/template.md", "{% if %}")
        .with("prompts/host/template.md", "{% include 'prompt:bad' %}")
        .with("prompts/host2/template.md", "{% include 'prompt:broken' %}")
        .with("prompts/host3/template.md", "{% include 'prompt:plain' %}{{ 1 / 0 }}");
    for (host, code, file) in [
        ("host", Code::RenderFailed, "prompts/bad/template.md:2:4"),
        ("host2", Code::TemplateSyntax, "prompts/broken/template.md:1:7"),
    ] {
        let error = project.error(host, json!({}));
        let reported = error.diagnostic();
        assert_eq!(
            (reported.code, reported.place.as_ref().unwrap().to_string().as_str()),
            (code, file),
            "{error:?}"
        );
        assert_eq!(reported.related.last().unwrap().0.file(), format!("prompts/{host}/template.md"));
    }
    let error = project.error("host3", json!({"who": "Ann"}));
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "prompts/host3/template.md:1:32");
}

/// What a user may try to get something done with.
fn hostile() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "system:\n",
        "{{ who }}",
        "{% include 'prompt:note' %}",
        "{include:demo/tea}",
        "{input:who}",
        "$who",
        "${tone}",
        "# Task\n",
        "\n\n# New\n\n",
        "[",
        "]",
        "{{> prompt:note}}",
        "\0guest:0",
        "</directive>",
        "a",
        " ",
        "é",
        "\n",
        "__cue_guest(0)",
        "{env:HOME}",
    ]);
    prop::collection::vec(bits, 0..6).prop_map(|bits| bits.concat())
}

#[test]
fn an_include_equals_the_included_prompt() {
    let project = Project::new();
    let mut hosts = Vec::new();
    for (number, (address, _)) in ADDRESSES.into_iter().enumerate() {
        for (kind, (_, path, text)) in includers(address).into_iter().enumerate() {
            let id = format!("host{number}{kind}");
            project.write(&path.replace("host", &id), text.replace("name: host", &format!("name: {id}")));
            hosts.push((id, address, text));
        }
    }
    let book = project.book();
    let render = |id: &str, who: &str, tone: &str| {
        let values = Variables::new().set("who", who).set("tone", tone);
        book.render(
            id,
            &values,
            &Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() },
        )
        .unwrap_or_else(|error| panic!("{id}: {error:?}"))
    };
    // What the author wrote, in the order of the text.
    let literals = |rendered: &Rendered| {
        let spans = rendered.spans().filter(|span| !matches!(span.origin, Origin::Value { .. }));
        spans.map(|span| rendered.text()[span.range].to_owned()).collect::<String>()
    };
    let calm: Vec<String> = hosts.iter().map(|(id, ..)| literals(&render(id, "Ann", "calm"))).collect();
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 24, ..ProptestConfig::default() });
    let holds = |(who, tone): (String, String)| {
        for ((id, address, text), calm) in hosts.iter().zip(&calm) {
            let rendered = render(id, &who, &tone);
            assert_covered(&rendered);
            prop_assert_eq!(&literals(&rendered), calm, "{}", text);
            let itself = match *address {
                "prompt:plain" | "prompt:note" | "prompt:card" | "prompt:guide" => {
                    &address["prompt:".len()..]
                }
                _ => continue,
            };
            let own = render(itself, &who, &tone);
            let got = rendered.text().strip_prefix("# Host\n\n").unwrap_or(rendered.text());
            let got = got.strip_prefix('[').and_then(|got| got.strip_suffix(']'));
            prop_assert_eq!(got, Some(own.text()), "{}", text);
        }
        Ok(())
    };
    runner.run(&(hostile(), hostile()), holds).unwrap();
}
