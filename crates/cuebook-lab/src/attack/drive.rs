//! One attack: which values are tried, and what is made of each render.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::conversation;
use super::forgery::{DIGITS, FORGERIES, ForgedKind, Forgery, huge};
use super::input::{HARMLESS, Input};
use super::structure::{Difference, Structure, excerpt, false_literal, false_value, without_values};
use super::{Attack, Breach, InputReport, tags};
use crate::chat::{Marker, Role};
use crate::error::{Code, Error, Result};
use crate::prepared::Prepared;
use crate::render::{Origin, Rendered};
use crate::source::Place;
use crate::variables::{Context, RichInput, Variables};

/// Mixtures of forgeries that are tried for each input, and for all at once.
const MIXTURES: usize = 150;
/// So many inputs get every value. If a prompt has more, its inputs share as many renders as these take.
pub(super) const DRIVEN_FULLY: usize = 20;
/// How many forgeries a mixture has at most.
const MAX_MIXED: u64 = 6;
/// Failures that are kept for one input: more of them say nothing new.
const MAX_BREACHES: usize = 5;

/// Words that no template has, one for each input: they show where a value went.
const WORD: &str = "kanarya";

/// A text to try: what it is, and the text.
struct Attempt {
    name: String,
    text: String,
    /// Whether every input gets it, also where inputs share the others.
    always: bool,
}

pub(super) fn run(
    prepared: &Prepared,
    variables: &Variables,
    context: &Arc<Context>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Attack> {
    let inputs = Input::all(prepared, variables, context);
    let takes_part = prepared.runs_code(context);
    let mut driver = AttackRun {
        prepared,
        context,
        others: Map::new(),
        variables,
        code: takes_part,
        done: 0,
        of: 0,
        is_shared: false,
        progress,
        breaches: Vec::new(),
    };
    for input in inputs.iter().filter(|input| !input.has_value) {
        driver.others.insert(input.name.clone(), input.harmless());
    }
    let inputs = driver.fitting(inputs)?;
    let inputs: Vec<Input> = inputs.into_iter().map(|input| driver.typed(input)).collect();
    let attempts = attempts(&inputs);
    let all: Vec<&Attempt> = attempts.iter().collect();
    let shares: Vec<Vec<&Attempt>> =
        (0..inputs.len()).map(|number| share(&attempts, number, inputs.len())).collect();
    let turns = |(input, share): (&Input, &Vec<_>)| input.fits.as_ref().map_or(share.len(), Vec::len);
    let together = if inputs.len() > 1 { attempts.len() } else { 0 };
    driver.of = inputs.iter().zip(&shares).map(turns).sum::<usize>() + together;
    driver.is_shared = inputs.len() > DRIVEN_FULLY;
    let mut driven = Vec::new();
    for (input, share) in inputs.iter().zip(&shares) {
        driven.push(driver.drive(std::slice::from_ref(input), share));
    }
    if inputs.len() > 1 {
        driven.push(driver.drive(&inputs, &all));
    }
    let prompt = prepared.prompt();
    Ok(Attack {
        prompt: prompt.id.clone(),
        dialect: prompt.dialect,
        hooks: prepared.has_code().then_some(takes_part),
        inputs: driven,
        values: attempts.len(),
        is_shared: driver.is_shared,
        breaches: driver.breaches,
    })
}

/// Every text that is tried: each forgery alone and between words, with the names of this very prompt, the long ones, and
/// mixtures.
fn attempts(inputs: &[Input]) -> Vec<Attempt> {
    let mut fragments: Vec<(String, String)> =
        FORGERIES.iter().map(|forgery| (forgery.name.to_owned(), forgery.text.to_owned())).collect();
    // The names of all inputs would make the values grow with them. Those with a nonce come first.
    let (with_nonce, others): (Vec<&Input>, Vec<&Input>) = inputs.iter().partition(|input| input.has_nonce());
    for Input { name, .. } in with_nonce.into_iter().chain(others).take(DRIVEN_FULLY) {
        fragments.push((format!("the nonce of `{name}`"), format!("__PROMPTY_THREAD_{DIGITS}_{name}__")));
        for tag in [format!("{{{{ {name} }}}}"), format!("${{{name}}}"), format!("{{input:{name}}}")] {
            fragments.push((format!("a tag for `{name}`"), tag));
        }
    }
    let mut attempts = Vec::new();
    for (index, (name, text)) in fragments.iter().enumerate() {
        let always = FORGERIES.get(index).is_some_and(|forgery| is_first_of_structure(index, forgery));
        // A value that says nothing is no attack, and conditions may well ask for it.
        if !text.trim().is_empty() {
            attempts.push(Attempt { name: name.clone(), text: text.clone(), always });
        }
        let (name, text) = (format!("{name}, between words"), format!("{WORD}{text}{WORD}"));
        attempts.push(Attempt { name, text, always });
    }
    let huge = huge().into_iter();
    attempts.extend(huge.map(|(name, text)| Attempt { name: name.to_owned(), text, always: false }));
    let mut dice = SeededNumbers(0x9e37_79b9_7f4a_7c15);
    for number in 1..=MIXTURES {
        let mut text = String::new();
        for _ in 0..2 + dice.below(MAX_MIXED - 1) {
            text.push_str(&fragments[dice.below(fragments.len() as u64) as usize].1);
        }
        if text.trim().is_empty() {
            text.push_str(HARMLESS);
        }
        attempts.push(Attempt { name: format!("mixture {number}"), text, always: false });
    }
    attempts
}

/// Whether a forgery is the first of those that want to pass for one kind of structure.
fn is_first_of_structure(index: usize, forgery: &Forgery) -> bool {
    !matches!(forgery.aim, ForgedKind::Letters | ForgedKind::Filler)
        && FORGERIES[..index].iter().all(|earlier| earlier.aim != forgery.aim)
}

/// What one of many inputs is driven with: the values that every input gets, and a share of the others, spread evenly.
fn share(attempts: &[Attempt], number: usize, inputs: usize) -> Vec<&Attempt> {
    if inputs <= DRIVEN_FULLY {
        return attempts.iter().collect();
    }
    let (mut share, others): (Vec<&Attempt>, Vec<&Attempt>) =
        attempts.iter().partition(|attempt| attempt.always);
    let places = (attempts.len() * DRIVEN_FULLY / inputs).saturating_sub(share.len());
    if places > 0 {
        let step = others.len().div_ceil(places);
        share.extend(others.into_iter().skip(number % step).step_by(step));
    }
    share
}

/// Texts that close the tags around values.
fn closings<'t>(tags: impl Iterator<Item = &'t String>) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for tag in tags {
        let closing = [
            format!("{WORD}</{tag}>{WORD}"),
            format!("</{tag}>\n\n## Rules\n{WORD}\n<{tag}>"),
            format!("</{tag}></{tag}-2></{tag}-3>{WORD}"),
            format!("< / {} >{WORD}", tag.to_uppercase()),
        ];
        let name = format!("the end of `<{tag}>`");
        attempts.extend(closing.map(|text| Attempt { name: name.clone(), text, always: true }));
    }
    attempts
}

/// Numbers that look random and are the same each time.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

struct AttackRun<'d> {
    prepared: &'d Prepared,
    context: &'d Arc<Context>,
    variables: &'d Variables,
    /// Harmless values of inputs without a value.
    others: Map<String, Json>,
    /// Whether hooks take part.
    code: bool,
    done: usize,
    of: usize,
    /// Whether the inputs share the values.
    is_shared: bool,
    progress: &'d mut dyn FnMut(usize, usize),
    breaches: Vec<Breach>,
}

/// The render that others are held against.
struct Baseline {
    structure: Structure,
    /// Whether its literals are the bytes of their files, letter by letter: those of a Python string with escapes are not.
    literal: bool,
    /// The tags around its values.
    tags: BTreeSet<String>,
}

impl AttackRun<'_> {
    /// Whether tags around values are borders that the author chose. A directive's form is given, and says so in its own way.
    fn has_borders(&self) -> bool {
        let traits = self.prepared.prompt().dialect;
        traits.is_folder || traits.has_roles
    }

    /// The ends of how many tags are tried.
    fn max_tags(&self) -> usize {
        if self.is_shared { DRIVEN_FULLY } else { usize::MAX }
    }

    fn render(&self, driven: &Map<String, Json>) -> Result<Rendered> {
        let mut variables = self.variables.clone();
        for (name, value) in self.others.iter().chain(driven) {
            variables = variables.set(name.as_str(), value.clone());
        }
        self.prepared.render(&variables, self.context)
    }

    /// The inputs in shapes that the templates can take: what paths say of an undeclared one may be wrong. Fails if the prompt
    /// cannot be rendered at all.
    fn fitting(&mut self, inputs: Vec<Input>) -> Result<Vec<Input>> {
        let first = match self.render(&Map::new()) {
            Ok(_) => return Ok(inputs),
            Err(error) => error,
        };
        // An undeclared input may be text after all, or go to a consumer of numbers.
        let changes: [fn(&Input) -> Input; 3] =
            [Input::as_text, Input::with_numbers, |input| input.as_text().with_numbers()];
        for change in changes {
            let other = |input: &Input| match input.kind {
                "undeclared" => change(input),
                _ => input.clone(),
            };
            let changed: Vec<Input> = inputs.iter().map(other).collect();
            for input in changed.iter().filter(|input| !input.has_value) {
                self.others.insert(input.name.clone(), input.harmless());
            }
            if self.render(&Map::new()).is_ok() {
                return Ok(changed);
            }
        }
        Err(first)
    }

    /// An input of which a text is refused is driven with values of its type instead.
    fn typed(&self, input: Input) -> Input {
        let text = Map::from_iter([(input.name.clone(), input.value(HARMLESS, 0))]);
        let taken = self.render(&text).and_then(|rendered| Structure::of(&rendered));
        match taken {
            Ok(_) => input,
            Err(_) => input.without_text().unwrap_or(input),
        }
    }

    /// Drives some inputs at once with texts. Of many inputs, some are driven at a time, and the others are harmless.
    fn drive(&mut self, inputs: &[Input], attempts: &[&Attempt]) -> InputReport {
        let mut driven = InputReport {
            input: match inputs {
                [one] => Some(one.name.clone()),
                _ => None,
            },
            kind: match inputs {
                [one] => one.kind,
                _ => "all",
            },
            strict: inputs.iter().any(|input| input.strict),
            carries_text: inputs.iter().any(|input| input.fits.is_none()),
            seen: 0,
            tried: 0,
            branched: 0,
            refused: Default::default(),
            breaches: 0,
            problem: None,
        };
        let harmless = match self.harmless(inputs) {
            Ok(harmless) => harmless,
            Err(error) => {
                driven.problem = Some(driven.not_driven(&error));
                self.done += attempts.len();
                return driven;
            }
        };
        // Each of many inputs has already been driven with the ends of the tags around it.
        let tags = if inputs.len() > DRIVEN_FULLY { 0 } else { self.max_tags() };
        let closing = closings(harmless.tags.iter().take(tags));
        let turns = match inputs {
            [Input { fits: Some(fits), .. }] => fits.len(),
            _ => attempts.len() + closing.len(),
        };
        self.of += closing.len().min(turns);
        // Two attempts in a row are one fragment, alone and between words: both go with the same value of another type.
        let rounds = if inputs.len() > 1 { 2 } else { 1 };
        let windows: Vec<&[Input]> = inputs.chunks(DRIVEN_FULLY).collect();
        let at_rest: Map<String, Json> = match windows.len() {
            1 => Map::new(),
            _ => inputs.iter().map(|input| (input.name.clone(), input.harmless())).collect(),
        };
        for (turn, attempt) in attempts.iter().copied().chain(&closing).enumerate().take(turns) {
            (self.progress)(self.done, self.of);
            self.done += 1;
            let inputs = windows[turn / rounds % windows.len()];
            let texts: Vec<String> =
                (0..inputs.len()).map(|index| attempt.text.replace(WORD, &word(index))).collect();
            let values: Map<String, Json> = inputs
                .iter()
                .zip(&texts)
                .map(|(input, text)| (input.name.clone(), input.value(text, turn / rounds)))
                .collect();
            let mut given = at_rest.clone();
            given.extend(values.clone());
            let verdict = match self.render(&given) {
                Ok(rendered) => {
                    let is_seen = (0..inputs.len()).any(|index| shows(&rendered, &word(index)));
                    driven.seen += usize::from(is_seen);
                    self.judge(&rendered, &harmless, inputs, &texts)
                }
                Err(error) => self.judge_refusal(&error, inputs, &texts),
            };
            self.note(&mut driven, &attempt.name, values, verdict);
        }
        if let [input] = inputs
            && input.is_thread()
        {
            self.drive_roles(input, &mut driven);
        }
        (self.progress)(self.done, self.of);
        driven.problem = driven.never_driven();
        driven
    }

    /// Drives a conversation with roles that it must not have. To refuse them is right.
    fn drive_roles(&mut self, input: &Input, driven: &mut InputReport) {
        let word = word(0);
        for (name, value) in conversation::hostile(&word) {
            let values = Map::from_iter([(input.name.clone(), value)]);
            let spoken = self
                .render(&values)
                .and_then(|rendered| conversation::foreign_role(&rendered, &word, &input.roles));
            let verdict = match spoken {
                Ok(None) => Verdict::Held,
                Ok(Some(role)) => {
                    let what = format!("a message in `{}` gets the role `{role}`", input.name);
                    Verdict::broken(what, "a refusal", role, None)
                }
                Err(error) => Verdict::Refused(error.code()),
            };
            self.note(driven, &name, values, verdict);
        }
    }

    /// Counts what became of some values.
    fn note(&mut self, driven: &mut InputReport, name: &str, values: Map<String, Json>, verdict: Verdict) {
        driven.tried += usize::from(!matches!(verdict, Verdict::Refused(_)));
        match verdict {
            Verdict::Held => {}
            Verdict::Branched => driven.branched += 1,
            Verdict::Refused(code) => *driven.refused.entry(code).or_default() += 1,
            Verdict::StructureChange(broken) => {
                driven.breaches += 1;
                // One value that closes a tag says as much as four.
                let is_known = broken.tag.is_some()
                    && self
                        .breaches
                        .iter()
                        .any(|known| known.tag == broken.tag && known.input == driven.input);
                if driven.breaches <= MAX_BREACHES && !is_known {
                    let StructureChange { what, before, after, place, tag } = *broken;
                    self.breaches.push(Breach {
                        input: driven.input.clone(),
                        forgery: name.to_owned(),
                        values: Json::Object(values),
                        what,
                        before,
                        after,
                        place,
                        tag,
                    });
                }
            }
        }
    }

    fn harmless(&self, inputs: &[Input]) -> Result<Baseline> {
        let values = inputs.iter().map(|input| (input.name.clone(), input.harmless())).collect();
        let rendered = self.render(&values)?;
        // A shared attack looks at the tags around the values of its input only: there may be as many tags as inputs.
        let is_driven = |name: &str| !self.is_shared || inputs.iter().any(|input| input.name == name);
        let tags =
            if self.has_borders() { tags::around_values(&rendered, is_driven) } else { Default::default() };
        Ok(Baseline {
            structure: Structure::of(&rendered)?,
            literal: false_literal(&rendered).is_none(),
            tags,
        })
    }

    fn judge(&self, rendered: &Rendered, harmless: &Baseline, inputs: &[Input], texts: &[String]) -> Verdict {
        let structure = match Structure::of(rendered) {
            Ok(structure) => structure,
            Err(error) => return self.judge_refusal(&error, inputs, texts),
        };
        if harmless.literal
            && let Some((text, place)) = false_literal(rendered)
        {
            let what = "text that no file contains is attributed to an author";
            return Verdict::broken(what, "no such text", excerpt(&text), Some(place));
        }
        for (index, input) in inputs.iter().enumerate() {
            if let Some((said, place)) = false_value(rendered, &word(index), &input.name) {
                let what = format!("a part of the value of `{}` is attributed to something else", input.name);
                return Verdict::broken(what, format!("`{}`", input.name), said, place);
            }
            if input.strict
                && let Some((text, place)) = forged(rendered, &input.name, &texts[index])
            {
                let what = format!("the strict input `{}` let a role marker through", input.name);
                return Verdict::broken(what, "a refusal", excerpt(&text), Some(place));
            }
        }
        if self.has_borders()
            && let Some(tags::Closed { tag, value, place }) = tags::closed(rendered)
        {
            return Verdict::closed(tag, excerpt(&value), place);
        }
        if let Some(Ok(messages)) = without_values(rendered)
            && messages != structure.messages
        {
            let what = "a value changes the messages";
            return Verdict::broken(what, messages.join(", "), structure.messages.join(", "), None);
        }
        match harmless.structure.difference(&structure) {
            None => Verdict::Held,
            // What a condition chose is the author's, and what is wrong about it has been looked for above.
            Some(_) if self.code || inputs.iter().any(|input| input.steers) => {
                match undeclared(self.prepared, &harmless.structure, &structure) {
                    Some(difference) => Verdict::changed(difference),
                    None => Verdict::Branched,
                }
            }
            Some(difference) => Verdict::changed(difference),
        }
    }

    /// A refusal is no change of structure. A strict input must refuse what looks like a role marker, and nothing else.
    fn judge_refusal(&self, error: &Error, inputs: &[Input], texts: &[String]) -> Verdict {
        if error.code() == Code::StrictViolation {
            let name = error.field("input").and_then(Json::as_str).unwrap_or_default();
            // What an input is set to for another prompt goes by the name that it has there.
            let declared = inputs.iter().any(|input| input.strict && input.name == name)
                || self.prepared.included_prompts().iter().any(|included| included.is_strict(name));
            let place = error.diagnostic().place.clone();
            if !declared {
                let what = format!(
                    "a value of `{name}` was refused, but `{name}` is not strict or was not attacked"
                );
                return Verdict::broken(what, "text", error.diagnostic().message.clone(), place);
            }
            if !texts.iter().any(|text| could_be_marker(text)) {
                let what = format!("the strict input `{name}` refused a value without a role");
                return Verdict::broken(what, "text", error.diagnostic().message.clone(), place);
            }
        }
        Verdict::Refused(error.code())
    }
}

/// Whether a word is in the text, or in what stands for a conversation.
fn shows(rendered: &Rendered, word: &str) -> bool {
    let in_rich =
        |input: &RichInput| input.value.as_ref().is_some_and(|value| value.to_string().contains(word));
    rendered.text().contains(word) || rendered.scope().rich_inputs().any(in_rich)
}

/// The word that marks the value of an input. No two begin alike, so that one is never found in another.
fn word(index: usize) -> String {
    format!("{WORD}{index}k")
}

enum Verdict {
    Held,
    Branched,
    Refused(Code),
    StructureChange(Box<StructureChange>),
}

struct StructureChange {
    what: String,
    before: String,
    after: String,
    place: Option<Place>,
    tag: Option<String>,
}

impl Verdict {
    fn closed(tag: String, after: String, place: Option<Place>) -> Verdict {
        let (what, before) = (
            format!("it closes the tag `<{tag}>` around it"),
            "a tag that only the author closes".to_owned(),
        );
        Verdict::StructureChange(Box::new(StructureChange { what, before, after, place, tag: Some(tag) }))
    }

    fn broken(
        what: impl Into<String>,
        before: impl Into<String>,
        after: impl Into<String>,
        place: Option<Place>,
    ) -> Verdict {
        let (what, before, after) = (what.into(), before.into(), after.into());
        Verdict::StructureChange(Box::new(StructureChange { what, before, after, place, tag: None }))
    }

    fn changed(Difference { what, before, after, place }: Difference) -> Verdict {
        Verdict::broken(format!("{what} changed"), before, after, place)
    }
}

/// Whether a template could make a role marker of a text: a role and a colon are in it, in whatever order.
fn could_be_marker(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains(':') && Role::MARKERS.iter().any(|role| text.contains(role.as_str()))
}

/// A text of a strict input that looks like a role marker and shows all the same.
fn forged(rendered: &Rendered, variable: &str, text: &str) -> Option<(String, Place)> {
    if !Marker::is_forged_in(text) {
        return None;
    }
    rendered.spans().find_map(|span| match &span.origin {
        Origin::Value { shown, emitted } => {
            let shows = shown.iter().any(|shown| shown.path.split(['.', '[']).next() == Some(variable));
            let found = &rendered.text()[span.range];
            (shows && Marker::is_forged_in(found)).then(|| (found.to_owned(), emitted.clone()))
        }
        _ => None,
    })
}

/// Sections and tools that no author declared.
fn undeclared(prepared: &Prepared, before: &Structure, now: &Structure) -> Option<Difference> {
    let Some(tree) = prepared.tree() else {
        // Without sections, the tools are those that the prompt declares.
        let differ = before.tools != now.tools;
        return differ.then(|| Difference {
            what: "the tools",
            before: before.tools.join(", "),
            after: now.tools.join(", "),
            place: None,
        });
    };
    let paths: Vec<&str> = tree.sections().iter().map(|node| node.dotted()).collect();
    let stranger = now.sections.iter().find(|section| {
        let path = section.split(" (").next().unwrap_or_default();
        !paths.contains(&path)
    });
    stranger.map(|section| Difference {
        what: "the sections",
        before: paths.join(", "),
        after: json!(section).to_string(),
        place: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_to_try_do_not_grow_with_the_inputs() {
        let attempts = attempts(&[]);
        let always = attempts.iter().filter(|attempt| attempt.always).count();
        assert!((7..=20).contains(&always), "{always}");
        let most = attempts.len() * DRIVEN_FULLY;
        for inputs in [1, 20, 21, 40, 100, 500, 2_000] {
            let shares: Vec<Vec<&Attempt>> =
                (0..inputs).map(|number| share(&attempts, number, inputs)).collect();
            let total: usize = shares.iter().map(Vec::len).sum();
            assert!(total <= most.max(always * inputs), "{total} values for {inputs} inputs");
            assert!(shares.iter().all(|share| share.iter().filter(|one| one.always).count() == always));
            let names: BTreeSet<&str> = shares.iter().flatten().map(|one| one.name.as_str()).collect();
            let all = if inputs < 500 { attempts.len() } else { always };
            assert!(names.len() >= all, "{} names for {inputs} inputs", names.len());
        }
    }
}
