//! Values as TOML writes them.

use toml::Value;

/// A text in quotes. A text of JSON is one of TOML, but for one character.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A value on one line.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Table(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {}", key_text(key), written(value))).collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
    }
}

fn key_text(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_value_is_read_as_the_same_value() {
        let text =
            r#"a = "say \"hi\"\n\u007f", b = [1, -2.5, 1e300, true], c = { x-y = 1979-05-27, "ü z" = {} }"#;
        let table: toml::Table = toml::from_str(&format!("all = {{ {text} }}")).unwrap();
        let again: toml::Table = toml::from_str(&format!("all = {}", written(&table["all"]))).unwrap();
        assert_eq!(table, again);
        assert_eq!(written(&toml::Value::Array(vec!["a".into(), "b".into()])), r#"["a", "b"]"#);
    }
}
