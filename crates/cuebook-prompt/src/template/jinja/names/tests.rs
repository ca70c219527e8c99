use super::*;
use crate::template::jinja::Settings;

fn names(source: &str) -> Names {
    Names::of(&Settings::default().environment().compile("t", source).unwrap())
}

fn paths(source: &str) -> Vec<String> {
    names(source).reads.into_iter().map(|read| read.path).collect()
}

#[test]
fn variables_are_found_with_their_paths_and_local_names_are_not() {
    assert_eq!(
        paths("{{ a }}{{ user.name }}{{ xs[0].y }}{{ d['k'] }}"),
        ["a", "user.name", "xs[0].y", "d.k"]
    );
    assert_eq!(paths("{% for t in tools %}{{ t.name }}{{ loop.index }}{% endfor %}"), ["tools"]);
    assert_eq!(paths("{% set x = a %}{{ x }}{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}"), ["a", "q"]);
    assert_eq!(paths("{% with y = b %}{{ y }}{% endwith %}{{ y }}"), ["b", "y"]);
    assert_eq!(paths("{% if git.available %}{{ git.branch }}{% endif %}"), ["git.available", "git.branch"]);
}

#[test]
fn a_lookup_tag_knows_its_root_name() {
    let source =
        "{{ user.name }}{{ xs[0].y }}{% for x in xs %}{{ x.a }}{{ loop.index }}{% endfor %}{{ (a) }}";
    let wanted = ["user", "xs", "x", "loop", "a"].map(|name| Some(name.to_owned()));
    assert_eq!(names(source).accessors, wanted);
    for source in [
        "{{ a|trim }}",
        "{{ a ~ b }}",
        "{{ 'a' }}",
        "{{ 1 }}",
        "{{ a() }}",
        "{{ a or b }}",
        "{{ (a|first).b }}",
    ] {
        assert_eq!(names(source).accessors, [None], "{source}");
    }
}

#[test]
fn emissions_know_the_variables_that_can_show_in_them() {
    for (source, wanted) in [
        ("{{ a|default(b) }}", vec![vec!["a", "b"]]),
        ("{% for t in tools %}{{ t.name }}{% endfor %}", vec![vec!["tools[].name"]]),
        ("{% set x = a ~ b %}{{ x|upper }}", vec![vec!["a", "b"]]),
        ("{{ a if c else b }}", vec![vec!["a", "b"]]),
        ("{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}{{ m(a) }}", vec![vec![], vec!["q"], vec!["a", "q"]]),
        ("{% filter upper %}{{ a }}{% endfilter %}", vec![vec!["a"], vec!["a"]]),
        ("{% set x %}{{ a }}{% endset %}{{ x }}", vec![vec!["a"], vec!["a"]]),
        ("{{ 'lit' }}{{ name.upper() }}{{ xs|join(sep) }}", vec![vec![], vec!["name"], vec!["sep", "xs"]]),
        (
            "{% set ns = namespace(v=a) %}{% for x in xs %}{{ ns.v }}{% set ns.v = x %}{% endfor %}",
            vec![vec!["a", "xs[]"]],
        ),
    ] {
        assert_eq!(names(source).emissions, wanted, "{source}");
    }
}

#[test]
fn a_name_that_is_set_in_one_branch_may_still_be_the_callers() {
    let source = "{% if not who %}{% set who = friend %}{% endif %}{{ who }}";
    assert_eq!(names(source).emissions, [["friend", "who"]]);
    let source = "{% if c %}{% set x = a %}{% else %}{% set x = b %}{% endif %}{{ x }}";
    assert_eq!(names(source).emissions, [["a", "b"]]);
    assert_eq!(paths(source), ["c", "a", "b"]);
    let source = "{% for x in xs %}{% else %}{{ x }}{% endfor %}";
    assert_eq!(names(source).emissions, [["x"]]);
    let source = "{% set x = a %}{% macro m() %}{{ x }}{% endmacro %}{% set x = b %}{{ m() }}";
    assert_eq!(names(source).emissions[1], ["a", "b"]);
}

#[test]
fn sets_of_paths_do_not_grow_without_bound() {
    let source = "{% set x = x.a ~ x.b ~ x.c %}".repeat(200) + "{{ x }}";
    let emission = &names(&source).emissions[0];
    assert!(emission.len() <= 64 && emission.iter().all(|path| path.starts_with('x')), "{}", emission.len());
    let source = "{% set x = x.a %}".repeat(2_000) + "{{ x }}";
    assert!(names(&source).emissions[0][0].len() <= 160);
}

#[test]
fn long_rows_of_macros_are_followed_to_their_end() {
    // Each calls the next, so that every one of them leads to the last.
    let mut source: String =
        (0..1_000).map(|n| format!("{{% macro m{n}() %}}{{{{ m{}() }}}}{{% endmacro %}}", n + 1)).collect();
    source += "{% macro m1000() %}{{ a }}{% endmacro %}{{ m0() }}{{ m800() }}{{ 'lit' }}";
    let emissions = names(&source).emissions;
    let (shown, rest) = emissions.split_at(1_001);
    assert!(shown.iter().all(|paths| *paths == ["a"]), "{:?}", shown.iter().find(|paths| **paths != ["a"]));
    assert_eq!(rest, [vec!["a".to_owned()], vec!["a".to_owned()], vec![]]);
}

#[test]
fn references_and_callables_have_places() {
    let source = "{% extends 'base.md' %}{% block body %}{% include ['a.md', 'b.md'] ignore missing %}\
                  {% include name %}{{ x|wordwrap(3) }}{% if x is odd %}{% endif %}{{ lookup(1) }}{% endblock %}";
    let names = names(source);
    let references: Vec<_> =
        names.references.iter().map(|r| (r.kind, r.names.clone().unwrap_or_default(), r.optional)).collect();
    assert_eq!(references[0], (ReferenceKind::Extends, vec!["base.md".to_owned()], false));
    assert_eq!(references[1], (ReferenceKind::Include, vec!["a.md".into(), "b.md".into()], true));
    assert_eq!(names.references[2].names, None);
    assert_eq!(&source[names.blocks[0].range.clone()], "body");
    let callables: Vec<&str> = names.callables.iter().map(|c| &source[c.range.clone()]).collect();
    assert_eq!(callables, ["wordwrap", "odd", "lookup"]);
}

#[test]
fn a_loop_body_is_counted_once() {
    let names = names("{% for x in xs %}{{ x }}{{ y }}{% include 'p.md' %}{% endfor %}");
    assert_eq!((names.emissions.len(), names.references.len()), (2, 1));
    assert_eq!(names.reads.len(), 2);
}
