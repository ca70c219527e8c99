//! What a thread asked for and did not get, because its parent may not go as far itself.

use serde_json::{Map, Value as Json, json};

use super::limits::ThreadLimits;

/// The limits that were requested and are less than requested: `{"limit": "turns", "wanted": 5, "granted": 4}` each. What
/// was not set needs no message.
pub fn capped(
    set: &[Option<&Map<String, Json>>],
    wanted: &ThreadLimits,
    granted: &ThreadLimits,
) -> Vec<Json> {
    let (wanted, granted) = (wanted.to_json(), granted.to_json());
    let is_set = |name: &str| set.iter().flatten().any(|limits| limits.contains_key(name));
    let differs = |(name, value): &(&String, &Json)| is_set(name) && granted[name.as_str()] != **value;
    wanted
        .as_object()
        .into_iter()
        .flatten()
        .filter(differs)
        .map(|(name, value)| json!({"limit": name, "wanted": value, "granted": granted[name.as_str()]}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_without_a_grant_are_reported() {
        let set = json!({"turns": 5, "tokens": 7});
        let set = set.as_object();
        let wanted = ThreadLimits::defaults().with(set.unwrap(), "the test").unwrap();
        let granted = ThreadLimits { turns: 4, spawns: 1, ..wanted.clone() };
        let reported = capped(&[None, set], &wanted, &granted);
        assert_eq!(reported, [json!({"limit": "turns", "wanted": 5, "granted": 4})]);
        assert_eq!(capped(&[set], &wanted, &wanted), Vec::<Json>::new());
    }
}
