//! Mutation testing: small changes to a crate, all compiled in and one at a time switched on, and which of them no test notices.
//! `mutation/run` tells how it is used; docs/reliability.md has the results.

mod build;
mod mutants;
mod tree;

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use build::Program;
use tree::{LIST, Tree, VARIABLE};

const USAGE: &str = "usage: mutation/run CRATE [--sample N] [--seed N] [PART OF A FILE'S PATH...]";

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
        "device" => &[(name, &["--lib", "--test=conservation", "--test=exact", "--test=models", "--test=presets", "--test=reckoned"])],
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
    judge(&tree, &tested(programs, &place.join("reached"))?, &chosen)
}

/// A test program, what it comes by, and how long it may take.
struct Tested {
    program: Program,
    reaches: BTreeSet<u32>,
    limit: Duration,
}

/// The programs, quickest first, after a run of each without a mutant: what that does not come by, no mutant there changes.
fn tested(programs: Vec<Program>, list: &Path) -> Result<Vec<Tested>, Box<dyn Error>> {
    let mut tested = Vec::new();
    for program in programs {
        fs::write(list, "")?;
        let begin = Instant::now();
        if outcome(&program, &[(LIST, &list.to_string_lossy())], Duration::MAX)? != Outcome::Passed {
            return Err(format!("{} fails without any mutant", program.path.display()).into());
        }
        let took = begin.elapsed();
        let reaches: BTreeSet<u32> = fs::read_to_string(list)?.lines().filter_map(|line| line.parse().ok()).collect();
        let name = program.path.file_name().unwrap_or_default().to_string_lossy();
        println!("{name} takes {:.1} s and comes by {}", took.as_secs_f64(), reaches.len());
        tested.push(Tested { program, reaches, limit: took * 4 + Duration::from_secs(10) });
    }
    tested.sort_by_key(|tested| tested.limit);
    Ok(tested)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Hung,
}

fn outcome(program: &Program, variables: &[(&str, &str)], limit: Duration) -> Result<Outcome, Box<dyn Error>> {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env_remove("CI").stdout(Stdio::piped()).stderr(Stdio::null());
    command.envs(variables.iter().copied());
    let mut child = command.spawn()?;
    let mut told = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let (tell, failures) = mpsc::channel();
    thread::spawn(move || {
        if told.any(|line| line.is_ok_and(|line| line.ends_with("... FAILED"))) {
            // Nobody may be listening any more.
            _ = tell.send(());
        }
    });
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Outcome::Passed } else { Outcome::Failed });
        }
        // One test that notices is enough.
        let is_noticed = failures.try_recv().is_ok();
        if is_noticed || begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(if is_noticed { Outcome::Failed } else { Outcome::Hung });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Tries each mutant on one program after the other until one notices.
fn judge(tree: &Tree, programs: &[Tested], chosen: &[u32]) -> Result<(), Box<dyn Error>> {
    let (begin, mut failed, mut hung, mut missed) = (Instant::now(), 0, 0, 0);
    for &number in chosen {
        let mut found = Outcome::Passed;
        for Tested { program, limit, .. } in programs.iter().filter(|tested| tested.reaches.contains(&number)) {
            found = outcome(program, &[(VARIABLE, &number.to_string())], *limit)?;
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
                let is_reached = programs.iter().any(|tested| tested.reaches.contains(&number));
                let word = if is_reached { "missed" } else { "missed, not even run" };
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
