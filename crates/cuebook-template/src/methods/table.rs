//! The methods, for help and the reference.

use crate::render::Spans::{self, Keeps, Maps, Mixes};

/// A method: what it belongs to, how it is called, and what it is for.
pub(crate) struct Method {
    pub owner: &'static str,
    pub signature: &'static str,
    pub spans: Spans,
    pub about: &'static str,
    /// A template and its text; empty for what is refused.
    pub example: (&'static str, &'static str),
}

impl Method {
    pub fn name(&self) -> &'static str {
        self.signature.split('(').next().unwrap_or_default()
    }
}

const fn row(
    owner: &'static str,
    signature: &'static str,
    spans: Spans,
    about: &'static str,
    example: (&'static str, &'static str),
) -> Method {
    Method { owner, signature, spans, about, example }
}

pub(crate) static METHODS: [Method; 67] = [
    row(
        "string",
        "capitalize()",
        Maps,
        "The first character in upper case, all others in lower case.",
        ("{{ 'aBC'.capitalize() }}", "Abc"),
    ),
    row(
        "string",
        "casefold()",
        Maps,
        "The text for comparisons that ignore case.",
        ("{{ 'Straße'.casefold() }}", "strasse"),
    ),
    row(
        "string",
        "center(width, fillchar=' ')",
        Maps,
        "The text in the middle of a field.",
        ("{{ 'a'.center(3, '*') }}", "*a*"),
    ),
    row(
        "string",
        "count(sub, start=none, end=none)",
        Mixes,
        "How often a part is in the text.",
        ("{{ 'banana'.count('an') }}", "2"),
    ),
    row("string", "encode(encoding='utf-8')", Mixes, "Refused: a template has no bytes.", ("", "")),
    row(
        "string",
        "endswith(suffix, start=none, end=none)",
        Mixes,
        "Whether the text ends with `suffix`.",
        ("{{ 'a.md'.endswith(('.md', '.txt')) }}", "True"),
    ),
    row(
        "string",
        "expandtabs(tabsize=8)",
        Mixes,
        "The text with spaces instead of tabs.",
        ("{{ 'a\\tb'.expandtabs(4) }}", "a   b"),
    ),
    row(
        "string",
        "find(sub, start=none, end=none)",
        Mixes,
        "Where a part is, or -1.",
        ("{{ 'abc'.find('c') }}", "2"),
    ),
    row(
        "string",
        "format(…)",
        Maps,
        "The text with its fields in braces filled in.",
        ("{{ '{0}-{name}'.format(1, name='x') }}", "1-x"),
    ),
    row(
        "string",
        "format_map(mapping)",
        Maps,
        "The same with the values of a dict.",
        ("{{ '{a}'.format_map({'a': 1}) }}", "1"),
    ),
    row(
        "string",
        "index(sub, start=none, end=none)",
        Mixes,
        "Where a part is; an error if it is missing.",
        ("{{ 'abc'.index('b') }}", "1"),
    ),
    row(
        "string",
        "isalnum()",
        Mixes,
        "Whether all characters are letters or digits.",
        ("{{ 'a1'.isalnum() }}", "True"),
    ),
    row(
        "string",
        "isalpha()",
        Mixes,
        "Whether all characters are letters.",
        ("{{ 'a1'.isalpha() }}", "False"),
    ),
    row(
        "string",
        "isascii()",
        Mixes,
        "Whether all characters belong to ASCII.",
        ("{{ 'ü'.isascii() }}", "False"),
    ),
    row(
        "string",
        "isdecimal()",
        Mixes,
        "Whether all characters are decimal digits.",
        ("{{ '12'.isdecimal() }}", "True"),
    ),
    row("string", "isdigit()", Mixes, "Whether all characters are digits.", ("{{ '1²'.isdigit() }}", "True")),
    row(
        "string",
        "isidentifier()",
        Mixes,
        "Whether the text could be a name.",
        ("{{ 'a_1'.isidentifier() }}", "True"),
    ),
    row(
        "string",
        "islower()",
        Mixes,
        "Whether all letters are in lower case.",
        ("{{ 'ab'.islower() }}", "True"),
    ),
    row(
        "string",
        "isnumeric()",
        Mixes,
        "Whether all characters are numbers.",
        ("{{ '½'.isnumeric() }}", "True"),
    ),
    row(
        "string",
        "isprintable()",
        Mixes,
        "Whether all characters can be printed.",
        ("{{ 'a\\n'.isprintable() }}", "False"),
    ),
    row(
        "string",
        "isspace()",
        Mixes,
        "Whether all characters are white space.",
        ("{{ ' '.isspace() }}", "True"),
    ),
    row(
        "string",
        "istitle()",
        Mixes,
        "Whether every word begins with a capital.",
        ("{{ 'Ab Cd'.istitle() }}", "True"),
    ),
    row(
        "string",
        "isupper()",
        Mixes,
        "Whether all letters are in upper case.",
        ("{{ 'AB'.isupper() }}", "True"),
    ),
    row(
        "string",
        "join(iterable)",
        Maps,
        "The items with the text between them.",
        ("{{ ', '.join(['a', 'b']) }}", "a, b"),
    ),
    row(
        "string",
        "ljust(width, fillchar=' ')",
        Maps,
        "The text at the left of a field.",
        ("{{ 'a'.ljust(3, '.') }}", "a.."),
    ),
    row("string", "lower()", Maps, "The text in lower case.", ("{{ 'AB'.lower() }}", "ab")),
    row(
        "string",
        "lstrip(chars=none)",
        Keeps,
        "The text without white space at its beginning.",
        ("[{{ ' a '.lstrip() }}]", "[a ]"),
    ),
    row(
        "string",
        "partition(sep)",
        Keeps,
        "The text before the first separator, the separator, and the text after it.",
        ("{{ 'a=b=c'.partition('=') }}", "('a', '=', 'b=c')"),
    ),
    row(
        "string",
        "removeprefix(prefix)",
        Keeps,
        "The text without this beginning.",
        ("{{ 'unhappy'.removeprefix('un') }}", "happy"),
    ),
    row(
        "string",
        "removesuffix(suffix)",
        Keeps,
        "The text without this end.",
        ("{{ 'a.md'.removesuffix('.md') }}", "a"),
    ),
    row(
        "string",
        "replace(old, new, count=-1)",
        Maps,
        "The text with one part replaced by another.",
        ("{{ 'aa'.replace('a', 'b', 1) }}", "ba"),
    ),
    row(
        "string",
        "rfind(sub, start=none, end=none)",
        Mixes,
        "Where a part is for the last time, or -1.",
        ("{{ 'abab'.rfind('a') }}", "2"),
    ),
    row(
        "string",
        "rindex(sub, start=none, end=none)",
        Mixes,
        "The same; an error if it is missing.",
        ("{{ 'abab'.rindex('b') }}", "3"),
    ),
    row(
        "string",
        "rjust(width, fillchar=' ')",
        Maps,
        "The text at the right of a field.",
        ("{{ 'a'.rjust(3, '.') }}", "..a"),
    ),
    row(
        "string",
        "rpartition(sep)",
        Keeps,
        "The text before the last separator, the separator, and the text after it.",
        ("{{ 'a=b=c'.rpartition('=') }}", "('a=b', '=', 'c')"),
    ),
    row(
        "string",
        "rsplit(sep=none, maxsplit=-1)",
        Keeps,
        "The parts between separators, cut from the right.",
        ("{{ 'a b c'.rsplit(' ', 1) }}", "['a b', 'c']"),
    ),
    row(
        "string",
        "rstrip(chars=none)",
        Keeps,
        "The text without white space at its end.",
        ("[{{ ' a '.rstrip() }}]", "[ a]"),
    ),
    row(
        "string",
        "split(sep=none, maxsplit=-1)",
        Keeps,
        "The parts between separators, or between white space.",
        ("{{ 'a b  c'.split() }}", "['a', 'b', 'c']"),
    ),
    row(
        "string",
        "splitlines(keepends=false)",
        Keeps,
        "The lines.",
        ("{{ 'a\\nb'.splitlines() }}", "['a', 'b']"),
    ),
    row(
        "string",
        "startswith(prefix, start=none, end=none)",
        Mixes,
        "Whether the text starts with `prefix`.",
        ("{{ 'abc'.startswith('ab') }}", "True"),
    ),
    row(
        "string",
        "strip(chars=none)",
        Keeps,
        "The text without white space, or other characters, at both ends.",
        ("{{ '--a--'.strip('-') }}", "a"),
    ),
    row(
        "string",
        "swapcase()",
        Maps,
        "The text with the case of every letter changed.",
        ("{{ 'aB'.swapcase() }}", "Ab"),
    ),
    row(
        "string",
        "title()",
        Maps,
        "The first letter of every word in upper case.",
        ("{{ 'ab cd'.title() }}", "Ab Cd"),
    ),
    row("string", "translate(table)", Mixes, "Refused: use `replace`.", ("", "")),
    row("string", "upper()", Maps, "The text in upper case.", ("{{ 'ab'.upper() }}", "AB")),
    row("string", "zfill(width)", Maps, "The text with zeros before it.", ("{{ '7'.zfill(3) }}", "007")),
    row("list", "copy()", Keeps, "The list.", ("{{ [1].copy() }}", "[1]")),
    row(
        "list",
        "count(value)",
        Mixes,
        "How often a value is in the list.",
        ("{{ [1, 2, 1].count(1) }}", "2"),
    ),
    row(
        "list",
        "index(value, start=0, stop=none)",
        Mixes,
        "Where a value is; an error if it is missing.",
        ("{{ [5, 6].index(6) }}", "1"),
    ),
    row("dict", "copy()", Keeps, "The dict.", ("{{ {'a': 1}.copy() }}", "{'a': 1}")),
    row(
        "dict",
        "fromkeys(keys, value=none)",
        Keeps,
        "A dict with these keys, which all have the value.",
        ("{{ {}.fromkeys('ab', 1) }}", "{'a': 1, 'b': 1}"),
    ),
    row(
        "dict",
        "get(key, default=none)",
        Keeps,
        "The value of a key, or the default.",
        ("{{ {'a': 1}.get('b', 2) }}", "2"),
    ),
    row("dict", "items()", Keeps, "The pairs.", ("{{ {'a': 1}.items()|list }}", "[('a', 1)]")),
    row("dict", "keys()", Keeps, "The keys.", ("{{ {'a': 1}.keys()|list }}", "['a']")),
    row("dict", "values()", Keeps, "The values.", ("{{ {'a': 1}.values()|list }}", "[1]")),
    row(
        "integer",
        "as_integer_ratio()",
        Mixes,
        "The number and 1.",
        ("{{ (3).as_integer_ratio() }}", "(3, 1)"),
    ),
    row("integer", "bit_count()", Mixes, "How many bits are set.", ("{{ (7).bit_count() }}", "3")),
    row("integer", "bit_length()", Mixes, "How many bits the number needs.", ("{{ (8).bit_length() }}", "4")),
    row("integer", "conjugate()", Keeps, "The number.", ("{{ (3).conjugate() }}", "3")),
    row(
        "float",
        "as_integer_ratio()",
        Mixes,
        "The number as a fraction.",
        ("{{ (0.75).as_integer_ratio() }}", "(3, 4)"),
    ),
    row("float", "conjugate()", Keeps, "The number.", ("{{ (1.5).conjugate() }}", "1.5")),
    row("float", "hex()", Mixes, "The number to the base 16.", ("{{ (1.5).hex() }}", "0x1.8000000000000p+0")),
    row(
        "float",
        "is_integer()",
        Mixes,
        "Whether the number has no fraction.",
        ("{{ (2.0).is_integer() }}", "True"),
    ),
    row(
        "loop",
        "changed(…)",
        Mixes,
        "Whether the arguments differ from those of the last round.",
        ("{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}", "True False True "),
    ),
    row(
        "loop",
        "cycle(…)",
        Keeps,
        "One of the arguments, in turn.",
        ("{% for x in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"),
    ),
    row(
        "cycler",
        "next()",
        Keeps,
        "The current item; the next one becomes current.",
        ("{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.current }}", "12"),
    ),
    row(
        "cycler",
        "reset()",
        Keeps,
        "The first item becomes current.",
        ("{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.reset() }}{{ c.current }}", "1None1"),
    ),
];

#[cfg(test)]
mod tests {
    use super::METHODS;

    #[test]
    fn every_method_has_a_row() {
        let rows = |owner: &str| -> Vec<&str> {
            METHODS.iter().filter(|method| method.owner == owner).map(super::Method::name).collect()
        };
        assert_eq!(rows("string"), super::super::strings::names());
        assert_eq!(rows("list"), super::super::LIST);
        assert_eq!(rows("dict"), super::super::DICT);
        assert_eq!(rows("integer"), super::super::INTEGER);
        assert_eq!(rows("float"), super::super::FLOAT);
        assert_eq!(rows("loop"), super::super::LOOP);
        assert_eq!(rows("cycler"), super::super::CYCLER);
    }
}
