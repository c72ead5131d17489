//! Parses udev rules: tokens `KEY{attribute}OPERATOR"value"`, separated by commas or blanks.

/// The operator of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Assign,
    AssignFinally,
    /// `+=` or `-=`, which apply only to lists.
    OfList,
}

impl Operator {
    pub(super) fn is_match(self) -> bool {
        matches!(self, Operator::Equal | Operator::NotEqual)
    }
}

/// A match or an assignment in a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) key: String,
    /// The text in braces; empty if there is none.
    pub(super) attribute: String,
    pub(super) operator: Operator,
    pub(super) value: String,
    /// `i"..."`: case is ignored.
    pub(super) ignores_case: bool,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    /// Its first line, from 1.
    pub(super) line: usize,
    pub(super) tokens: Vec<Token>,
}

/// The rules of a file. An invalid line is skipped, as udevd does.
pub(super) fn rules(text: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut joined = String::new();
    let mut begin = 0;
    for (number, line) in text.lines().enumerate() {
        if joined.is_empty() {
            begin = number + 1;
        }
        // A comment within a continued rule is not part of it.
        let is_comment = line.trim_start().starts_with('#');
        let (line, continues) = match line.strip_suffix('\\') {
            Some(line) if !is_comment => (line, true),
            _ if is_comment => ("", !joined.is_empty()),
            _ => (line, false),
        };
        joined += line;
        if continues {
            // An empty continued line must leave something, so that `begin` stays.
            joined.push(' ');
            continue;
        }
        rules.extend(tokens(&std::mem::take(&mut joined)).map(|tokens| Rule { line: begin, tokens }));
    }
    rules.extend(tokens(&joined).map(|tokens| Rule { line: begin, tokens }));
    rules
}

/// The tokens of a rule; `None` if it is invalid.
fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut rest = line;
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return (!tokens.is_empty()).then_some(tokens);
        }
        let (token, after) = token(rest)?;
        tokens.push(token);
        rest = after;
    }
}

fn token(text: &str) -> Option<(Token, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic() && c != '_')?;
    let (key, rest) = text.split_at(end);
    let (attribute, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", rest),
    };
    let rest = rest.trim_start();
    let operators = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        (":=", Operator::AssignFinally),
        ("+=", Operator::OfList),
        ("-=", Operator::OfList),
        ("=", Operator::Assign),
    ];
    let (operator, rest) =
        operators.into_iter().find_map(|(text, operator)| Some((operator, rest.strip_prefix(text)?)))?;
    let rest = rest.trim_start();
    let prefix = rest.find('"')?;
    let (flags, rest) = rest.split_at(prefix);
    if !flags.chars().all(|flag| matches!(flag, 'e' | 'i')) {
        return None;
    }
    let (value, rest) = value(&rest[1..], flags.contains('e'))?;
    let (key, attribute) = (key.to_owned(), attribute.to_owned());
    Some((Token { key, attribute, operator, value, ignores_case: flags.contains('i') }, rest))
}

/// A value up to its closing quotation mark, and the text after it. In a plain value only the quotation mark can be
/// escaped.
fn value(text: &str, has_escapes: bool) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[index + 1..])),
            '\\' => match characters.next()?.1 {
                '"' => value.push('"'),
                'n' if has_escapes => value.push('\n'),
                't' if has_escapes => value.push('\t'),
                escaped if has_escapes => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            character => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_read_with_their_lines() {
        let text = "# a comment\n\nACTION==\"add|change\", KERNEL==\"sd[a-z]\", \\\n  ATTR{queue/rotational}==\"1\", \\\n# within\n  ATTR{queue/scheduler}=\"bfq\"\nLABEL=\"end\"\nnonsense here\nENV{A}:=\"x\\\"y\" ENV{B}!=i\"z\"\n";
        let rules = rules(text);
        assert_eq!(rules.iter().map(|rule| rule.line).collect::<Vec<_>>(), [3, 7, 9]);
        let last = &rules[0].tokens[3];
        assert_eq!(
            (last.key.as_str(), last.attribute.as_str(), last.operator),
            ("ATTR", "queue/scheduler", Operator::Assign)
        );
        assert_eq!(last.value, "bfq");
        assert_eq!(rules[2].tokens[0].value, "x\"y");
        assert!(rules[2].tokens[1].ignores_case);
        assert_eq!(rules[2].tokens[1].operator, Operator::NotEqual);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[A-Z{}=!\"\\\\,e i\n#a|+:-]{0,80}") {
            rules(&text);
        }
    }
}
