//! Random templates from a seed: patterns that are filled with others.
//!
//! In a pattern `@` and a letter stand for something random: `@e` an expression, `@o` an operand, `@a` a name or a literal, `@n` a
//! name that can be set, `@1` a list, `@2` a string, `@3` a number, `@k` a count, `@x` an argument, `@f` a filter, `@t` a test, `@m` a method, `@i` a subscript, `@s` statements, `@d` text,
//! `@b` and `@c` the beginning and the end of a tag, with or without marks for white space.

pub struct Generator(u64);

#[rustfmt::skip]
const ATOMS: &[&str] = &[
    "n", "m", "z", "f", "t", "no", "nil", "s", "e", "w", "xs", "ss", "em", "d", "nd", "us", "missing", "n", "s", "xs", "ss",
    "d", "us", "w", "tree", "u", "big", "q", "v", "1", "0", "-3", "2.5", "'ab'", "\"x\"", "''", "true", "none", "[1, 2]",
    "{'a': 1}", "(1, 'b')", "[]", "'a-b c'", "1_000", "1e3", "'%s %s'", "'{} {}'", "'<b>'", "'\\n'", "()", "(1,)", "{}", "'ß'",
    "'İ'", "range(3)", "[none, 1]", "[[1, 2], [3]]", "'12'", "' 7 '", "0.1", "True", "None", "'a' 'b'", "0x1f", "0b11", "0o17",
];
const NAMES: &[&str] = &["n", "q", "s", "xs", "v", "d", "ns"];
#[rustfmt::skip]
const ARGUMENTS: &[&str] = &[
    "1", "0", "-1", "2", "3", "10", "'a'", "''", "' '", "'-'", "none", "true", "false", "n", "s", "xs", "missing", "2.5",
    "'name'", "'age'", "'tags'", "'x'", "[1]", "d", "'upper'", "'odd'", "e", "'l'", "(1, 2)", "'a b'", "-2", "99", "0.5",
    "'name.0'", "'0'",
];
const COUNTS: &[&str] = &["0", "1", "2", "3", "5", "10", "-1", "n", "m", "true"];
#[rustfmt::skip]
const EXPRESSIONS: &[&str] = &[
    "@a", "@a", "@3 @p @3", "@2 @p @2", "@1 @p @1", "@e @p @e", "@e == @e", "@e ~ @e", "@e and @e", "@e or @e", "(@e)", "@o|@f",
    "@o|@f", "@o|@f|@f", "@o is @t", "@o is not @t", "@2.@m", "@2.@m", "@2.@m.@m", "@o.@m", "@o@i", "@o@i@i", "@e if @e",
    "@e if @e else @e", "not @o", "-@o", "+@o", "- @o", "[@e, @e]", "{'k': @e, @a: 2}", "(@e, @e)", "(@e,)", "@3 ** 2",
    "2 ** @k", "@3 // @3", "@3 % @3", "@3 + @3 * @3", "@1 + @1", "@2 * @k", "'%s|%s' % (@e, @e)", "'%d' % @3", "'%5.1f|' % @3",
    "'%r' % (@e,)", "'%-6s|' % @o", "'{:>6}|{!r}'.format(@e, @e)", "'{0}{1}{0}'.format(@e, @e)", "'{a[0]}'.format(a=@e)",
    "'{:05d}'.format(@3)", "'{:,.2f}'.format(@3)", "'{:^9}'.format(@o)", "'%(k)s' % {'k': @e}", "range(@x)|list",
    "range(@x, @x)|list", "range(@x, @x, @x)|list", "dict(a=@e)", "dict(@o, b=@e)", "dict(@o)", "namespace(a=@e).a",
    "@1|map(@x)|list", "@1|map(attribute=@x)|list", "@1|map(attribute=@x, default=@e)|list", "@1|select(@x)|list",
    "@1|reject(@x)|list", "@1|selectattr(@x)|list", "@1|selectattr(@x, @x)|list", "@1|selectattr(@x, 'eq', @e)|list",
    "@1|rejectattr(@x, 'in', @o)|list", "@1|groupby(@x)|map('list')|list", "@1|groupby(@x, default=@e)",
    "@1|sort(attribute=@x)", "@1|sort(@x, @x)", "@1|map('default', @e)|list", "@1|map('replace', 'a', @x)|list",
    "@1|map('join', '-')|list", "@1|join(@x)", "@1|join(@x, @x)", "@1|join(attribute=@x)", "@1|sum(@x)",
    "@1|sum(attribute=@x, start=@x)", "@1|unique(attribute=@x)|list", "@1|max(attribute=@x)", "@1|min(@x)",
    "@1|batch(@k, @x)|list", "@1|slice(@k, @x)|list", "@3|round(@x, @x)", "@3|round(1, 'floor')", "@3|round(method='ceil')",
    "@3|int(@x)", "@3|int(@x, 16)", "@3|float(@x)", "@2|truncate(@k, @x, @x)", "@2|truncate(@k, leeway=@k)",
    "@2|indent(@x, @x, @x)", "@2|center(@k)", "@2|replace(@x, @x)", "@2|replace(@x, @x, @x)", "@o|default(@e, @x)",
    "@2|trim(@x)", "@2|wordwrap(@k)", "@2|wordwrap(5, @x, @x)", "@o|dictsort(@x, @x)", "@o|dictsort(by='value')",
    "@o|dictsort(reverse=true)", "@o|tojson(@k)", "@o|attr(@x)", "@o|first is @t", "@o|striptags|@f", "@o|urlize",
    "@o|xmlattr(@x)", "@3|filesizeformat(@x)", "@2|format(@e)", "@2|format(@e, @e)", "@2|format(a=@e)", "@o|d(@e)|@f",
    "@o|items|list", "@o|list|@f", "@e in @o", "@e not in @o", "@o < @o <= @o", "@o == @o != @o", "@e and @e or @e",
    "(@o|@f) ~ (@o|@f)", "@o@i is @t", "not @e == @e", "-@o ** 2", "@o is @t and @o is not @t", "@o|@f is @t",
    "@o is divisibleby @a", "@o is in @o", "@o is eq @a", "@o is test", "@o is filter", "@o|string|@f", "@o.@m|@f", "(@e)@i",
    "[@e, @e]|@f", "{'a': @e, 'b': @e}|@f", "(@e, @e)|@f", "cycler(@e, @e).next()", "joiner(@x)()", "s[@e]", "xs[@e:@e]",
    "w[@e:@e:@e]", "d[@e]", "@o|upper|lower|@f",
];
const LISTS: &[&str] = &[
    "xs",
    "ss",
    "us",
    "tree",
    "em",
    "[@a, @a]",
    "(@3, @3)",
    "d.items()",
    "w.split()",
    "range(@x)",
    "xs[1:]",
    "us|map(attribute='name')|list",
    "([@e, @e])",
    "d",
];
#[rustfmt::skip]
const STRINGS: &[&str] = &[
    "s", "w", "u", "e", "'ab'", "'a-b c'", "'<b>'", "ss[0]", "us[0].name", "(@2 ~ @2)", "(@2|upper)", "'x\\ny'", "(@a|string)",
    "'%s'", "d.b",
];
const NUMBERS: &[&str] = &[
    "n",
    "m",
    "z",
    "f",
    "1",
    "2",
    "10",
    "-3",
    "2.5",
    "0.1",
    "(@3 + @3)",
    "xs[0]",
    "us[0].age",
    "(w|length)",
    "t",
    "1e3",
    "big",
    "'7'",
];
#[rustfmt::skip]
const BINARY: &[&str] = &[
    "+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in", "~", "==", "+",
    "and not",
];
const FILTERS: &[&str] = &[
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
    "forceescape",
    "tojson(indent=2)",
    "batch(2, '-')|list",
    "slice(3, 'x')|list",
    "map('length')|list",
    "map('int')|list",
    "sort(case_sensitive=true)",
    "unique(true)|list",
    "max(true)",
    "map('first')|list",
    "groupby('tags')|list",
    "dictsort(true)",
    "map(attribute='tags.0')|list",
    "indent('> ')",
    "indent(blank=true)",
    "int(base=2)",
    "urlize(10)",
    "truncate(4, leeway=0)",
    "replace('', '.')",
    "center",
    "attr('upper')",
    "list|last",
    "map('string')|join('+')",
    "rejectattr('tags')|list",
    "select('string')|list",
    "reject('mapping')|list",
];
#[rustfmt::skip]
const TESTS: &[&str] = &[
    "defined", "undefined", "none", "true", "false", "boolean", "integer", "float", "number", "string", "sequence", "mapping",
    "iterable", "callable", "odd", "even", "divisibleby(2)", "divisibleby 3", "lower", "upper", "eq 3", "ne('x')", "gt 1",
    "lt 2", "in [1, 'a']", "sameas none", "escaped", "ge 2", "le(2)", "equalto 1", "greaterthan(0)", "lessthan 5", "==(3)",
    "in(xs)", "in 'abc'", "sameas(true)", "filter", "test", "in d",
];
const METHODS: &[&str] = &[
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
    "split(@x)",
    "split(@x, @x)",
    "rsplit(@x, @x)",
    "strip(@x)",
    "rstrip(@x)",
    "replace(@x, @x)",
    "replace(@x, @x, @x)",
    "join(@o)",
    "find(@x)",
    "find(@x, @x)",
    "rfind(@x, @x, @x)",
    "count(@x)",
    "index(@x)",
    "startswith(@x)",
    "startswith(@x, @x)",
    "endswith(@x)",
    "zfill(@k)",
    "center(@k)",
    "ljust(@k, @x)",
    "rjust(@k)",
    "partition(@x)",
    "rpartition(@x)",
    "get(@x)",
    "get(@x, @x)",
    "swapcase()",
    "casefold()",
    "expandtabs(2)",
    "isalnum()",
    "isspace()",
    "istitle()",
    "isupper()",
    "isnumeric()",
    "isdecimal()",
    "isidentifier()",
    "isprintable()",
    "isascii()",
    "splitlines(true)",
    "removesuffix(@x)",
    "format(@e)",
    "format(a=@e)",
    "copy()",
    "conjugate()",
    "bit_length()",
    "is_integer()",
    "values()|list",
    "keys()|list",
    "format_map(d)",
    "index(1)",
    "count(1)",
    "index(@x, @x)",
    "real",
    "numerator",
    "hex()",
    "as_integer_ratio()",
    "split(sep='-')",
    "split(maxsplit=1)",
    "upper",
    "nothing",
    "nothing()",
    "append(1)",
    "pop()",
    "__class__",
    "fromkeys(@o)",
    "denominator",
    "imag",
];
#[rustfmt::skip]
const SUBSCRIPTS: &[&str] = &[
    "[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[::2]", "[5]", "['a']", ".a", ".name", ".0", "['name']", "[1.0]", "[n]", "[:-1]",
    "[none:1]", "[-2:]", "[missing]", "[0, 1]", "[true]", ".items", "[0:0]", "[@e]", "[@e:]", "[:@e]", "[@x:@x]", "[@x:@x:@x]",
    "[::-2]", "[-1:0:-1]", ".1.0", "['a', 'b']", "[5:1]", "[::0]", ".tags[0]", "[0]['name']", ".b", "[:]", "[::]", "[-99:99]",
];
const ITERABLES: &[&str] = &[
    "xs",
    "ss",
    "us",
    "w",
    "d",
    "em",
    "range(3)",
    "d.items()",
    "us|map(attribute='name')",
    "xs|reverse",
    "tree",
    "nd",
    "[@e, @e]",
    "@e",
    "xs[1:]",
    "us|groupby('age')",
    "ss|batch(2)",
    "nil",
    "missing",
];
#[rustfmt::skip]
const TEXT: &[&str] = &[
    "", "", " ", "\n", "x", " y ", "\n\n", "  \n  ", "a{b}c", "\n  z", "#", "\t", "{ {", "}} ",
];
const STATEMENTS: &[&str] = &[
    "{{ @e }};",
    "{{ @e }};",
    "{{- @e -}};",
    "@d{{ @e }}@d",
    "@bif @e@c@d@s@bendif@c@d",
    "@bif @e@c@s@belse@c@s@bendif@c",
    "@d@bif @e@c@s@belif @e@c@d@s@belse@c@s@bendif@c",
    "@d@bfor q in @l@c@d@s@d@bendfor@c@d",
    "@bfor q in @l@c{{ loop.index }}/{{ loop.last }}@s@belse@cnone@bendfor@c",
    "@bfor q in @l if @e@c{{ q }}@s@bendfor@c",
    "@bfor q in @l if q@c{{ loop.length }}{{ q }}@s@belse@c-@bendfor@c",
    "@bfor q, v in @l@c{{ q }}={{ v }}@s@bendfor@c",
    "@bfor k, (q, v) in [(1, (2, 3)), @e]@c{{ k }}{{ v }}@bendfor@c",
    "@bfor q in @l@c@bfor v in q@c{{ loop.index0 }}{{ loop.depth }}{{ v }},@bendfor@c@s@bendfor@c",
    "@bfor q in @l@c{{ loop.cycle('a', @e) }}{{ loop.previtem }}{{ loop.nextitem is defined }}{{ loop.revindex }}{{ loop.changed(q) }}@bendfor@c",
    "@bfor q in tree recursive@c{{ q.v }}{{ loop.depth }}{{ loop.first }}@s@bif q.c@c[{{ loop(q.c) }}]@bendif@c@bendfor@c",
    "@bfor q in tree if q.v recursive@c{{ q.v }}({{ loop(q.c) }})@belse@c-@bendfor@c",
    "@bset @n = @e@c@s",
    "@bset @n, @n = @e, @e@c@s{{ n }}",
    "@bset (q, v) = @e@c{{ q }}{{ v }}",
    "@bset q@c@d@s@bendset@c{{ q }}",
    "@bset q | @f@c@d@s@bendset@c{{ q }}",
    "@bset @n | replace(@x, @x)@c@s@bendset@c{{ q }}{{ s|length }}",
    "@bwith @n = @e, q = @n@c@s{{ q }}@bendwith@c",
    "@bwith@c@bset q = @e@c@s@bendwith@c{{ q }}",
    "@bmacro q(a, b=@e)@c{{ a }}@s@bendmacro@c{{ q(@x) }}",
    "@bmacro q(a, b=a)@c{{ a }}{{ b }}{{ varargs }}{{ kwargs }}@bendmacro@c{{ q(@e, @e, @e, c=@e) }}",
    "@bmacro q(a, b=@e)@c{{ a }}@s@bendmacro@c{{ q(n, 2) }}{{ q(b=3) }}{{ q(xs, b=s) }}",
    "@bmacro q()@c{{ @n }}@s@bendmacro@c{{ q() }}{{ q()|length }}",
    "@bmacro q(a)@c@s@bendmacro@c{{ q(1, 2) }}",
    "@bmacro q(a)@c{{ q.name }}{{ q.arguments }}{{ caller is defined }}@bendmacro@c{{ q(*xs) }}",
    "@bmacro q(a, b)@c{{ a }}{{ b }}@bendmacro@c{{ q(**d) }}{{ q(*ss[:2]) }}",
    "@bmacro q(a=1)@c{% if a > 0 %}{{ a }}{{ q(a - 1) }}{% endif %}@bendmacro@c{{ q(3) }}",
    "@bfilter @f@c@d@s@bendfilter@c",
    "@bfilter upper|replace('A', @x)@c@s@bendfilter@c",
    "@bfilter indent(2, true)@c@d@s@bendfilter@c",
    "@bmacro q(a)@c<{{ caller(a) }}>@bendmacro@c@bcall(n) q(@x)@c@s@bendcall@c",
    "@bmacro q()@c<{{ caller() }}{{ caller(1) }}>@bendmacro@c@bcall(n=@e) q()@c{{ n }}@s@bendcall@c",
    "@bmacro q()@c{{ caller() }}@bendmacro@c@bcall q()@c@d@s@bendcall@c",
    "@bset ns = namespace(v=@e)@c@bfor q in xs@c@bset ns.v = ns.v ~ q@c@bendfor@c{{ ns.v }}@s",
    "@bset ns = namespace(@o)@c{{ ns.a }}{{ ns.b }}",
    "@bset ns.v = @e@c",
    "@bfor q in xs@c@bif q == 1@c@bbreak@c@bendif@c@s@bendfor@c",
    "@bfor q in xs@c@bif @e@c@bcontinue@c@bendif@c@s@bendfor@c",
    "{# @d #}@d",
    "{#- @d -#}@d",
    "@braw@c@d{{ x }}{% y %}@bendraw@c@d",
    "@bdo @e@c",
    "@bprint @e@c",
    "@bprint @e, @e@c",
    "@bblock a@c@s@bendblock@c",
    "@bblock b scoped@c{{ q }}@s@bendblock b@c",
    "@bfor q in xs@c@bblock c@c{{ q }}{{ loop }}@bendblock@c@bendfor@c",
    "@bfor q in xs@c@bblock e scoped@c{{ q }}{{ loop.index }}@bendblock@c@bendfor@c",
    "{{ self.a() }}",
    "@binclude 'part'@c",
    "@binclude ['none', 'part']@c",
    "@binclude 'none' ignore missing@c",
    "@binclude @e@c",
    "@bset q = @e@c@binclude 'part'@c",
    "@bimport 'macros' as k@c{{ k.m(@e) }}{{ k.value }}{{ k.nothing }}",
    "@bfrom 'macros' import m, value as v@c{{ m(@e) }}{{ v }}@s",
    "@bfrom 'macros' import m with context@c{{ m() }}",
    "@bfrom 'macros' import nothing@c{{ nothing }}",
    "@bfrom 'macros' import wrap@c@bcall wrap(@e)@c@s@bendcall@c",
    "@bautoescape false@c{{ @e }}{{ '<' ~ s }}@s@bendautoescape@c",
    "@bautoescape true@c{{ '<b>'|safe }}{{ @e }}{{ s|e }}@s@bendautoescape@c",
    "@bif @e@c@bset q = @e@c@bendif@c{{ q }}",
    "@bfor q in xs@c@bset v = @e@c{{ v }}@bendfor@c{{ v }}{{ q }}",
    "@bfor loop in xs@c{{ loop }}@bendfor@c",
    "@bset loop = @e@c{{ loop }}",
    "@bif false@c@bfor q in 1@c@bendfor@c@bendif@c{{ @e }}",
    "{{ @e, @e }}",
    "{{ @e }",
    "@bif @e",
    "@bendif@c",
    "{{ @e @e }}",
    "@bfor q@c@bendfor@c",
    "@bblock a@c1@bendblock@c@bblock a@c2@bendblock@c",
];
#[rustfmt::skip]
const CHILDREN: &[&str] = &[
    "@d@binclude 'part' without context@c@s", "@bextends 'base'@c@d@bblock one@c@s@bendblock@c@d@s",
    "@bextends 'base'@c@bblock one@c{{ super() }}@s@bendblock@c@bblock two@c@bset q = @e@c{{ self.one() }}{{ q }}@bendblock@c",
    "@bset q = @e@c@bextends 'base'@c@bblock two@c{{ q }}@s@bendblock@c",
    "@bextends 'middle'@c@bblock one@c<{{ super() }}{{ super.super() }}>@s@bendblock@c",
    "@bif @e@c@bextends 'base'@c@belse@c@bextends 'middle'@c@bendif@c@s@bblock one@c@s@bendblock@c", "x@s@bextends @e@c",
    "@bextends 'base'@c@bmacro q()@c@s@bendmacro@c@bblock one@c{{ q() }}@bendblock@c@bimport 'macros' as k@c@bblock two@c{{ k.m(1) }}@bendblock@c",
    "@bextends 'middle'@c@bblock three@c@s@bendblock@c@bblock two@c@bendblock@c",
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

    fn fill(&mut self, pattern: &str, depth: usize, out: &mut String) {
        let mut parts = pattern.split('@');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (kind, rest) = part.split_at(1);
            self.part(kind, depth, out);
            out.push_str(rest);
        }
    }

    fn part(&mut self, kind: &str, depth: usize, out: &mut String) {
        let inner = depth.saturating_sub(1);
        match kind {
            "e" if depth > 0 => self.filled(EXPRESSIONS, inner, out),
            "o" if depth > 0 && self.number(3) == 0 => {
                out.push('(');
                self.filled(EXPRESSIONS, inner, out);
                out.push(')');
            }
            "s" if depth > 0 => (0..1 + self.number(2)).for_each(|_| self.filled(STATEMENTS, inner, out)),
            "s" => self.fill("{{ @a }};", 0, out),
            "1" if self.number(6) > 0 => self.filled(LISTS, depth, out),
            "2" if self.number(6) > 0 => self.filled(STRINGS, depth, out),
            "3" if self.number(6) > 0 => self.filled(NUMBERS, depth, out),
            "e" | "o" | "a" | "1" | "2" | "3" => self.filled(ATOMS, inner, out),
            "l" => self.filled(ITERABLES, inner, out),
            "n" => self.filled(NAMES, inner, out),
            "x" => self.filled(ARGUMENTS, inner, out),
            "k" => self.filled(COUNTS, inner, out),
            "p" => self.filled(BINARY, inner, out),
            "f" => self.filled(FILTERS, inner, out),
            "t" => self.filled(TESTS, inner, out),
            "m" => self.filled(METHODS, inner, out),
            "i" => self.filled(SUBSCRIPTS, inner, out),
            "d" => self.filled(TEXT, inner, out),
            "b" => self.filled(&["{% ", "{% ", "{%", "{%- ", "{%-", "{%+ "], inner, out),
            "c" => self.filled(&[" %}", " %}", "%}", " -%}", "-%}", " +%}"], inner, out),
            other => panic!("a pattern has `@{other}`"),
        }
    }

    fn filled(&mut self, from: &[&str], depth: usize, out: &mut String) {
        let pattern = self.pick(from);
        self.fill(pattern, depth, out);
    }

    /// A template: an expression, statements, or a child of another template.
    pub fn template(&mut self) -> String {
        let mut out = String::new();
        let depth = 1 + self.number(3);
        match self.number(12) {
            0..=5 => self.fill("{{ @e }}", depth, &mut out),
            6 => self.filled(CHILDREN, 1, &mut out),
            _ => self.fill("@s", depth.min(2), &mut out),
        }
        out
    }
}
