//! Loop devices for tests that change real ones.

use std::fs;
use std::process::Command;

use tempfile::{TempDir, tempdir};

#[path = "skips.rs"]
mod skips;
#[allow(unused_imports, reason = "not every test skips for a reason of its own")]
pub use skips::skipped;

/// A loop device for one test, which is detached when dropped.
pub struct Loop {
    pub name: String,
    _image: TempDir,
}

impl Loop {
    /// A device with the kernel's defaults; `None`, with a printed reason, if there cannot be one.
    pub fn new() -> Option<Self> {
        Self::over(tempdir().unwrap(), 8 << 20)
    }

    /// A device of 64 MiB, over a file in memory.
    #[allow(dead_code, reason = "not every test measures")]
    pub fn in_memory() -> Option<Self> {
        Self::over(folder_in_memory(64 << 20)?, 64 << 20)
    }

    fn over(image: TempDir, bytes: usize) -> Option<Self> {
        let file = image.path().join("image");
        // Blocks that were never written would be read without any I/O.
        fs::write(&file, vec![1; bytes]).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let made = output.ok().filter(|output| output.status.success());
        let Some(made) = made else {
            skipped("losetup makes no loop device (it takes root and a free one)");
            return None;
        };
        let name = String::from_utf8(made.stdout).unwrap().trim().trim_start_matches("/dev/").to_owned();
        let device = Self { name, _image: image };
        if !fs::read_to_string(device.file("scheduler")).unwrap().contains("bfq") {
            skipped("this kernel has no bfq");
            return None;
        }
        device.reset();
        Some(device)
    }

    /// A device keeps its settings even if it gets another file.
    fn reset(&self) {
        for scheduler in ["kyber", "none"] {
            self.set("scheduler", scheduler);
        }
        self.set("wbt_lat_usec", "-1");
    }

    /// The path of a file of its queue.
    pub fn file(&self, file: &str) -> String {
        format!("/sys/block/{}/queue/{file}", self.name)
    }

    /// Writes a file of its queue.
    pub fn set(&self, file: &str, value: &str) {
        fs::write(self.file(file), value).unwrap();
    }

    /// The content of a file of its queue.
    pub fn shown(&self, file: &str) -> String {
        fs::read_to_string(self.file(file)).unwrap().trim().to_owned()
    }

    /// All that depends on the scheduler.
    pub fn state(&self) -> Vec<(String, String)> {
        let names = fs::read_dir(self.file("iosched")).into_iter().flatten();
        let names = names.flatten().map(|entry| format!("iosched/{}", entry.file_name().to_str().unwrap()));
        let mut files: Vec<String> = ["scheduler", "nr_requests", "wbt_lat_usec", "read_ahead_kb"]
            .map(str::to_owned)
            .into_iter()
            .chain(names)
            .collect();
        files.sort();
        // A file of a scheduler vanishes while a program sets another one.
        let shown = |file: &str| {
            fs::read_to_string(self.file(file)).map_or_else(|_| "-".to_owned(), |text| text.trim().to_owned())
        };
        files.into_iter().map(|file| (file.clone(), shown(&file))).collect()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.reset();
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]).status();
    }
}

/// A folder in memory with room for files of this many bytes; `None`, with a printed reason, if there is less. Tests
/// that run at the same time may need the same amount.
#[allow(dead_code, reason = "not every test measures")]
pub fn folder_in_memory(bytes: u64) -> Option<TempDir> {
    let free = rustix::fs::statvfs("/dev/shm").map_or(0, |fs| fs.f_bavail * fs.f_frsize);
    if free < bytes + (512 << 20) {
        eprintln!("{} MiB are free in /dev/shm (expected {})", free >> 20, (bytes >> 20) + 512);
        skipped("/dev/shm has too little room");
        return None;
    }
    Some(TempDir::new_in("/dev/shm").unwrap())
}
