//! Mutation testing: small changes to a crate, all compiled in and one at a time switched on, and which of them no test notices.
//! `mutation/run` tells how it is used; docs/reliability.md has the results.

mod build;
mod mutants;
mod tree;

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use build::Program;
use tree::{Tree, VARIABLE};

const USAGE: &str = "usage: mutation/run CRATE [--sample N] [--seed N] [PART OF A FILE'S PATH...]";

/// The tests that a crate's mutants are tried on, as cargo is told: those that are about the crate, and quick.
fn tests(name: &str) -> Option<Vec<String>> {
    let (packages, targets): (&[&str], &[&str]) = match name {
        "blk" => (&["blk", "legacy"], &["--test=properties", "--test=policies", "--test=changes"]),
        "load" => (&["load", "fio"], &["--tests"]),
        "cgroup" | "device" | "fio" | "legacy" | "nbd" | "results" | "sim" | "trace" => (&[name], &["--tests"]),
        _ => return None,
    };
    let packages = packages.iter().map(|package| format!("-phoistway-{package}"));
    Some(packages.chain(["--lib".to_owned()]).chain(targets.iter().map(|&target| target.to_owned())).collect())
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
    let (mut sample, mut seed, mut words) = (usize::MAX, 1, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok()).ok_or(USAGE);
        match argument.as_str() {
            "--sample" => sample = number()? as usize,
            "--seed" => seed = number()?,
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
    judge(&tree, &timed(programs)?, &chosen)
}

/// The programs, quickest first, with the time after which one hangs.
fn timed(programs: Vec<Program>) -> Result<Vec<(Program, Duration)>, Box<dyn Error>> {
    let mut timed = Vec::new();
    for program in programs {
        let begin = Instant::now();
        match outcome(&program, None, Duration::MAX)? {
            Outcome::Passed => timed.push((program, begin.elapsed() * 6 + Duration::from_secs(10))),
            _ => return Err(format!("{} fails without any mutant", program.path.display()).into()),
        }
    }
    timed.sort_by_key(|&(_, limit)| limit);
    Ok(timed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Hung,
}

fn outcome(program: &Program, mutant: Option<u32>, limit: Duration) -> Result<Outcome, Box<dyn Error>> {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env_remove("CI").stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(mutant.map(|number| (VARIABLE, number.to_string())));
    let mut child = command.spawn()?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Outcome::Passed } else { Outcome::Failed });
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::Hung);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Tries each mutant on one program after the other until one notices.
fn judge(tree: &Tree, programs: &[(Program, Duration)], chosen: &[u32]) -> Result<(), Box<dyn Error>> {
    let (begin, mut failed, mut hung, mut missed) = (Instant::now(), 0, 0, 0);
    for &number in chosen {
        let mut found = Outcome::Passed;
        for (program, limit) in programs {
            found = outcome(program, Some(number), *limit)?;
            if found != Outcome::Passed {
                break;
            }
        }
        match found {
            Outcome::Failed => failed += 1,
            Outcome::Hung => hung += 1,
            Outcome::Passed => {
                missed += 1;
                let mutant = &tree.mutants[number as usize];
                let told: String = mutant.told.chars().take(150).collect();
                println!("missed: {}:{}: {told}", mutant.file.display(), mutant.line);
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
