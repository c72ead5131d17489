//! A copy of the sources with all mutants in them, of which a variable of the environment chooses one.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mutants::{self, Kind, Site};

/// Chooses the mutant, in the programs that are tried.
pub const VARIABLE: &str = "HOISTWAY_MUTANT";

/// Names the file to which programs write the numbers of the mutants that they come by.
pub const LIST: &str = "HOISTWAY_MUTANTS_REACHED";

const CHOOSER: &str = r#"
#[doc(hidden)]
#[allow(missing_docs)]
pub mod mutant {
    use std::env::var;
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static CHOSEN: LazyLock<u32> =
        LazyLock::new(|| var("HOISTWAY_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX));
    static LIST: LazyLock<Option<String>> = LazyLock::new(|| var("HOISTWAY_MUTANTS_REACHED").ok());
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];

    #[inline]
    pub fn is(number: u32) -> bool {
        if LIST.is_some() && !REACHED[number as usize].load(Relaxed) {
            reached(number);
        }
        *CHOSEN == number
    }

    #[cold]
    fn reached(number: u32) {
        if !REACHED[number as usize].swap(true, Relaxed) {
            let list = LIST.as_ref().unwrap();
            writeln!(std::fs::File::options().append(true).open(list).unwrap(), "{number}").unwrap();
        }
    }
}
"#;

pub struct Mutant {
    pub file: PathBuf,
    pub line: usize,
    pub told: String,
}

struct Source {
    path: PathBuf,
    text: String,
    /// With the number of the first mutant of each.
    sites: Vec<(u32, Site)>,
}

/// The sources of a crate, and what is changed in them.
pub struct Tree {
    pub root: PathBuf,
    sources: Vec<Source>,
    pub mutants: Vec<Mutant>,
    /// Mutants that do not compile.
    pub unviable: BTreeSet<u32>,
    /// The file in which those of these sources are remembered.
    known: PathBuf,
}

/// Where the code of a mutant came to lie in a file as it was written.
pub struct Written {
    pub file: PathBuf,
    pub places: Vec<(u32, Range<usize>)>,
}

impl Tree {
    /// Copies what git knows of the repository and finds the mutants of the crate, in files whose path contains one of `parts`.
    pub fn new(repository: &Path, root: PathBuf, name: &str, parts: &[String]) -> io::Result<Self> {
        let listed = Command::new("git").arg("-C").arg(repository).args(["ls-files", "-z"]).output()?;
        let listed = String::from_utf8(listed.stdout).map_err(io::Error::other)?;
        let (mut sources, mut mutants) = (Vec::new(), Vec::new());
        let of_crate = format!("crates/{name}/src/");
        let lib = format!("{of_crate}lib.rs");
        for file in listed.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (repository.join(file), root.join(file));
            let Ok(mut bytes) = fs::read(&from) else { continue };
            fs::create_dir_all(to.parent().expect("it is below the root"))?;
            let is_source = file.starts_with(&of_crate) && file.ends_with(".rs") && !file.contains("tests");
            if !is_source || !(parts.is_empty() || parts.iter().any(|part| file.contains(part.as_str()))) {
                if *file == lib {
                    bytes.extend_from_slice(CHOOSER.as_bytes());
                }
                put(&to, &bytes)?;
                continue;
            }
            let text = String::from_utf8(bytes).map_err(io::Error::other)?;
            let mut sites = Vec::new();
            for site in mutants::sites(&text).map_err(io::Error::other)? {
                let first = mutants.len() as u32;
                mutants.extend(site.instead.iter().map(|(_, told)| {
                    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
                    Mutant { file: file.into(), line: site.line, told }
                }));
                sites.push((first, site));
            }
            sources.push(Source { path: file.into(), text, sites });
        }
        let mut hasher = DefaultHasher::new();
        sources.iter().for_each(|source: &Source| (&source.path, &source.text).hash(&mut hasher));
        let known = root.with_file_name(format!("unviable-{name}-{:016x}", hasher.finish()));
        let remembered = fs::read_to_string(&known).unwrap_or_default();
        let unviable = remembered.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Self { root, sources, mutants, unviable, known })
    }

    /// Remembers which mutants do not compile, so that the same sources are written in the same way the next time and need no build.
    pub fn remember(&self) -> io::Result<()> {
        fs::write(&self.known, self.unviable.iter().map(|number| format!("{number}\n")).collect::<String>())
    }

    /// Writes the sources with all mutants that may compile.
    pub fn write(&self) -> io::Result<Vec<Written>> {
        self.sources.iter().map(|source| self.write_source(source)).collect()
    }

    fn write_source(&self, source: &Source) -> io::Result<Written> {
        // Insertions into the original: where, in which order there, what, and the mutant if it is a mutant's code. What
        // encloses begins first and ends last.
        let mut inserted: Vec<(usize, i64, String, Option<u32>)> = Vec::new();
        for (first, site) in &source.sites {
            let viable = (*first..).zip(&site.instead).filter(|(number, _)| !self.unviable.contains(number));
            let viable: Vec<_> = viable.collect();
            if viable.is_empty() {
                continue;
            }
            let Range { start, end } = site.range;
            let (begins, ends) = (-((end - start) as i64), (end - start) as i64);
            for &(number, (code, _)) in &viable {
                let is = format!("crate::mutant::is({number})");
                let text = match site.kind {
                    Kind::Expression if number == viable[0].0 => format!("(if {is} {{({code})}}"),
                    Kind::Expression => format!(" else if {is} {{({code})}}"),
                    Kind::Statement => format!("if !{is} {{ "),
                    Kind::Body => format!(" if {is} {{ {code}; }}"),
                };
                let (at, order) = if site.kind == Kind::Body { (end, i64::MIN) } else { (start, begins) };
                inserted.push((at, order, text, Some(number)));
            }
            match site.kind {
                Kind::Expression => {
                    inserted.push((start, begins, " else {(".to_owned(), None));
                    inserted.push((end, ends, ")})".to_owned(), None));
                }
                Kind::Statement => inserted.push((end, ends, " }".to_owned(), None)),
                Kind::Body => {}
            }
        }
        // Ends come before beginnings at the same place: they have positive orders.
        inserted.sort_by_key(|&(at, order, ..)| (at, order < 0, order));
        let (mut text, mut places, mut copied) = (String::new(), Vec::new(), 0);
        for (at, _, code, number) in &inserted {
            text.push_str(&source.text[copied..*at]);
            copied = *at;
            let begin = text.len();
            text.push_str(code);
            places.extend(number.map(|number| (number, begin..text.len())));
        }
        text.push_str(&source.text[copied..]);
        if source.path.ends_with("lib.rs") && source.path.components().count() == 4 {
            text.push_str(CHOOSER);
        }
        put(&self.root.join(&source.path), text.as_bytes())?;
        Ok(Written { file: source.path.clone(), places })
    }
}

/// Writes a file. What has not changed keeps its time, and is not built again.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).ok().as_deref() == Some(bytes) { Ok(()) } else { fs::write(path, bytes) }
}
