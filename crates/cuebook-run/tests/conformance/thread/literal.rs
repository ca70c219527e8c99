//! Values as Python writes them, which is how the reference tells a model what its tools answered.

use serde_json::{Map, Value as Json, json};

/// The value that a text is; nothing if it is only a text.
pub fn parse(text: &str) -> Option<Json> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value()?;
    (reader.at == text.len() && (value.is_object() || value.is_array())).then_some(value)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', ',', ':']).len();
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn value(&mut self) -> Option<Json> {
        self.skip();
        if self.take("{") {
            let mut members = Map::new();
            loop {
                self.skip();
                if self.take("}") {
                    return Some(Json::Object(members));
                }
                let name = self.value()?.as_str()?.to_owned();
                members.insert(name, self.value()?);
            }
        }
        if self.take("[") {
            let mut items = Vec::new();
            loop {
                self.skip();
                if self.take("]") {
                    return Some(Json::Array(items));
                }
                items.push(self.value()?);
            }
        }
        for (word, value) in [
            ("True", json!(true)),
            ("False", json!(false)),
            ("None", Json::Null),
            ("<<VOLATILE>>", json!("<<VOLATILE>>")),
        ] {
            if self.take(word) {
                return Some(value);
            }
        }
        let quote = self.rest().chars().next()?;
        if quote != '\'' && quote != '"' {
            let end = self.rest().find([',', '}', ']']).unwrap_or(self.rest().len());
            let number = self.rest()[..end].trim().parse().ok()?;
            self.at += end;
            return Some(Json::Number(number));
        }
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    other => text.push(other),
                },
                c if c == quote => {
                    self.at += index + 1;
                    return Some(Json::String(text));
                }
                c => text.push(c),
            }
        }
        None
    }
}

#[test]
fn literals_written_by_python_are_read() {
    let read = parse("{'a': [1, 2.5, True, None], \"it's\": 'x\\n\\'y\\'', 'e': <<VOLATILE>>}").unwrap();
    assert_eq!(read, json!({"a": [1, 2.5, true, null], "it's": "x\n'y'", "e": "<<VOLATILE>>"}));
    assert_eq!(parse("Missing: a"), None);
}
