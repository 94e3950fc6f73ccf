//! The grammar of expressions, by recursive descent. Claims, gates and the figures of the docs use it:
//!
//! ```text
//! either     = both { "||" both }
//! both       = not { "&&" not }
//! not        = "!" not | comparison
//! comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//! sum        = product { ("+" | "-") product }
//! product    = unary { ("*" | "/") unary }
//! unary      = "-" unary | primary
//! primary    = number | figure | "(" either ")"
//! figure     = name [ "(" argument { "," argument } ")" ]
//! ```
//!
//! A figure without parentheses is allowed where the [`Scope`] implies the engine. All numbers are floating-point. The
//! parser resolves a figure's name and arguments, so that it reports a mistake with
//! its position before anything runs.

use rumba_results::ratio::SAME_MARGIN;

use super::lexer::{EXAMPLE, Token, Tokens};
use super::names::{Argument, MetricRef, Mistake, Scope, bare_figure, figure};

/// The deepest nesting of parentheses; more would overflow the stack.
const DEEPEST: usize = 64;

/// The most numbers and figures; a sum is as deep as it has terms, so that more would overflow the stack.
const MOST_TERMS: usize = 256;

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

impl Relation {
    /// The relation with this sign.
    pub fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "<" => Relation::Less,
            "<=" => Relation::AtMost,
            ">" => Relation::Greater,
            ">=" => Relation::AtLeast,
            "==" => Relation::Equal,
            "!=" => Relation::Unequal,
            _ => return None,
        })
    }

    /// Whether the relation holds for two numbers. Numbers within a percent count as equal, as in the test of several
    /// repeats; if they have no ratio, only identical numbers do.
    pub fn is_so(self, left: f64, right: f64) -> bool {
        match self {
            Relation::Less => left < right,
            Relation::AtMost => left <= right,
            Relation::Greater => left > right,
            Relation::AtLeast => left >= right,
            Relation::Equal => are_equal(left, right),
            Relation::Unequal => !are_equal(left, right),
        }
    }
}

fn are_equal(left: f64, right: f64) -> bool {
    /// The rounding error of a quotient.
    const ROUNDING: f64 = 1e-9;
    left == right || (left > 0.0 && right > 0.0 && (left / right).ln().abs() <= SAME_MARGIN.ln_1p() + ROUNDING)
}

/// A numeric expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A number as written.
    Plain(f64),
    Figure(MetricRef),
    /// `-x`
    Minus(Box<Number>),
    Two(Operator, Box<Number>, Box<Number>),
}

impl Number {
    /// Evaluates the expression with these figures.
    ///
    /// # Errors
    /// The error of `figure`; a divisor of zero; a result that is not finite.
    pub fn value<E: From<String>>(&self, figure: &mut dyn FnMut(&MetricRef) -> Result<f64, E>) -> Result<f64, E> {
        let value = match self {
            Number::Plain(value) => *value,
            Number::Figure(reference) => figure(reference)?,
            Number::Minus(inner) => -inner.value(figure)?,
            Number::Two(operator, left, right) => {
                let (left, right) = (left.value(figure)?, right.value(figure)?);
                match operator {
                    Operator::Plus => left + right,
                    Operator::Less => left - right,
                    Operator::Times => left * right,
                    Operator::Over if right == 0.0 => return Err("something is divided by zero".to_owned().into()),
                    Operator::Over => left / right,
                }
            }
        };
        if value.is_finite() { Ok(value) } else { Err("the result is not a finite number".to_owned().into()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Plus,
    /// `-`
    Less,
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A boolean expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// One inequality.
    Is(Relation, Number, Number),
    /// `!x`
    Not(Box<Truth>),
    /// `x && y && …`
    All(Vec<Truth>),
    /// `x || y || …`
    Any(Vec<Truth>),
}

/// A parsed node whose type has not been checked yet.
enum Node {
    Number(Number),
    Truth(Truth),
}

/// Parses an inequality, or several joined ones.
pub fn truth(text: &str, scope: &Scope) -> Result<Truth, Mistake> {
    let mut parser = Parser { tokens: Tokens::of(text)?, scope, depth: 0, terms: 0 };
    let node = parser.whole()?;
    as_truth(node, 0)
}

/// Parses a numeric expression.
pub fn number(text: &str, scope: &Scope) -> Result<Number, Mistake> {
    let mut parser = Parser { tokens: Tokens::of(text)?, scope, depth: 0, terms: 0 };
    let node = parser.whole()?;
    as_number(node, 0)
}

fn as_truth(node: Node, at: usize) -> Result<Truth, Mistake> {
    match node {
        Node::Truth(truth) => Ok(truth),
        Node::Number(_) => Err(Mistake::new(at, "it is a number and not an inequality", EXAMPLE)),
    }
}

fn as_number(node: Node, at: usize) -> Result<Number, Mistake> {
    match node {
        Node::Number(number) => Ok(number),
        Node::Truth(_) => Err(Mistake::new(at, "it is an inequality and not a number", EXAMPLE)),
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    scope: &'a Scope,
    depth: usize,
    terms: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Node, Mistake> {
        let node = self.either()?;
        match self.tokens.peek() {
            Token::End => Ok(node),
            Token::Sign(sign) if Relation::of(sign).is_some() => Err(Mistake::new(
                self.tokens.at(),
                "it compares twice in a row",
                "join two inequalities: 1 < x && x < 2",
            )),
            Token::Sign("=") => Err(Mistake::new(self.tokens.at(), "`=` compares nothing", "write ==, >= or <=")),
            Token::Sign(sign @ ("&" | "|")) => {
                Err(Mistake::new(self.tokens.at(), format!("`{sign}` joins nothing"), format!("write {sign}{sign}")))
            }
            other => Err(self.unexpected(&format!("unexpected {other} after the end of the expression"))),
        }
    }

    fn unexpected(&self, what: &str) -> Mistake {
        Mistake::new(self.tokens.at(), format!("it cannot be read: {what}"), EXAMPLE)
    }

    fn either(&mut self) -> Result<Node, Mistake> {
        self.joined("||", Self::both, Truth::Any)
    }

    fn both(&mut self) -> Result<Node, Mistake> {
        self.joined("&&", Self::not, Truth::All)
    }

    fn joined(
        &mut self,
        sign: &str,
        part: fn(&mut Self) -> Result<Node, Mistake>,
        join: fn(Vec<Truth>) -> Truth,
    ) -> Result<Node, Mistake> {
        let mut at = self.tokens.at();
        let mut node = part(self)?;
        let mut parts = Vec::new();
        while self.tokens.take_sign(sign) {
            parts.push(as_truth(node, at)?);
            at = self.tokens.at();
            node = part(self)?;
        }
        if parts.is_empty() {
            return Ok(node);
        }
        parts.push(as_truth(node, at)?);
        Ok(Node::Truth(join(parts)))
    }

    fn not(&mut self) -> Result<Node, Mistake> {
        if !self.tokens.take_sign("!") {
            return self.comparison();
        }
        self.deeper(|parser| {
            let at = parser.tokens.at();
            let truth = as_truth(parser.not()?, at)?;
            Ok(Node::Truth(Truth::Not(Box::new(truth))))
        })
    }

    fn comparison(&mut self) -> Result<Node, Mistake> {
        let at = self.tokens.at();
        let left = self.sum()?;
        let Token::Sign(sign) = self.tokens.peek() else { return Ok(left) };
        let Some(relation) = Relation::of(sign) else { return Ok(left) };
        let left = as_number(left, at)?;
        self.tokens.next();
        let at = self.tokens.at();
        let right = as_number(self.sum()?, at)?;
        Ok(Node::Truth(Truth::Is(relation, left, right)))
    }

    fn sum(&mut self) -> Result<Node, Mistake> {
        self.chain(&[("+", Operator::Plus), ("-", Operator::Less)], Self::product)
    }

    fn product(&mut self) -> Result<Node, Mistake> {
        self.chain(&[("*", Operator::Times), ("/", Operator::Over)], Self::unary)
    }

    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        part: fn(&mut Self) -> Result<Node, Mistake>,
    ) -> Result<Node, Mistake> {
        let at = self.tokens.at();
        let mut node = part(self)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.tokens.take_sign(sign)) {
            let left = as_number(node, at)?;
            let at = self.tokens.at();
            let right = as_number(part(self)?, at)?;
            node = Node::Number(Number::Two(*operator, Box::new(left), Box::new(right)));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<Node, Mistake> {
        if !self.tokens.take_sign("-") {
            return self.primary();
        }
        self.deeper(|parser| {
            let at = parser.tokens.at();
            let number = as_number(parser.unary()?, at)?;
            Ok(Node::Number(Number::Minus(Box::new(number))))
        })
    }

    fn primary(&mut self) -> Result<Node, Mistake> {
        let at = self.tokens.at();
        self.terms += 1;
        if self.terms > MOST_TERMS {
            let problem = format!("it has more than {MOST_TERMS} numbers and figures");
            return Err(Mistake::new(at, problem, "split it into several claims"));
        }
        match self.tokens.next() {
            Token::Number(number) => Ok(Node::Number(Number::Plain(number))),
            Token::Name(name) => self.figure(name, at),
            Token::Sign("(") => self.deeper(|parser| {
                let node = parser.either()?;
                if parser.tokens.take_sign(")") { Ok(node) } else { Err(parser.unexpected("a `)` is missing")) }
            }),
            Token::End => Err(self.unexpected("it ends where a figure or a number is wanted")),
            other => Err(Mistake::new(at, format!("expected a figure or a number, found {other}"), EXAMPLE)),
        }
    }

    fn figure(&mut self, name: &str, at: usize) -> Result<Node, Mistake> {
        if !self.tokens.take_sign("(") {
            return bare_figure(name, at, self.scope).map(|figure| Node::Number(Number::Figure(figure)));
        }
        let mut arguments = Vec::new();
        while !self.tokens.take_sign(")") {
            if !arguments.is_empty() && !self.tokens.take_sign(",") {
                return Err(self.unexpected("a `,` or `)` is missing"));
            }
            let at = self.tokens.at();
            arguments.push(match self.tokens.next() {
                Token::Text(text) => (at, Argument::Text(text)),
                Token::Number(number) => (at, Argument::Number(number)),
                Token::Name(name) => {
                    let remedy = format!("put it between double quotes: \"{name}\"");
                    return Err(Mistake::new(at, format!("`{name}` is not a text"), remedy));
                }
                _ => return Err(Mistake::new(at, "it cannot be read: an engine's name is wanted here", EXAMPLE)),
            });
        }
        figure(name, at, &arguments, self.scope).map(|requested| Node::Number(Number::Figure(requested)))
    }

    fn deeper(&mut self, part: impl FnOnce(&mut Self) -> Result<Node, Mistake>) -> Result<Node, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Mistake::new(self.tokens.at(), "it is nested too deeply", "split it into several claims"));
        }
        let node = part(self);
        self.depth -= 1;
        node
    }
}
