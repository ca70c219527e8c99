//! The functions that Python code of prompts and packs must have, and how they are called.

use std::sync::Arc;

use super::python::Module;
use crate::error::{Code, Diagnostic, Result};
use crate::source::Source;

/// The function of a variable provider, and how it is called.
const PROVIDE: (&str, &str) = ("provide", "context");

/// What is wrong with the file of a variable provider.
pub(crate) fn provider_problems(source: &Arc<Source>) -> Result<Vec<Diagnostic>> {
    let module = Module::parse(source)?;
    let (name, arguments) = PROVIDE;
    if module.defines(name).is_none() && module.star_import().is_none() {
        let message = format!("the variable provider has no function `{name}({arguments})`");
        let diagnostic = Diagnostic::new(Code::HookSignature, message)
            .file(source.name())
            .hint(format!("add it: def {name}({arguments}): return {{…}}"));
        return Ok(slips(&module, &[name], &[]).into_iter().chain([diagnostic]).collect());
    }
    Ok(wrong_signature(&module, name, arguments).into_iter().collect())
}

/// Names that mean nothing to us, and are spelt nearly like one that does.
#[doc(hidden)]
pub fn slips(module: &Module, functions: &[&str], definitions: &[&str]) -> Vec<Diagnostic> {
    let slip = |name: &str, known: &[&str]| -> Option<Diagnostic> {
        if known.contains(&name) {
            return None;
        }
        let letters = |name: &str| name.replace('_', "").to_lowercase();
        let meant = known.iter().find(|known| {
            module.defines(known).is_none()
                && strsim::damerau_levenshtein(&letters(name), &letters(known)) <= 2
        })?;
        let place = module.source().place(module.defines(name)?);
        let message = format!("unknown name `{name}`, similar to `{meant}`");
        let hint = format!("did you mean `{meant}`?");
        Some(Diagnostic::new(Code::UnknownKey, message).at(place).hint(hint))
    };
    let functions = module.functions().iter().filter_map(|function| slip(&function.name, functions));
    let constants = module.names().filter(|name| name.chars().all(|c| c.is_uppercase() || c == '_'));
    functions.chain(constants.filter_map(|name| slip(name, definitions))).collect()
}

/// A hook that would fail as soon as it is called.
#[doc(hidden)]
pub fn wrong_signature(module: &Module, name: &str, arguments: &str) -> Option<Diagnostic> {
    let function = module.function(name)?;
    if function.takes(arguments.split(',').count()) {
        return None;
    }
    let message = format!("`{name}` cannot be called as {name}({arguments})");
    let definition = if function.is_async { "async def" } else { "def" };
    Some(
        Diagnostic::new(Code::HookSignature, message)
            .at(module.source().place(function.range.clone()))
            .label(format!("takes ({})", function.parameters.join(", ")))
            .hint(format!("write {definition} {name}({arguments}):")),
    )
}
