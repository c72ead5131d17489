//! Task names by pid.

use rustc_hash::FxHashMap;

/// Maximum tasks with names: one machine has fewer.
const TASKS_MAX: usize = 1 << 20;

/// The names of tasks by pid. The last name of a pid counts, because exec renames the task.
#[derive(Debug, Default)]
pub struct Names {
    by_pid: FxHashMap<u32, u32>,
    names: Vec<Box<str>>,
    numbers_by_name: FxHashMap<Box<str>, u32>,
}

impl Names {
    /// Records the name of a task. Invalid UTF-8 is replaced; control characters are escaped as in `/proc/PID/status`.
    pub fn learn(&mut self, pid: u32, name: &[u8]) {
        if let Some(&number) = self.by_pid.get(&pid)
            && self.names[number as usize].as_bytes() == name
        {
            return;
        }
        self.learn_new(pid, name);
    }

    fn learn_new(&mut self, pid: u32, name: &[u8]) {
        if self.by_pid.len() >= TASKS_MAX && !self.by_pid.contains_key(&pid) {
            return;
        }
        let name = printable(&String::from_utf8_lossy(name));
        let number = match self.numbers_by_name.get(&*name) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u32;
                self.names.push((*name).into());
                self.numbers_by_name.insert((*name).into(), number);
                number
            }
        };
        self.by_pid.insert(pid, number);
    }

    /// The name of a task, if known.
    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&str> {
        self.by_pid.get(&pid).map(|&number| &*self.names[number as usize])
    }

    /// Tasks with names, in order of their pids.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, &str)> {
        let mut all: Vec<_> = self.by_pid.iter().map(|(&pid, &number)| (pid, &*self.names[number as usize])).collect();
        all.sort_unstable();
        all
    }
}

/// Escapes control characters: a newline as `\n`, others as octal numbers.
fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '\n' => text.push_str("\\n"),
            letter if letter.is_control() => text.extend(format!("\\{:03o}", u32::from(letter)).chars()),
            letter => text.push(letter),
        }
    }
    text
}
