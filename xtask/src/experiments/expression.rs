//! Sums and ratios of figures: `(size_bytes - log_bytes) / 1e6`,
//! `wkb_per_op@innodb / wkb_per_op@myrocks.zstd`.

use std::iter::Peekable;
use std::vec::IntoIter;

/// A number, `None` if a figure is absent, or a mistake in the text.
type Number = Result<Option<f64>, String>;

/// Returns the figure with this name, for the engine after its `@`.
type Figure<'a> = dyn FnMut(&str, Option<&str>) -> Number + 'a;

/// The value of an expression. `figure` is called for each name and the engine after its `@`. `None` when a figure is
/// absent.
///
/// # Errors
/// A syntax error, or the error of `figure`.
pub fn value(text: &str, figure: &mut Figure<'_>) -> Number {
    let mut rest = Reader { tokens: tokens(text)?.into_iter().peekable(), figure };
    let value = rest.sum()?;
    match rest.tokens.next() {
        None => Ok(value),
        Some(token) => Err(format!("`{text}`: {token:?} is too much")),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Sign(char),
    Word(String),
}

/// A sign is between spaces or next to a parenthesis, because names may contain `-` and `.`.
fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let token = |word: &str| match word {
        "+" | "-" | "*" | "/" | "(" | ")" => Token::Sign(word.chars().next().unwrap_or_default()),
        word => Token::Word(word.to_owned()),
    };
    let tokens: Vec<Token> = spaced.split_whitespace().map(token).collect();
    if tokens.is_empty() { Err("there is no expression".to_owned()) } else { Ok(tokens) }
}

struct Reader<'a, 'b> {
    tokens: Peekable<IntoIter<Token>>,
    figure: &'a mut Figure<'b>,
}

impl Reader<'_, '_> {
    fn sum(&mut self) -> Number {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let right = self.product()?;
            left = left.zip(right).map(|(left, right)| if sign == '+' { left + right } else { left - right });
        }
        Ok(left)
    }

    fn product(&mut self) -> Number {
        let mut left = self.atom()?;
        while let Some(sign) = self.sign(&['*', '/']) {
            let right = self.atom()?;
            left = left.zip(right).map(|(left, right)| if sign == '*' { left * right } else { left / right });
        }
        Ok(left.filter(|value| value.is_finite()))
    }

    fn atom(&mut self) -> Number {
        match self.tokens.next() {
            Some(Token::Sign('(')) => {
                let inner = self.sum()?;
                self.sign(&[')']).map(|_| inner).ok_or_else(|| "a parenthesis is not closed".to_owned())
            }
            Some(Token::Word(word)) => match (word.parse::<f64>(), word.split_once('@')) {
                (Ok(number), _) => Ok(Some(number)),
                (Err(_), Some((name, engine))) => (self.figure)(name, Some(engine)),
                (Err(_), None) => (self.figure)(&word, None),
            },
            other => Err(format!("a figure is expected, not {other:?}")),
        }
    }

    fn sign(&mut self, signs: &[char]) -> Option<char> {
        match self.tokens.peek() {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                let sign = *sign;
                self.tokens.next();
                Some(sign)
            }
            _ => None,
        }
    }
}
