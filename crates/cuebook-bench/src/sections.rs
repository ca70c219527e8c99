//! Trees of sections: ours against the package that they come from, `weakincentives` for Python, warm: both have made their tree
//! before, and a turn makes the parameters, binds them and renders. The targets are 40 times as fast for 3 sections and 100
//! times for 200 sections with 50 tools. Ours gives the origin of every byte as well; theirs gives the text.
//!
//! Ours is measured a second time with parameters that were bound before, as a program with a fixed context has them.
//!
//! The last rows are ours alone: what it costs to fit a tree of 1,000 sections into a budget of tokens, once every section has
//! been counted (target: at most twice as long as to render it).

pub mod peer;
mod prompts;

use std::error::Error;
use std::path::Path;

use cuebook::sections::{Binding, RenderedPrompt, Setting, Tree};
use cuebook::tokens::{Counter, Tokenizer};

use self::peer::Peer;
use self::prompts::{Case, values};
use crate::measure::{Turns, compare, compare_with, memcpy, time, turns};
use crate::peers::WINK;
use crate::race::Race;
use crate::table::{self, Row, Target};

/// Prints the rows; without the peer they have one column less.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!(
        "\nsections: bind and render, against {} {} in Python (targets: 40 and 100 times as fast)",
        peer::PACKAGE,
        peer::VERSION
    );
    let mut peer = match Peer::start() {
        Ok(peer) => Some(peer),
        Err(why) => {
            println!("the peer is left out: {why}");
            None
        }
    };
    println!("{:52} {:>12} {:>12} {:>7}", "", peer::PACKAGE, "cuebook", "faster");
    for case in [prompts::small(), prompts::large()] {
        rows(&case, peer.as_mut())?;
    }
    println!("\nsections: fit 1,000 of them into a budget, all counted before (target: ratio ≤ 2)");
    println!("{:52} {:>12} {:>12} {:>7}", "", "render", "fit", "ratio");
    fit_rows()
}

/// The row of the one table: 200 sections, bound and rendered.
pub fn row() -> Result<Row, Box<dyn Error>> {
    let case = prompts::large();
    let tree = case.tree()?;
    let bind_and_render = || -> cuebook::Result<RenderedPrompt> {
        let mut binding = Binding::new();
        tree.render(&Setting::new(binding.bind(values()?).values()))
    };
    let rendered = bind_and_render()?;
    let text = rendered.text();
    let mut peer = Peer::start();
    let theirs = peer.as_mut().map_err(|why| why.clone()).and_then(|peer| -> Result<Turns<'_>, String> {
        if peer.load(&case.to_json())?.text != text {
            return Err("it gives another text".into());
        }
        Ok(Box::new(|| peer.bind_and_render()))
    });
    let what = "a tree of 200 sections with 50 tools, bound to parameters and rendered";
    let race = Race::new("200 sections", what, Ok(turns(bind_and_render)))
        .floor("`memcpy` of the output", Ok(memcpy(text.as_bytes())))
        .peer(table::Peer::new(WINK, peer::VERSION), theirs);
    Ok(race.run().target(Target::Ahead))
}

/// The same tree in Python, with `cuebook.wink` in the place of the package that it comes from.
pub fn python_row(python: Result<&Path, String>) -> Result<Row, Box<dyn Error>> {
    let case = prompts::large().to_json();
    let mut ours = python.and_then(Peer::ours);
    let mut theirs = Peer::start();
    let texts: Vec<Result<String, String>> = [&mut ours, &mut theirs]
        .into_iter()
        .map(|peer| Ok(peer.as_mut().map_err(|why| why.clone())?.load(&case)?.text))
        .collect();
    if let [Ok(one), Ok(other)] = &texts[..]
        && one != other
    {
        return Err("the two packages give different texts".into());
    }
    let turns =
        |peer: Result<Peer, String>, loaded: &Result<String, String>| -> Result<Turns<'static>, String> {
            loaded.clone()?;
            let mut peer = peer?;
            Ok(Box::new(move || peer.bind_and_render()))
        };
    let what = "`Prompt.bind` and `render` of `cuebook.wink`, for the same tree";
    let race = Race::new("Python: 200 sections", what, turns(ours, &texts[0])).peer(
        table::Peer::new(WINK, peer::VERSION).note("it returns the text without its origins"),
        turns(theirs, &texts[1]),
    );
    Ok(race.run().target(Target::Ahead))
}

fn rows(case: &Case, peer: Option<&mut Peer>) -> Result<(), Box<dyn Error>> {
    let tree = case.tree()?;
    let ours = tree.render(&Setting::new(&values()?))?;
    let bind_and_render = || -> cuebook::Result<RenderedPrompt> {
        let mut binding = Binding::new();
        tree.render(&Setting::new(binding.bind(values()?).values()))
    };
    let bound = values()?;
    let render = || tree.render(&Setting::new(&bound));
    let Some(peer) = peer else {
        let row = |what: &str, ours: f64| {
            println!("{:52} {:>12} {ours:>9.0} ns", format!("{}: {what}", case.name), "-");
        };
        row("bind and render", time(bind_and_render));
        row("render, bound before", time(render));
        return Ok(());
    };
    let theirs = peer.load(&case.to_json())?;
    assert_eq!(ours.text(), theirs.text, "both must give the same text");
    let tools: Vec<&str> = ours.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, theirs.tools, "both must give the same tools");
    assert_eq!(ours.text(), bind_and_render()?.text());
    let pairs = [
        ("bind and render", compare_with(|| peer.bind_and_render(), bind_and_render)?),
        ("render, bound before", compare_with(|| peer.render(), render)?),
    ];
    for (what, pair) in pairs {
        let name = format!("{}: {what}", case.name);
        println!("{name:52} {:>9.0} ns {:>9.0} ns {:>7.1}", pair.peer, pair.ours, 1.0 / pair.ratio());
    }
    Ok(())
}

fn fit_rows() -> Result<(), Box<dyn Error>> {
    let tree = prompts::long()?;
    let (tokenizer, counter) = (Tokenizer::for_model("gpt-4o"), Counter::new());
    let bound = values()?;
    let setting = Setting::new(&bound);
    let whole = tokenizer.count(tree.render(&setting)?.text());
    for (name, budget) in
        [("all of it fits", whole), ("a tenth has to go", whole / 10 * 9), ("half has to go", whole / 2)]
    {
        let fit = |tree: &Tree| tree.fit(&setting, budget, &tokenizer, &counter);
        let (rendered, fitting) = fit(&tree)?;
        assert_eq!(fitting.tokens, tokenizer.count(rendered.text()), "the count is exact");
        assert!(fitting.before == whole && fitting.tokens <= budget);
        let pair = compare(|| tree.render(&setting), || fit(&tree));
        let name = format!("{name}: {} of {whole} tokens, {} steps", fitting.tokens, fitting.steps.len());
        println!("{name:52} {:>9.0} ns {:>9.0} ns {:>7.2}", pair.peer, pair.ours, pair.ratio());
    }
    Ok(())
}
