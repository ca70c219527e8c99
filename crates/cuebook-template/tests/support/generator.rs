//! Random templates from a seed.

pub struct Generator(u64);

const NAMES: [&str; 17] =
    ["n", "m", "z", "f", "t", "no", "nil", "s", "e", "w", "xs", "ss", "em", "d", "nd", "us", "missing"];
const LITERALS: [&str; 14] = [
    "1", "0", "-3", "2.5", "'ab'", "\"x\"", "''", "true", "none", "[1, 2]", "{'a': 1}", "(1, 'b')", "[]",
    "'a-b c'",
];
const BINARY: [&str; 20] = [
    "+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in", "~",
    "==", "+",
];
const FILTERS: [&str; 60] = [
    "upper",
    "lower",
    "title",
    "capitalize",
    "trim",
    "length",
    "list",
    "string",
    "int",
    "float",
    "first",
    "last",
    "join",
    "join(', ')",
    "sort",
    "sort(reverse=true)",
    "reverse",
    "reverse|list",
    "unique|list",
    "sum",
    "max",
    "min",
    "abs",
    "round",
    "round(1)",
    "default('d')",
    "default('d', true)",
    "d(3)",
    "replace('a', 'b')",
    "truncate(3, true, '')",
    "truncate(5)",
    "wordcount",
    "center(9)",
    "indent",
    "indent(2, true)",
    "e",
    "escape",
    "safe",
    "tojson",
    "items|list",
    "dictsort",
    "batch(2)|list",
    "slice(2)|list",
    "map('upper')|list",
    "map(attribute='name')|list",
    "select|list",
    "select('odd')|list",
    "reject('none')|list",
    "selectattr('age')|list",
    "selectattr('age', 'gt', 10)|list",
    "groupby('age')",
    "groupby('name')|list",
    "filesizeformat",
    "striptags",
    "urlencode",
    "wordwrap(4)",
    "format(1)",
    "count",
    "xmlattr",
    "pprint",
];
const TESTS: [&str; 26] = [
    "defined",
    "undefined",
    "none",
    "true",
    "false",
    "boolean",
    "integer",
    "float",
    "number",
    "string",
    "sequence",
    "mapping",
    "iterable",
    "callable",
    "odd",
    "even",
    "divisibleby(2)",
    "divisibleby 3",
    "lower",
    "upper",
    "eq 3",
    "ne('x')",
    "gt 1",
    "lt 2",
    "in [1, 'a']",
    "sameas none",
];
const METHODS: [&str; 36] = [
    "upper()",
    "lower()",
    "strip()",
    "split()",
    "split('-')",
    "split(' ', 1)",
    "rsplit(None, 1)",
    "splitlines()",
    "startswith('a')",
    "endswith(('c', 'd'))",
    "replace('a', 'z')",
    "replace(' ', '', 1)",
    "title()",
    "capitalize()",
    "join(['x', 'y'])",
    "find('b')",
    "rfind('l')",
    "count('l')",
    "index('a')",
    "isdigit()",
    "isalpha()",
    "islower()",
    "zfill(5)",
    "center(7, '*')",
    "ljust(4)",
    "partition('-')",
    "format(1, 2)",
    "items()",
    "keys()",
    "values()",
    "get('a')",
    "get('q', 9)",
    "items()|list",
    "keys()|sort",
    "lstrip('a')",
    "removeprefix('a')",
];
const SUBSCRIPTS: [&str; 22] = [
    "[0]",
    "[-1]",
    "[1:]",
    "[:2]",
    "[::-1]",
    "[::2]",
    "[5]",
    "['a']",
    ".a",
    ".name",
    ".0",
    "['name']",
    "[1.0]",
    "[n]",
    "[:-1]",
    "[none:1]",
    "[-2:]",
    "[missing]",
    "[0, 1]",
    "[true]",
    ".items",
    "[0:0]",
];

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn number(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % below as u64) as usize
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.number(from.len())]
    }

    fn atom(&mut self) -> String {
        if self.number(3) == 0 { self.pick(&LITERALS) } else { self.pick(&NAMES) }.to_owned()
    }

    pub fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        match self.number(13) {
            0 => self.atom(),
            1 | 2 => {
                let (left, operator, right) =
                    (self.expression(depth - 1), self.pick(&BINARY), self.expression(depth - 1));
                format!("{left} {operator} {right}")
            }
            3 => format!("({})", self.expression(depth - 1)),
            4 | 5 => {
                let value = self.operand(depth - 1);
                format!("{value}|{}", self.pick(&FILTERS))
            }
            6 => {
                let value = self.operand(depth - 1);
                let not = self.pick(&["", "not "]);
                format!("{value} is {not}{}", self.pick(&TESTS))
            }
            7 => {
                let value = self.operand(depth - 1);
                format!("{value}.{}", self.pick(&METHODS))
            }
            8 => {
                let value = self.operand(depth - 1);
                format!("{value}{}", self.pick(&SUBSCRIPTS))
            }
            9 => {
                let (value, test) = (self.expression(depth - 1), self.expression(depth - 1));
                match self.number(3) {
                    0 => format!("{value} if {test}"),
                    _ => format!("{value} if {test} else {}", self.expression(depth - 1)),
                }
            }
            10 => format!("{} {}", self.pick(&["not", "-", "+"]), self.operand(depth - 1)),
            11 => format!("[{}, {}]", self.expression(depth - 1), self.expression(depth - 1)),
            _ => format!(
                "{{'k': {}, {}: 2}}",
                self.expression(depth - 1),
                self.pick(&["1", "'z'", "none", "n"])
            ),
        }
    }

    fn operand(&mut self, depth: usize) -> String {
        match self.number(3) {
            0 if depth > 0 => format!("({})", self.expression(depth)),
            _ => self.atom(),
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        (0..1 + self.number(3)).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        let value = self.expression(2);
        if depth == 0 {
            return format!("{{{{ {value} }}}};");
        }
        let name = self.pick(&["n", "q", "s", "xs"]);
        let inner = self.statements(depth - 1);
        match self.number(16) {
            0 => format!("{{% if {value} %}}{inner}{{% endif %}}"),
            1 => format!("{{% if {value} %}}{inner}{{% else %}}{}{{% endif %}}", self.statements(depth - 1)),
            2 => format!("{{% for q in {value} %}}{inner}{{% endfor %}}"),
            3 => format!(
                "{{% for q in {} %}}{{{{ loop.index }}}}/{{{{ loop.last }}}}{inner}{{% else %}}none{{% endfor %}}",
                self.pick(&["xs", "ss", "us", "w", "d", "em", "range(3)"])
            ),
            4 => format!("{{% for q in xs if {value} %}}{{{{ q }}}}{inner}{{% endfor %}}"),
            5 => format!("{{% set {name} = {value} %}}{inner}"),
            6 => format!("{{% set q %}}{inner}{{% endset %}}{{{{ q }}}}"),
            7 => format!("{{% with {name} = {value}, q = {name} %}}{inner}{{{{ q }}}}{{% endwith %}}"),
            8 => format!(
                "{{% macro q(a, b={value}) %}}{{{{ a }}}}{inner}{{% endmacro %}}{{{{ q({}) }}}}",
                self.pick(&["1", "n, 2", "b=3", "xs, b=s", "", "1, 2, 3"])
            ),
            9 => format!(
                "{{% filter {} %}}{inner}{{% endfilter %}}",
                self.pick(&["upper", "trim", "replace('a', 'b')", "length", "indent"])
            ),
            10 => format!("  {{%- if {value} -%}}  {inner}  {{%- endif %}}\n"),
            11 => format!(
                "{{% macro q(a) %}}<{{{{ caller(a) }}}}>{{% endmacro %}}{{% call(n) q({}) %}}{inner}{{% endcall %}}",
                self.pick(&["1", "s", "xs"])
            ),
            12 => format!(
                "{{% set ns = namespace(v={value}) %}}{{% for q in xs %}}{{% set ns.v = ns.v ~ q %}}{{% endfor %}}{{{{ ns.v }}}}{inner}"
            ),
            13 => format!(
                "{{% for q in xs %}}{{% if q == 1 %}}{{% {} %}}{{% endif %}}{inner}{{% endfor %}}",
                self.pick(&["break", "continue"])
            ),
            14 => format!(
                "{{# {} #}}{{% raw %}}{{{{ x }}}}{{% endraw %}}{inner}",
                self.pick(&["c", "{{ a }}", ""])
            ),
            _ => format!("{{{{ {value} }}}};{inner}"),
        }
    }

    /// A template: an expression, or statements.
    pub fn template(&mut self) -> String {
        if self.number(3) == 0 {
            return self.statements(2);
        }
        let depth = 1 + self.number(3);
        format!("{{{{ {} }}}}", self.expression(depth))
    }
}
