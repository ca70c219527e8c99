//! The ways in which a template's values read as text and compare.

/// How values print, compare and go missing in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Style {
    /// As in Python's Jinja2: `True`, `None`, `1.0`; what makes no sense there is an error here.
    #[default]
    Python,
    /// As in `.prompty` files, which render the same in every language:
    ///
    /// - `true` and `false`; null and what is missing print nothing; numbers print the fewest digits that give the same
    ///   number, without an exponent and without `.0`;
    /// - a list prints its items one after the other, a map prints as JSON without spaces (`{"a":1,"b":[true,null]}`);
    /// - `a.b.c` is missing if any part of it is, a loop over something that has no items runs no time, and what is missing
    ///   equals null;
    /// - truth values are no numbers (`true == 1` is false), and values of unlike kinds have no order (`'a' < 1` is false).
    Portable,
    /// As the library `transformers` renders chat templates of models: the filter `tojson` keeps the order of keys and escapes
    /// nothing for HTML, and `strftime_now`, `raise_exception` and `{% generation %}` exist.
    Chat,
}
