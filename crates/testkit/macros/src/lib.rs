//! `#[test]` of `rumba_testkit`, which registers a function with the runner.
//! Tokens are passed on unchanged, so that no Rust parser needs to be compiled for it.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// A test. Attributes below it:
///
/// - `#[needs(Root, MariaDb)]` names its requirements, as variants of `rumba_testkit::Need`.
/// - `#[each(list)]` makes it a test for each `rumba_testkit::Each` that the function returns.
/// - `#[ignore = "why"]` works as usual.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        return error("`test` takes nothing: needs stand below it, as #[needs(…)]");
    }
    match Test::of(item) {
        Ok(test) => test.registered(),
        Err(message) => error(message),
    }
}

struct Test {
    /// Its attributes that are not the runner's, and the function.
    item: TokenStream,
    name: String,
    needs: Vec<String>,
    /// The function that returns the list, if there is a test for each of its entries.
    each: Option<String>,
    ignored: Option<String>,
}

impl Test {
    fn of(item: TokenStream) -> Result<Self, &'static str> {
        let mut tokens = item.into_iter().peekable();
        let (item, name, needs) = (TokenStream::new(), String::new(), Vec::new());
        let mut test = Test { item, name, needs, each: None, ignored: None };
        while let Some(token) = tokens.next() {
            match (&token, tokens.peek()) {
                (TokenTree::Punct(hash), Some(TokenTree::Group(attribute)))
                    if hash.as_char() == '#' && attribute.delimiter() == Delimiter::Bracket =>
                {
                    let attribute = attribute.clone();
                    if test.takes(&attribute)? {
                        tokens.next();
                        continue;
                    }
                }
                (TokenTree::Ident(word), Some(TokenTree::Ident(name))) if word.to_string() == "fn" => {
                    test.name = name.to_string();
                    test.item.extend(std::iter::once(token));
                    test.item.extend(tokens);
                    return Ok(test);
                }
                _ => {}
            }
            test.item.extend(std::iter::once(token));
        }
        Err("`test` is for functions")
    }

    /// Whether an attribute is the runner's.
    fn takes(&mut self, attribute: &Group) -> Result<bool, &'static str> {
        let mut tokens = attribute.stream().into_iter();
        let Some(TokenTree::Ident(name)) = tokens.next() else { return Ok(false) };
        match (name.to_string().as_str(), tokens.next(), tokens.next()) {
            ("needs", Some(TokenTree::Group(needs)), None) => self.needs.extend(parted(needs.stream())),
            ("needs", ..) => return Err("write #[needs(Root, MariaDb)], with variants of rumba_testkit::Need"),
            ("each", Some(TokenTree::Group(list)), None) => self.each = Some(list.stream().to_string()),
            ("each", ..) => return Err("write #[each(list)], with a function that gives Vec<rumba_testkit::Each>"),
            ("ignore", Some(_), Some(reason)) => self.ignored = Some(reason.to_string()),
            ("ignore", ..) => return Err("say why: #[ignore = \"…\"]"),
            ("should_panic", ..) => return Err("catch the panic and look at its message"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn registered(self) -> TokenStream {
        let Test { item, name, needs, each, ignored } = self;
        let needs: String = needs.iter().map(|need| format!("::rumba_testkit::Need::{need},")).collect();
        let ignored = ignored.map_or_else(|| "None".to_owned(), |reason| format!("Some({reason})"));
        let run = match each {
            None => format!("Once(|| ::rumba_testkit::Outcome::of({name}()))"),
            Some(list) => format!("Each({list}, |one| ::rumba_testkit::Outcome::of({name}(one)))"),
        };
        let registered: Result<TokenStream, _> = format!(
            "::rumba_testkit::inventory::submit! {{
                 ::rumba_testkit::Test {{
                     path: concat!(module_path!(), \"::{name}\"),
                     needs: &[{needs}],
                     ignored: {ignored},
                     run: ::rumba_testkit::Run::{run},
                 }}
             }}
             // The compiler drops this one where the runner runs, and runs it where it was forgotten.
             #[cfg(test)]
             #[::core::prelude::v1::test]
             fn {name}__is_not_run() {{
                 panic!(\"add `harness = false` for this target to Cargo.toml, and rumba_testkit::main!() to its root\");
             }}"
        )
        .parse();
        // As in clippy.toml for the tests that clippy recognises.
        let allowed = "#[allow(clippy::unwrap_used, clippy::expect_used)]".parse().unwrap_or_default();
        let mut all = TokenStream::from_iter([allowed, item]);
        match registered {
            Ok(tokens) => all.extend(tokens),
            Err(_) => return error("a need that is no variant of rumba_testkit::Need"),
        }
        all
    }
}

fn parted(list: TokenStream) -> Vec<String> {
    let mut parts = vec![TokenStream::new()];
    for token in list {
        match token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => parts.push(TokenStream::new()),
            token => parts.last_mut().into_iter().for_each(|part| part.extend(std::iter::once(token.clone()))),
        }
    }
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| part.to_string()).collect()
}

fn error(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().unwrap_or_default()
}
