//! Checks that messages use the caller's name of every field of an experiment.

use std::fs;
use std::process::Command;

use hoistway_experiment::{Comparison, Field};

use super::crates;

/// Fields that only searches and runs in real time have.
const NOT_OF_COMPARISONS: [Field; 4] = [Field::Objective, Field::Budget, Field::Target, Field::Force];

#[test]
fn a_field_of_a_comparison_is_called_as_it_is_written() {
    for field in Field::ALL.iter().filter(|field| !NOT_OF_COMPARISONS.contains(field)) {
        let path: Vec<&str> = field.name().split('.').collect();
        let inner = serde_json::Value::from(vec![0.5]);
        let value = path.iter().rev().fold(inner, |inner, key| serde_json::json!({ *key: inner }));
        let error =
            serde_json::from_value::<Comparison>(value).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!error.contains("unknown field"), "{field}: {error}");
    }
}

#[test]
fn an_option_that_messages_name_exists() {
    let help = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_hoistway")).args([command, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let helps = ["compare", "run", "tune"].map(help).concat();
    let words: Vec<&str> = helps.split(|c: char| c.is_whitespace() || "[]<>,|".contains(c)).collect();
    for field in Field::ALL {
        assert!(words.contains(&field.option()), "{field}: {}", field.option());
    }
}

#[test]
fn an_argument_of_python_that_messages_name_exists() {
    let folder = crates().join("../python/python/hoistway");
    let text =
        ["_compare.py", "_real.py", "_tune.py"].map(|file| fs::read_to_string(folder.join(file)).unwrap()).concat();
    for field in Field::ALL {
        let parameter = format!("\n    {}: ", field.keyword());
        assert!(text.contains(&parameter), "{field}: {}", field.keyword());
    }
}
