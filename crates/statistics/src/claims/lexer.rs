//! The tokens of an expression's text, each with its position.

use std::fmt;

use super::names::Mistake;

/// The remedy for an expression that cannot be parsed.
pub const EXAMPLE: &str = "write for example wkb_per_op(\"a\") >= 4 * wkb_per_op(\"b\"), of engines called a and b";

/// The smallest unit with a meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// `10`, `0.7`, `9_000`, `1e6`
    Number(f64),
    /// `wkb_per_op`, `get_node.p99_ms`
    Name(&'a str),
    /// `"innodb.16k"`, without the quotes.
    Text(&'a str),
    /// An operator, a parenthesis, a comma.
    Sign(&'a str),
    /// After the last token.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// The operators, the longer ones first. A single `=`, `&` or `|` is not an operator; it is read so that the error can
/// name the right one.
const SIGNS: [&str; 19] =
    ["<=", ">=", "==", "!=", "&&", "||", "<", ">", "=", "!", "&", "|", "+", "-", "*", "/", "(", ")", ","];

/// The tokens of a text, read one after the other.
pub struct Tokens<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// All tokens of a text.
    ///
    /// # Errors
    /// An unexpected character, an unterminated text, or a malformed number.
    pub fn of(text: &'a str) -> Result<Self, Mistake> {
        let (mut tokens, mut at) = (Vec::new(), 0);
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let (token, length) = match first {
                c if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                '"' => quoted(rest, at)?,
                c if c.is_ascii_digit() || c == '.' => number(rest, at)?,
                c if c.is_ascii_alphabetic() || c == '_' => {
                    let length =
                        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
                    (Token::Name(&rest[..length]), length)
                }
                c => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                    Some(sign) => (Token::Sign(sign), sign.len()),
                    None => return Err(Mistake::new(at, format!("it cannot be read: `{c}` means nothing"), EXAMPLE)),
                },
            };
            tokens.push((at, token));
            at += length;
        }
        Ok(Self { tokens, next: 0, end: text.len() })
    }

    pub fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).map_or(Token::End, |(_, token)| *token)
    }

    /// The position of the next token, in bytes.
    pub fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    pub fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// Takes this sign, if it comes next.
    pub fn take_sign(&mut self, sign: &str) -> bool {
        let is_it = self.peek() == Token::Sign(sign);
        self.next += usize::from(is_it);
        is_it
    }
}

fn quoted(rest: &str, at: usize) -> Result<(Token<'_>, usize), Mistake> {
    let inner = &rest[1..];
    match inner.find('"') {
        Some(length) => Ok((Token::Text(&inner[..length]), length + 2)),
        None => Err(Mistake::new(at, "it cannot be read: a `\"` has no end", EXAMPLE)),
    }
}

/// A number: digits, `_` between them, a fraction, an exponent.
fn number(rest: &str, at: usize) -> Result<(Token<'_>, usize), Mistake> {
    let bytes = rest.as_bytes();
    let part_of_it = |(place, byte): (usize, u8)| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'.')
            || (matches!(byte, b'+' | b'-') && place > 0 && matches!(bytes[place - 1], b'e' | b'E'))
    };
    let length = bytes.iter().copied().enumerate().take_while(|entry| part_of_it(*entry)).count();
    let written = &rest[..length];
    match written.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), length)),
        _ => Err(Mistake::new(at, format!("it cannot be read: `{written}` is not a number"), EXAMPLE)),
    }
}
