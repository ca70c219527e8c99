//! The prompt of a directive, in the two forms that we write.

use cuebook::dialect::directive::{self, Directive, Returns, Wording};
use serde_json::{Map, Value as Json};

pub fn check(case: &Json) -> Result<(), String> {
    let said = case["input"]["directive"].as_object().unwrap();
    let directive = Directive::from_json("case", said).map_err(|error| error.to_string())?;
    let filled = directive.fill(&Map::new()).map_err(|error| error.to_string())?;
    for (variant, returns) in [("D", Returns::Call), ("R", Returns::Block)] {
        let Some(expected) = case["expect"][variant].as_str() else { continue };
        let rendered = directive::render(&filled, &Wording { returns, ..Wording::default() })
            .map_err(|error| error.to_string())?;
        let mut at = 0;
        for span in rendered.spans() {
            assert_eq!(span.range.start, at, "spans cover the text");
            at = span.range.end;
        }
        assert_eq!(at, rendered.text().len());
        if rendered.text() != expected {
            return Err(format!("{variant}: expected {expected:?}, got {:?}", rendered.text()));
        }
    }
    Ok(())
}
