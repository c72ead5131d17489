//! Mutation testing: small changes to a crate, all compiled in and one at a time switched on, and which of them no test notices.
//! `mutation/run` tells how it is used; docs/testing.md has the results.

mod build;
mod cases;
mod mutants;
mod tree;

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cases::{Cases, Outcome};
use tree::Tree;

const USAGE: &str = "usage: mutation/run CRATE [--sample N] [--seed N] [--within SECONDS] [PART OF A FILE'S PATH...]";

/// The tests that a crate's mutants are tried on, as cargo is told in one command after the other: those that are about the crate, and quick.
fn tests(name: &str) -> Option<Vec<Vec<String>>> {
    let own: &[&str] = &["--lib", "--tests"];
    let of_packages: &[(&str, &[&str])] = match name {
        "blk" => {
            &[("blk", &["--lib"]), ("legacy", &["--lib", "--test=properties", "--test=policies", "--test=changes"])]
        }
        // Without those that wait for fio itself.
        "load" => &[(name, own), ("fio", &["--lib", "--test=generator", "--test=job_files", "--test=robust"])],
        // Judgements are made there, and the sentences of them elsewhere.
        "results" => &[(name, own), ("report", own)],
        // Without those that compare with what was measured, which take longer than all others.
        "device" => &[(
            name,
            &[
                "--lib",
                "--test=conservation",
                "--test=exact",
                "--test=exact_disks",
                "--test=models",
                "--test=presets",
                "--test=reckoned",
            ],
        )],
        "cgroup" | "fio" | "legacy" | "nbd" | "sim" | "trace" => &[(name, own)],
        _ => return None,
    };
    let command = |&(package, targets): &(&str, &[&str])| {
        std::iter::once(format!("-phoistway-{package}"))
            .chain(targets.iter().map(|&target| target.to_owned()))
            .collect()
    };
    Some(of_packages.iter().map(command).collect())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutation: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let (mut sample, mut seed, mut within, mut words) = (usize::MAX, 1, Duration::MAX, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok()).ok_or(USAGE);
        match argument.as_str() {
            "--sample" => sample = number()? as usize,
            "--seed" => seed = number()?,
            "--within" => within = Duration::from_secs(number()?),
            _ => words.push(argument),
        }
    }
    let (name, parts) = words.split_first().ok_or(USAGE)?;
    let tests = tests(name).ok_or_else(|| format!("no tests are known for the crate {name:?}"))?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it lies in the repository").to_owned();
    let place = repository.join("target/mutation");
    let mut tree = Tree::new(&repository, place.join("tree"), name, parts)?;
    println!("{} mutants of {name}", tree.mutants.len());
    let programs = build::build(&mut tree, &place.join("target"), name, &tests)?;
    let mut chosen: Vec<u32> =
        (0..tree.mutants.len() as u32).filter(|number| !tree.unviable.contains(number)).collect();
    println!("{} compile", chosen.len());
    shuffle(&mut chosen, seed);
    chosen.truncate(sample);
    judge(&tree, &Cases::measured(programs, &place.join("reached"), within)?, &chosen)
}

/// Tries each mutant, as many at a time as there are CPUs, and tells which no test notices.
fn judge(tree: &Tree, cases: &Cases, chosen: &[u32]) -> Result<(), Box<dyn Error>> {
    let (next, begin) = (AtomicUsize::new(0), Instant::now());
    let (tell, found) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                while let Some(&number) = chosen.get(next.fetch_add(1, Relaxed)) {
                    let found = cases.judge(number).map_err(|error| error.to_string());
                    // Whoever listened may have met an error.
                    _ = tell.send((number, found));
                }
            });
        }
        drop(tell);
        let (mut failed, mut hung, mut missed) = (0, 0, 0);
        for (number, found) in found {
            match found.inspect_err(|_| next.store(chosen.len(), Relaxed))? {
                Outcome::Failed => failed += 1,
                Outcome::Hung => hung += 1,
                Outcome::Passed => {
                    missed += 1;
                    let mutant = &tree.mutants[number as usize];
                    let told: String = mutant.told.chars().take(150).collect();
                    let word = if cases.reach(number) { "missed" } else { "missed, not even run" };
                    let tried = failed + hung + missed;
                    println!("{word}, {missed} of {tried}: {}:{}: {told}", mutant.file.display(), mutant.line);
                }
            }
            let tried = failed + hung + missed;
            if tried % 50 == 0 || tried == chosen.len() {
                let noticed = 100.0 * (failed + hung) as f64 / tried as f64;
                let seconds = begin.elapsed().as_secs();
                println!(
                    "{tried} tried in {seconds} s: {failed} failed a test, {hung} hung, {missed} missed; {noticed:.1} % noticed"
                );
            }
        }
        Ok(())
    })
}

/// In an order that depends on the seed alone (splitmix64).
fn shuffle(numbers: &mut [u32], seed: u64) {
    let mut state = seed;
    for last in (1..numbers.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        numbers.swap(last, ((mixed ^ (mixed >> 31)) % (last as u64 + 1)) as usize);
    }
}
