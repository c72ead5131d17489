//! Help texts of commands.
//!
//! Used by: crates `evidence`, `hoistway`.
//! Tests: below.

use clap::Command;

/// Joins the lines of each paragraph in the help of `command` and its subcommands, so that paragraphs wrap at the width of the terminal
/// instead of where the source wraps. Lines that begin with a space, such as examples, remain as they are.
#[must_use]
pub fn join_paragraphs(command: Command) -> Command {
    let joined = command.get_long_about().map(|about| joined(&about.to_string()));
    let command = command.mut_subcommands(join_paragraphs);
    match joined {
        Some(about) => command.long_about(about),
        None => command,
    }
}

fn joined(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut follows_prose = false;
    for (index, line) in text.lines().enumerate() {
        let continues = follows_prose && is_prose(line);
        if index > 0 {
            joined.push(if continues { ' ' } else { '\n' });
        }
        joined.push_str(line);
        follows_prose = is_prose(line);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_one_line_and_examples_keep_theirs() {
        let text = "Title.\n\nA sentence that\nwraps.\n\nExamples:\n  one \\\n    --two\n  three";
        let expected = "Title.\n\nA sentence that wraps.\n\nExamples:\n  one \\\n    --two\n  three";
        assert_eq!(joined(text), expected);
        assert_eq!(joined(expected), expected);
        let command = Command::new("parent").subcommand(Command::new("child").long_about(text));
        let child = join_paragraphs(command).find_subcommand("child").and_then(|child| child.get_long_about()).cloned();
        assert_eq!(child.unwrap().to_string(), expected);
    }
}
