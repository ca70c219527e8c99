//! Tokens: small, so that a template's tokens are one short list. What does not fit is kept beside them.

use super::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name,
    /// A string with its quotes; whether it has escapes.
    Text(bool),
    /// A number, by its place in [`Tokens::numbers`].
    Number(u32),
    Operator(Op),
    /// Something that begins no token, by the place of its message in [`Tokens::messages`].
    Error(u32),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub range: Range,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

/// The tokens of a template.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub all: Vec<Token>,
    pub numbers: Vec<Number>,
    pub messages: Vec<String>,
}

impl Tokens {
    pub fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.all.push(Token { kind, range: Range::new(start, end) });
    }

    pub fn push_number(&mut self, number: Number, start: usize, end: usize) {
        self.numbers.push(number);
        self.push(Kind::Number(self.numbers.len() as u32 - 1), start, end);
    }

    pub fn push_error(&mut self, message: impl Into<String>, start: usize, end: usize) {
        self.messages.push(message.into());
        self.push(Kind::Error(self.messages.len() as u32 - 1), start, end);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    FloorDivide,
    Power,
    Equal,
    NotEqual,
    GreaterOrEqual,
    LessOrEqual,
    Plus,
    Minus,
    Divide,
    Multiply,
    Remainder,
    Tilde,
    OpenBracket,
    CloseBracket,
    OpenParenthesis,
    CloseParenthesis,
    OpenBrace,
    CloseBrace,
    Greater,
    Less,
    Assign,
    Dot,
    Colon,
    Pipe,
    Comma,
    Semicolon,
}

impl Op {
    /// The operator that text begins with; the longer one if there are two.
    #[inline]
    pub fn read(text: &[u8]) -> Option<Op> {
        Some(match text {
            [b'/', b'/', ..] => Op::FloorDivide,
            [b'*', b'*', ..] => Op::Power,
            [b'=', b'=', ..] => Op::Equal,
            [b'!', b'=', ..] => Op::NotEqual,
            [b'>', b'=', ..] => Op::GreaterOrEqual,
            [b'<', b'=', ..] => Op::LessOrEqual,
            [b'+', ..] => Op::Plus,
            [b'-', ..] => Op::Minus,
            [b'/', ..] => Op::Divide,
            [b'*', ..] => Op::Multiply,
            [b'%', ..] => Op::Remainder,
            [b'~', ..] => Op::Tilde,
            [b'[', ..] => Op::OpenBracket,
            [b']', ..] => Op::CloseBracket,
            [b'(', ..] => Op::OpenParenthesis,
            [b')', ..] => Op::CloseParenthesis,
            [b'{', ..] => Op::OpenBrace,
            [b'}', ..] => Op::CloseBrace,
            [b'>', ..] => Op::Greater,
            [b'<', ..] => Op::Less,
            [b'=', ..] => Op::Assign,
            [b'.', ..] => Op::Dot,
            [b':', ..] => Op::Colon,
            [b'|', ..] => Op::Pipe,
            [b',', ..] => Op::Comma,
            [b';', ..] => Op::Semicolon,
            _ => return None,
        })
    }

    /// As a template writes it.
    pub fn spelling(self) -> &'static str {
        match self {
            Op::FloorDivide => "//",
            Op::Power => "**",
            Op::Equal => "==",
            Op::NotEqual => "!=",
            Op::GreaterOrEqual => ">=",
            Op::LessOrEqual => "<=",
            Op::Plus => "+",
            Op::Minus => "-",
            Op::Divide => "/",
            Op::Multiply => "*",
            Op::Remainder => "%",
            Op::Tilde => "~",
            Op::OpenBracket => "[",
            Op::CloseBracket => "]",
            Op::OpenParenthesis => "(",
            Op::CloseParenthesis => ")",
            Op::OpenBrace => "{",
            Op::CloseBrace => "}",
            Op::Greater => ">",
            Op::Less => "<",
            Op::Assign => "=",
            Op::Dot => ".",
            Op::Colon => ":",
            Op::Pipe => "|",
            Op::Comma => ",",
            Op::Semicolon => ";",
        }
    }

    /// The bracket that closes this one.
    pub fn closing(self) -> Option<Op> {
        match self {
            Op::OpenBracket => Some(Op::CloseBracket),
            Op::OpenParenthesis => Some(Op::CloseParenthesis),
            Op::OpenBrace => Some(Op::CloseBrace),
            _ => None,
        }
    }

    pub fn closes(self) -> bool {
        matches!(self, Op::CloseBracket | Op::CloseParenthesis | Op::CloseBrace)
    }
}

#[cfg(test)]
mod tests {
    use super::Op;

    #[test]
    fn operators_are_read_as_they_are_spelled() {
        for spelling in "// ** == != >= <= + - / * % ~ [ ] ( ) { } > < = . : | , ;".split(' ') {
            assert_eq!(Op::read(spelling.as_bytes()).map(Op::spelling), Some(spelling));
        }
        assert_eq!(Op::read(b"!"), None);
    }
}
