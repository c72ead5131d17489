//! Building what is tried: mutants that do not compile are left out until all is well.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tree::{Tree, Written};

/// A test program.
pub struct Program {
    pub path: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
}

/// Builds the tests, without the mutants that do not compile.
pub fn build(tree: &mut Tree, target: &Path, name: &str, tests: &[Vec<String>]) -> io::Result<Vec<Program>> {
    let of_crate = format!("hoistway-{name}");
    loop {
        let written = tree.write()?;
        let errors = cargo(tree, target, &["check", "--lib", "-p", &of_crate])?;
        let errors: Vec<&Value> = errors.iter().filter(|message| message["message"]["level"] == "error").collect();
        if errors.is_empty() {
            break;
        }
        let before = tree.unviable.len();
        errors.iter().for_each(|message| leave_out(tree, &written, &message["message"]));
        if tree.unviable.len() == before {
            return Err(io::Error::other(format!("it does not compile: {}", errors[0]["message"]["rendered"])));
        }
        println!("{} of {} mutants do not compile", tree.unviable.len(), tree.mutants.len());
    }
    tree.remember()?;
    let mut messages = Vec::new();
    for of_package in tests {
        let arguments: Vec<&str> =
            ["test", "--no-run"].into_iter().chain(of_package.iter().map(String::as_str)).collect();
        messages.extend(cargo(tree, target, &arguments)?);
    }
    let programs = messages.iter().filter_map(|message| {
        let path = message["executable"].as_str()?.into();
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        Some(Program { path, folder: manifest.parent()?.to_owned() })
    });
    let programs: Vec<Program> = programs.collect();
    if programs.is_empty() {
        return Err(io::Error::other("no test was built"));
    }
    Ok(programs)
}

/// What cargo tells, line by line.
fn cargo(tree: &Tree, target: &Path, arguments: &[&str]) -> io::Result<Vec<Value>> {
    let mut command = Command::new("cargo");
    command.current_dir(&tree.root).args(arguments).arg("--message-format=json").arg("--quiet");
    command.env("CARGO_TARGET_DIR", target).env("RUSTFLAGS", "--cap-lints=allow").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = command.stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Takes out the mutants in whose code an error is told, or, if there are none, those next to it.
fn leave_out(tree: &mut Tree, written: &[Written], error: &Value) {
    let mut spans: Vec<&Value> = error["spans"].as_array().into_iter().flatten().collect();
    for child in error["children"].as_array().into_iter().flatten() {
        spans.extend(child["spans"].as_array().into_iter().flatten());
    }
    let mut near = Vec::new();
    let before = tree.unviable.len();
    for span in spans {
        let (Some(file), Some(begin), Some(end)) =
            (span["file_name"].as_str(), span["byte_start"].as_u64(), span["byte_end"].as_u64())
        else {
            continue;
        };
        let Some(written) = written.iter().find(|written| written.file.to_str() == Some(file)) else { continue };
        let (begin, end) = (begin as usize, end as usize);
        let hit = written.places.iter().filter(|(_, place)| place.start < end && begin < place.end);
        tree.unviable.extend(hit.map(|&(number, _)| number));
        let last = written.places.iter().rev().find(|(_, place)| place.start <= begin);
        near.extend(last.map(|&(number, _)| number));
    }
    if tree.unviable.len() == before {
        tree.unviable.extend(near);
    }
}
