//! The tests, one by one: what each comes by and how long it takes, so that a mutant is tried on those alone that it can change, quickest first.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::build::Program;
use crate::tree::{LIST, VARIABLE};

/// What takes less is run in one process with others of its program.
const QUICK: Duration = Duration::from_millis(100);

/// How often is looked whether a program gets on.
const LOOK: Duration = Duration::from_secs(1);

/// The unit of times in `/proc`, on all architectures that Linux has by now.
const TICK_MS: u64 = 10;

/// A test of a program.
struct Case {
    program: usize,
    name: String,
    took: Duration,
    reaches: BTreeSet<u32>,
}

/// All tests that mutants are tried on.
pub struct Cases {
    programs: Vec<Program>,
    /// Quickest first.
    cases: Vec<Case>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    Hung,
}

impl Cases {
    /// Runs each test once without a mutant, and tells of each program. Tests write what they come by to the file `list`; those that
    /// take longer than `within` are left out.
    pub fn measured(programs: Vec<Program>, list: &Path, within: Duration) -> Result<Self, Box<dyn Error>> {
        let mut cases: Vec<Case> = Vec::new();
        for (program, of) in programs.iter().enumerate() {
            let (begin, mut left_out) = (cases.len(), 0);
            for name in names(of)? {
                fs::write(list, "")?;
                let start = Instant::now();
                match run(of, &[&name], &[(LIST, &list.to_string_lossy())], within)? {
                    Outcome::Passed => {}
                    Outcome::Failed => {
                        return Err(format!("{name} of {} fails without any mutant", of.path.display()).into());
                    }
                    Outcome::Hung => {
                        left_out += 1;
                        continue;
                    }
                }
                let took = start.elapsed();
                let reaches = fs::read_to_string(list)?.lines().filter_map(|line| line.parse().ok()).collect();
                cases.push(Case { program, name, took, reaches });
            }
            let own = &cases[begin..];
            let took: Duration = own.iter().map(|case| case.took).sum();
            let reached: BTreeSet<u32> = own.iter().flat_map(|case| case.reaches.iter().copied()).collect();
            let (file, of_tests) = (of.path.file_name().unwrap_or_default().to_string_lossy(), own.len());
            let (seconds, reached) = (took.as_secs_f64(), reached.len());
            println!("{file}: {of_tests} tests take {seconds:.1} s and come by {reached}; {left_out} take too long");
        }
        cases.retain(|case| !case.reaches.is_empty());
        cases.sort_by_key(|case| case.took);
        Ok(Self { programs, cases })
    }

    /// Whether any test comes by this mutant.
    pub fn reach(&self, mutant: u32) -> bool {
        self.cases.iter().any(|case| case.reaches.contains(&mutant))
    }

    /// Tries a mutant until a test notices: the quick tests of each program together, the others one after the other.
    pub fn judge(&self, mutant: u32) -> Result<Outcome, Box<dyn Error>> {
        let touched = || self.cases.iter().filter(|case| case.reaches.contains(&mutant));
        let quick = (0..self.programs.len())
            .map(|program| touched().filter(|case| case.took < QUICK && case.program == program).collect::<Vec<_>>());
        let others = touched().filter(|case| case.took >= QUICK).map(|case| vec![case]);
        let number = mutant.to_string();
        for together in quick.chain(others).filter(|together| !together.is_empty()) {
            let names: Vec<&str> = together.iter().map(|case| case.name.as_str()).collect();
            let took: Duration = together.iter().map(|case| case.took).sum();
            let program = &self.programs[together[0].program];
            let found = run(program, &names, &[(VARIABLE, &number)], took * 4 + Duration::from_secs(10))?;
            if found != Outcome::Passed {
                return Ok(found);
            }
        }
        Ok(Outcome::Passed)
    }
}

/// The names of a program's tests.
fn names(program: &Program) -> Result<Vec<String>, Box<dyn Error>> {
    let output = command(program).args(["--list", "--format=terse"]).stderr(Stdio::null()).output()?;
    let listed = String::from_utf8(output.stdout)?;
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env_remove("CI");
    command
}

/// Runs these tests in one thread until the first fails. They hang if they have used more processor time than the limit, or none for
/// as long: on a busy machine the clock on the wall says little.
fn run(
    program: &Program,
    names: &[&str],
    variables: &[(&str, &str)],
    limit: Duration,
) -> Result<Outcome, Box<dyn Error>> {
    let mut command = command(program);
    command.args(["--exact", "--test-threads=1"]).args(names).envs(variables.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut told = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let (tell, ends) = mpsc::channel();
    thread::spawn(move || {
        // Nobody may be listening any more. Of a program that has ended no more lines come.
        _ = tell.send(told.any(|line| line.is_ok_and(|line| line.ends_with("... FAILED"))));
    });
    let (mut used, mut got_on) = (Duration::ZERO, Instant::now());
    loop {
        match ends.recv_timeout(LOOK.min(limit)) {
            Ok(false) => return Ok(if child.wait()?.success() { Outcome::Passed } else { Outcome::Failed }),
            Ok(true) => return ended(&mut child, Outcome::Failed),
            Err(_) => {
                let now = processor_time(child.id())?;
                if now > used {
                    (used, got_on) = (now, Instant::now());
                }
                if used > limit || got_on.elapsed() > limit {
                    return ended(&mut child, Outcome::Hung);
                }
            }
        }
    }
}

/// What a process has used of processors, in user and in system mode.
fn processor_time(process: u32) -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in brackets, may contain anything; what follows it begins with the third field.
    let fields = stat.rsplit_once(')').ok_or("no name in /proc/PID/stat")?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    Ok(Duration::from_millis(ticks * TICK_MS))
}

fn ended(child: &mut Child, outcome: Outcome) -> Result<Outcome, Box<dyn Error>> {
    child.kill()?;
    child.wait()?;
    Ok(outcome)
}
