//! The part of a source that is compiled into the program: without comments and tests.

/// The attribute that makes the next item a test item.
const FOR_TESTS: &str = "#[cfg(test)]";

/// The lines of code with their numbers, from 1, without comments and test items.
pub fn lines_of_code(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut of_test = OfTest::Nothing;
    let numbered = content.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(move |(_, line)| !of_test.takes(line) && !line.trim_start().starts_with("//"))
}

/// The source with an empty line in place of each line that is not code, so that line numbers stay the same.
pub fn code_alone(content: &str) -> String {
    let mut code = String::new();
    let mut above = 0;
    for (number, line) in lines_of_code(content) {
        code.push_str(&"\n".repeat(number - 1 - above));
        code.push_str(line);
        code.push('\n');
        above = number;
    }
    code
}

/// The position of a line relative to a test item.
enum OfTest {
    /// Outside.
    Nothing,
    /// Its attribute was seen; the item itself begins below.
    Announced,
    /// In an item of several lines, with this indentation; it ends at the same indentation, as rustfmt formats it.
    Within(usize),
}

impl OfTest {
    /// Takes the next line; whether it belongs to an item for tests.
    fn takes(&mut self, line: &str) -> bool {
        let (code, margin) = (line.trim(), line.len() - line.trim_start().len());
        match *self {
            OfTest::Nothing if code == FOR_TESTS => *self = OfTest::Announced,
            OfTest::Nothing => return false,
            OfTest::Announced if code.starts_with("#[") || code.starts_with("//") => {}
            OfTest::Announced if code.ends_with([';', '}', ',']) => *self = OfTest::Nothing,
            OfTest::Announced => *self = OfTest::Within(margin),
            OfTest::Within(begins) => {
                if margin == begins && (code.starts_with('}') || code.ends_with(';')) {
                    *self = OfTest::Nothing;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(content: &str) -> Vec<usize> {
        lines_of_code(content).map(|(number, _)| number).collect()
    }

    #[test]
    fn test_code_is_left_out_and_later_code_is_not() {
        assert_eq!(numbers("mod a;\n#[cfg(test)]\nmod b;\nmod c;\n"), [1, 4]);
        assert_eq!(numbers("#[cfg(test)]\n#[allow(x)]\n// why\npub(crate) mod b;\nmod c;\n"), [5]);
        assert_eq!(numbers("#[cfg(test)]\nuse a::{\n    b,\n};\nuse c;\n"), [5]);
        assert_eq!(numbers("#[cfg(test)]\nmod tests { alpha }\nfn a() {}\n"), [3]);
        let item = "impl A {\n    #[cfg(test)]\n    fn a(\n        b: C,\n    ) -> D {\n        e;\n    }\n\n    fn f() {}\n}\n";
        assert_eq!(numbers(item), [1, 8, 9, 10]);
        let last = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    fn b() {}\n}\n";
        assert_eq!(numbers(last), [1, 2]);
    }

    #[test]
    fn remaining_code_keeps_its_line_numbers() {
        assert_eq!(code_alone("// a\nb\n#[cfg(test)]\nc;\nd\n"), "\nb\n\n\nd\n");
    }
}
