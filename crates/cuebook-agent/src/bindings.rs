//! Bindings: parameters of a tool that an input of the prompt fills, and the model does not.

use serde_json::{Map, Value as Json};

/// Puts the values of inputs into the arguments of a call: pairs of a parameter and the input that fills it. What the model
/// wrote there is gone, because it is not the model's to decide; an input that is not given changes nothing.
///
/// ```
/// use cuebook_agent::bind;
/// use serde_json::json;
///
/// let inputs = json!({"preferred_unit": "celsius"});
/// let mut arguments = json!({"city": "Oslo", "unit": "kelvin"}).as_object().cloned().unwrap_or_default();
/// bind(&mut arguments, [("unit", "preferred_unit"), ("user", "user_id")], inputs.as_object().unwrap());
/// assert_eq!(json!(arguments), json!({"city": "Oslo", "unit": "celsius"}));
/// ```
pub fn bind<'b>(
    arguments: &mut Map<String, Json>,
    bindings: impl IntoIterator<Item = (&'b str, &'b str)>,
    inputs: &Map<String, Json>,
) {
    for (parameter, input) in bindings {
        if let Some(value) = inputs.get(input) {
            arguments.insert(parameter.to_owned(), value.clone());
        }
    }
}
