//! Reproduced tables: simulated, with a line of progress for each, or read from documents of `reproduce --format json`.
//!
//! Used by: `decide`, `reproduce`.
//! Tests: `crates/evidence/tests/program/reproduce.rs`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use hoistway_evidence::reproduction::{Reproduced, Reproduction, Table};

/// Simulates the tables one after the other; of several, a line on standard error names each, and how long it took.
pub(crate) fn simulated(tables: &[&Table], simulate: impl Fn(&Table) -> Result<Reproduced>) -> Result<Vec<Reproduced>> {
    let mut reproduced = Vec::with_capacity(tables.len());
    for (number, table) in (1..).zip(tables) {
        let begin = Instant::now();
        reproduced.push(simulate(table)?);
        if tables.len() > 1 {
            eprintln!("{number} of {}: {}, {:.0} s", tables.len(), table.name, begin.elapsed().as_secs_f64());
        }
    }
    Ok(reproduced)
}

/// The tables of these documents.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Reproduced>> {
    let mut tables = Vec::new();
    for file in files {
        let describe = || format!("{}: expected a document of reproduce --format json", file.display());
        let text = std::fs::read_to_string(file).with_context(describe)?;
        tables.extend(serde_json::from_str::<Reproduction>(&text).with_context(describe)?.tables);
    }
    Ok(tables)
}

/// Those of the read tables that are wanted, each of which must be there.
pub(crate) fn named(mut read: Vec<Reproduced>, wanted: &[&Table]) -> Result<Vec<Reproduced>> {
    let lacking = wanted.iter().find(|wanted| read.iter().all(|table| table.name != wanted.name));
    if let Some(lacking) = lacking {
        let there: Vec<_> = read.iter().map(|table| table.name.as_str()).collect();
        bail!("--tables: no document has the table {} (expected one of {})", lacking.name, there.join(", "));
    }
    read.retain(|table| wanted.iter().any(|wanted| wanted.name == table.name));
    Ok(read)
}
