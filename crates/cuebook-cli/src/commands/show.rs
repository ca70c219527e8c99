//! `cuebook show`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::Context;
use cuebook::dialect::directive::Directive;
use cuebook::prompt::{Dialect, Need};

use super::with_choice;
use crate::args::{Options, PromptArgs};
use crate::output::{Outcome, print_json};

/// What a thread that follows a directive is told of it, and what it is to give.
fn describe_directive(directive: &Directive, out: &mut impl Write) -> std::io::Result<()> {
    if let Some(extends) = &directive.extends {
        writeln!(out, "extends   {extends}")?;
    }
    if let Some(permissions) = &directive.permissions {
        writeln!(out, "may       {}", permissions.capabilities.join(", "))?;
    }
    if let Some(limits) = &directive.limits {
        let limits: Vec<String> = limits.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(out, "limits    {}", limits.join(", "))?;
    }
    if !directive.outputs.is_empty() {
        let outputs: Vec<&str> = directive.outputs.iter().map(|output| output.name.as_str()).collect();
        writeln!(out, "returns   {}", outputs.join(", "))?;
    }
    Ok(())
}

pub fn run(args: &PromptArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let prepared = with_choice(&book, options, || book.prepare(&args.prompt, &Context::default()))?;
    if options.json {
        print_json(&prepared.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let prompt = prepared.prompt();
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{bold}{}{bold:#} {}  {quiet}{}{quiet:#}",
        prompt.id, prompt.metadata.version, prompt.metadata.kind
    )?;
    if let Some(description) = &prompt.metadata.description {
        writeln!(out, "{description}")?;
    }
    writeln!(out, "\nfrom      {}", prompt.source)?;
    match prompt.dialect {
        Dialect::Prompty => writeln!(out, "format    {}", prompt.format.engine)?,
        Dialect::Sections | Dialect::Directive => {}
        _ => writeln!(out, "template  {}", prompt.template.name())?,
    }
    let languages = prepared.languages();
    if !languages.is_empty() {
        writeln!(out, "languages {} {quiet}(besides the plain file){quiet:#}", languages.join(", "))?;
    }
    if let Some(model) = &prompt.model {
        let details = [model.provider.as_deref(), model.api_type.as_deref()];
        let details: Vec<&str> = details.into_iter().flatten().collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        writeln!(out, "model     {}{quiet}{details}{quiet:#}", model.id)?;
    }
    if !prompt.tools.is_empty() {
        let tools: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        writeln!(out, "tools     {}", tools.join(", "))?;
    }
    if !prompt.outputs.is_empty() {
        let outputs: Vec<String> = prompt
            .outputs
            .iter()
            .map(|output| format!("{} ({})", output.name, output.kind.as_str()))
            .collect();
        writeln!(out, "answers   {}", outputs.join(", "))?;
    }
    if !prepared.parents().is_empty() {
        writeln!(out, "extends   {}", prepared.parents().join(" → "))?;
    }
    let includes = Vec::from_iter(prepared.includes());
    if !includes.is_empty() {
        writeln!(out, "includes  {}", includes.join(", "))?;
    }
    let tags: Vec<&str> = prompt.metadata.tags().collect();
    if !tags.is_empty() {
        writeln!(out, "tags      {}", tags.join(", "))?;
    }
    let granted = prompt.permissions.granted();
    if !granted.is_empty() {
        writeln!(out, "may       {}", granted.join(", "))?;
    }
    if !prompt.hooks.is_empty() {
        let hooks: Vec<&str> = prompt.hooks.iter().map(|hook| hook.name.as_str()).collect();
        writeln!(out, "hooks     {}", hooks.join(", "))?;
    }
    if let Some(tree) = prepared.tree() {
        writeln!(out, "overrides {}/{}", tree.ns, tree.key)?;
        writeln!(out, "\n{bold}sections{bold:#}")?;
        for node in tree.sections() {
            let margin = "  ".repeat(node.depth);
            write!(
                out,
                "  {margin}{} {}  {quiet}{}{quiet:#}",
                node.number,
                node.section.title,
                node.dotted()
            )?;
            let tools: Vec<&str> = node.section.tools.iter().map(|tool| tool.name.as_str()).collect();
            match tools.is_empty() {
                true => writeln!(out)?,
                false => writeln!(out, "  {quiet}tools:{quiet:#} {}", tools.join(", "))?,
            }
        }
    }
    if let Some(directive) = prepared.directive() {
        describe_directive(directive, &mut out)?;
    }
    for need in [Need::Required, Need::Optional, Need::Custom] {
        let declared: Vec<_> = prompt.variables.iter().filter(|variable| variable.need == need).collect();
        if declared.is_empty() {
            continue;
        }
        writeln!(out, "\n{bold}{}{bold:#}", need.as_str())?;
        let width = declared.iter().map(|variable| variable.name.chars().count()).max().unwrap_or_default();
        for variable in declared {
            write!(out, "  {:width$}  {:7}", variable.name, variable.type_name())?;
            if variable.from_system {
                write!(out, "  from the system")?;
            } else if let Some(default) = &variable.default {
                write!(out, "  = {}", variable.shown(default))?;
            }
            if let Some(description) = &variable.description {
                write!(out, "  {quiet}{description}{quiet:#}")?;
            }
            if let Some(parent) = &variable.inherited_from {
                write!(out, "  {quiet}(from {parent}){quiet:#}")?;
            }
            writeln!(out)?;
        }
    }
    let undeclared: Vec<String> = prepared
        .known_names()
        .into_iter()
        .filter(|name| name != "system" && name != "session" && prompt.variable(name).is_none())
        .collect();
    if !undeclared.is_empty() {
        writeln!(out, "\n{bold}used without a declaration{bold:#}\n  {}", undeclared.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}
