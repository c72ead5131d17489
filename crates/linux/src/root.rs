//! Access to files below a root folder, or in an archive, and to nothing outside it.
//!
//! Used by: `host`, `apply`, `record`, `dump`, `below`; crate `hoistway`.
//! Tests: below, `crates/linux/tests/host.rs`, `crates/linux/tests/apply.rs`.

mod archived;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use archived::Archived;

/// Maximum symbolic links in a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Maximum bytes read from a file: more than any text of the kernel or of a configuration.
const BYTES_MAX: u64 = 4 << 20;

/// Buffer size of the first read.
const READ_BYTES: usize = 16 << 10;

/// A folder that represents `/`.
///
/// Paths are relative to it, with or without a leading slash, and must not contain `..`. Symbolic links are followed inside
/// the folder: an absolute link starts at the folder, and a link that points outside is refused. Magic links of `/proc` are
/// followed only by their text.
#[derive(Debug)]
pub struct Root {
    place: Place,
    /// Its path below the outermost root: empty, or names that each end with a slash.
    prefix: String,
    log: Option<Log>,
}

/// What a root stands for.
#[derive(Debug)]
enum Place {
    /// A folder of a file system.
    Folder(OwnedFd),
    /// The entries of an archive, which cannot be changed.
    Archived(Arc<Archived>),
}

/// The file type and content at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// A folder.
    Folder,
    /// A link with its text.
    Link(String),
    /// A file with its bytes.
    File(Vec<u8>),
}

type Log = Arc<Mutex<BTreeMap<String, Found>>>;

/// The parent folder of a path's last component, and that component.
struct Parent {
    /// Open folders along the path, without the root.
    folders: Vec<OwnedFd>,
    /// The names of these folders.
    names: Vec<String>,
    /// The last component; empty if the path is a folder.
    last: String,
}

impl Root {
    /// Opens the folder at `path` as a root; `/` is the live system.
    ///
    /// # Errors
    /// If it is not a folder, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { place: Place::Folder(folder), prefix: String::new(), log: None })
    }

    /// Like [`open`](Self::open), but remembers everything that is read, for [`found`](Self::found).
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    pub fn open_and_remember(path: &Path) -> io::Result<Self> {
        Ok(Self { log: Some(Log::default()), ..Self::open(path)? })
    }

    /// A root for the entries of an archive, by path. It remembers everything that is read, if `remembers`.
    pub(crate) fn archived(entries: BTreeMap<String, Found>, remembers: bool) -> Self {
        let place = Place::Archived(Arc::new(Archived::new(entries)));
        Self { place, prefix: String::new(), log: remembers.then(Log::default) }
    }

    /// All remembered files, folders and links by path; empty unless opened with
    /// [`open_and_remember`](Self::open_and_remember).
    #[must_use]
    pub fn found(&self) -> BTreeMap<String, Found> {
        let log = self.log.as_ref();
        log.map(|log| log.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    fn remember(&self, names: &[String], last: &str, found: impl FnOnce() -> Found) {
        let Some(log) = &self.log else { return };
        let names: Vec<&str> = names.iter().map(String::as_str).chain((!last.is_empty()).then_some(last)).collect();
        let path = format!("{}{}", self.prefix, names.join("/"));
        log.lock().unwrap_or_else(PoisonError::into_inner).insert(path.trim_end_matches('/').to_owned(), found());
    }

    /// Opens the folder at `path` as a separate root.
    ///
    /// # Errors
    /// If it is not a folder, or is outside this root.
    pub fn below(&self, path: &str) -> io::Result<Self> {
        if let Place::Archived(archived) = &self.place {
            let prefix = self.archived_folder(archived, path)?;
            return Ok(Self { place: Place::Archived(Arc::clone(archived)), prefix, log: self.log.clone() });
        }
        let (folder, parent) = self.open_at(path, OFlags::PATH | OFlags::DIRECTORY)?;
        self.remember(&parent.names, &parent.last, || Found::Folder);
        let names = parent.names.iter().chain(Some(&parent.last)).filter(|name| !name.is_empty());
        let prefix = self.prefix.clone() + &names.map(|name| name.clone() + "/").collect::<String>();
        Ok(Self { place: Place::Folder(folder), prefix, log: self.log.clone() })
    }

    /// The text of a file, unchanged; invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, is longer than 4 MiB, or is outside this root.
    pub fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.read_bytes(path)?).into_owned())
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// The same as [`read`](Self::read).
    pub fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        if let Place::Archived(archived) = &self.place {
            return self.archived_bytes(archived, path);
        }
        // A named pipe in a folder of a dump must not block the reader.
        let (file, parent) = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        // Some sysfs and procfs files return all content in the first read, or lose the rest.
        let mut bytes = Vec::with_capacity(READ_BYTES);
        File::from(file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Errno::FBIG.into());
        }
        self.remember(&parent.names, &parent.last, || Found::File(bytes.clone()));
        Ok(bytes)
    }

    /// Opens an existing file with `flags`.
    ///
    /// # Errors
    /// If it does not exist, access is denied, or it is outside this root.
    pub fn open_file(&self, path: &str, flags: OFlags) -> io::Result<File> {
        Ok(File::from(self.open_at(path, flags)?.0))
    }

    /// The names in a folder, sorted. Names that are not UTF-8 are left out; the kernel creates none.
    ///
    /// # Errors
    /// If it is not a folder, cannot be read, or is outside this root.
    pub fn names(&self, path: &str) -> io::Result<Vec<String>> {
        if let Place::Archived(archived) = &self.place {
            return self.archived_names(archived, path);
        }
        let (folder, parent) = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        self.remember(&parent.names, &parent.last, || Found::Folder);
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
                self.remember_listed(&folder, &parent, name, entry.file_type());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Remembers a listed folder or link, since the list shows that it exists. Files are remembered when they are read.
    fn remember_listed(&self, folder: &OwnedFd, parent: &Parent, name: &str, kind: FileType) {
        if self.log.is_none() {
            return;
        }
        let names: Vec<String> =
            parent.names.iter().chain(Some(&parent.last)).filter(|name| !name.is_empty()).cloned().collect();
        match kind {
            FileType::Directory => self.remember(&names, name, || Found::Folder),
            FileType::Symlink => {
                let target =
                    rustix::fs::readlinkat(folder, name, Vec::new()).ok().and_then(|target| target.into_string().ok());
                if let Some(target) = target {
                    self.remember(&names, name, || Found::Link(target));
                }
            }
            _ => {}
        }
    }

    /// The target of a symbolic link, as stored.
    ///
    /// # Errors
    /// If it is not a link, or is outside this root.
    pub fn link(&self, path: &str) -> io::Result<String> {
        if let Place::Archived(archived) = &self.place {
            return self.archived_link(archived, path);
        }
        let parent = self.parent(path)?;
        let target = self.link_at(&parent.folders, &parent.last)?;
        self.remember(&parent.names, &parent.last, || Found::Link(target.clone()));
        Ok(target)
    }

    /// The path after following all links: relative to this root, without a leading slash.
    ///
    /// # Errors
    /// If it does not exist, or is outside this root.
    pub fn resolved(&self, path: &str) -> io::Result<String> {
        if let Place::Archived(archived) = &self.place {
            return Ok(self.archived_walk(archived, path, true)?.join("/"));
        }
        let (_, parent) = self.open_at(path, OFlags::PATH)?;
        let last = Some(parent.last).filter(|last| !last.is_empty());
        Ok(parent.names.into_iter().chain(last).collect::<Vec<_>>().join("/"))
    }

    /// Whether there is a folder at this path.
    #[must_use]
    pub fn has_folder(&self, path: &str) -> bool {
        if let Place::Archived(archived) = &self.place {
            return self.archived_folder(archived, path).is_ok();
        }
        let opened = self.open_at(path, OFlags::PATH | OFlags::DIRECTORY);
        opened.is_ok_and(|(_, parent)| {
            self.remember(&parent.names, &parent.last, || Found::Folder);
            true
        })
    }

    /// Writes to an existing file in a single call, as sysfs requires.
    ///
    /// # Errors
    /// If it does not exist, the kernel rejects the text, or the path is outside this root.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let (file, _) = self.open_at(path, OFlags::WRONLY | OFlags::TRUNC)?;
        let written = rustix::io::write(&file, text.as_bytes())?;
        if written == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Creates or replaces a file atomically and durably. Callers must ensure that no other process does so at the same
    /// time.
    ///
    /// # Errors
    /// If it cannot be written, or the path is outside this root.
    pub fn replace(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let parent = self.parent(path)?;
        let folder = self.innermost(&parent.folders)?;
        let temporary = temporary_name(&parent.last);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(folder, &temporary, flags, Mode::from_raw_mode(0o644))?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| Ok(rustix::fs::renameat(folder, &temporary, folder, &parent.last)?));
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
        }
        renamed?;
        self.sync_folder(&parent)
    }

    /// Removes the temporary file of a process that was killed within [`replace`](Self::replace).
    pub fn remove_part(&self, path: &str) {
        if let Ok(parent) = self.parent(path)
            && let Ok(folder) = self.innermost(&parent.folders)
        {
            let _ = rustix::fs::unlinkat(folder, temporary_name(&parent.last), AtFlags::empty());
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If it does not exist, access is denied, or the path leads out of this root.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let parent = self.parent(path)?;
        rustix::fs::unlinkat(self.innermost(&parent.folders)?, &parent.last, AtFlags::empty())?;
        self.sync_folder(&parent)
    }

    fn sync_folder(&self, parent: &Parent) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(self.innermost(&parent.folders)?, ".", flags, Mode::empty())?;
        Ok(rustix::fs::fsync(&folder)?)
    }

    /// Creates a folder; its parent must exist.
    ///
    /// # Errors
    /// If the name exists, access is denied, or the path is outside this root.
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        let parent = self.parent(path)?;
        Ok(rustix::fs::mkdirat(self.innermost(&parent.folders)?, &parent.last, Mode::from_raw_mode(0o755))?)
    }

    /// Removes a folder that is empty, or a kernel object such as a tracefs instance.
    ///
    /// # Errors
    /// If it does not exist, access is denied, or the path leads out of this root.
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        let parent = self.parent(path)?;
        Ok(rustix::fs::unlinkat(self.innermost(&parent.folders)?, &parent.last, AtFlags::REMOVEDIR)?)
    }

    /// The last of the folders that a walk opened, or the root.
    fn innermost<'a>(&'a self, folders: &'a [OwnedFd]) -> io::Result<&'a OwnedFd> {
        match (folders.last(), &self.place) {
            (Some(folder), _) | (None, Place::Folder(folder)) => Ok(folder),
            (None, Place::Archived(_)) => Err(Errno::ROFS.into()),
        }
    }

    fn link_at(&self, folders: &[OwnedFd], name: &str) -> io::Result<String> {
        let target = rustix::fs::readlinkat(self.innermost(folders)?, name, Vec::new())?;
        target.into_string().map_err(|_| Errno::ILSEQ.into())
    }

    /// Opens a path, following all links.
    fn open_at(&self, path: &str, flags: OFlags) -> io::Result<(OwnedFd, Parent)> {
        let mut walk = Walk { root: self, links: 0, parent: Parent::root() };
        let mut path = path.to_owned();
        reject_dot_dot(&path)?;
        loop {
            walk.walk_to_parent_of(&path)?;
            let last = walk.parent.last.as_str();
            let name = if last.is_empty() { "." } else { last }.to_owned();
            let opened = self.open_last(&walk.parent.folders, &name, flags);
            // O_PATH opens a link as itself; otherwise a link is refused.
            if opened.is_ok() && !flags.contains(OFlags::PATH) {
                return Ok((opened?, walk.parent));
            }
            match self.link_at(&walk.parent.folders, &name) {
                Ok(target) => {
                    self.remember(&walk.parent.names, &name, || Found::Link(target.clone()));
                    path = walk.count_link(target)?;
                }
                Err(_) => return Ok((opened?, walk.parent)),
            }
        }
    }

    fn open_last(&self, folders: &[OwnedFd], name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(rustix::fs::openat(self.innermost(folders)?, name, flags, Mode::empty())?)
    }

    /// The parent folder of a path's last component, which may be a link and is not followed.
    fn parent(&self, path: &str) -> io::Result<Parent> {
        reject_dot_dot(path)?;
        let mut walk = Walk { root: self, links: 0, parent: Parent::root() };
        walk.walk_to_parent_of(path)?;
        if walk.parent.last.is_empty() { Err(Errno::INVAL.into()) } else { Ok(walk.parent) }
    }
}

impl Parent {
    fn root() -> Self {
        Parent { folders: Vec::new(), names: Vec::new(), last: String::new() }
    }
}

/// A path walk in progress.
struct Walk<'a> {
    root: &'a Root,
    links: usize,
    parent: Parent,
}

impl Walk<'_> {
    /// Walks from the current folder to the parent of the path's last component, which is not looked up.
    fn walk_to_parent_of(&mut self, path: &str) -> io::Result<()> {
        if path.starts_with('/') {
            self.parent = Parent::root();
        }
        self.parent.last.clear();
        let mut rest: Vec<String> = components(path).rev().map(str::to_owned).collect();
        while let Some(name) = rest.pop() {
            if name == ".." {
                self.parent.names.pop();
                self.parent.folders.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            if rest.is_empty() {
                self.parent.last = name;
                return Ok(());
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(self.root.innermost(&self.parent.folders)?, &name, flags, Mode::empty()) {
                Ok(folder) => {
                    self.parent.folders.push(folder);
                    self.parent.names.push(name);
                }
                Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                    let target = self.root.link_at(&self.parent.folders, &name).map_err(|_| error)?;
                    self.root.remember(&self.parent.names, &name, || Found::Link(target.clone()));
                    let target = self.count_link(target)?;
                    if target.starts_with('/') {
                        self.parent = Parent::root();
                    }
                    rest.extend(components(&target).rev().map(str::to_owned));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Counts a followed link; fails after too many.
    fn count_link(&mut self, target: String) -> io::Result<String> {
        self.links += 1;
        if self.links > LINKS_MAX { Err(Errno::LOOP.into()) } else { Ok(target) }
    }
}

/// The temporary name of a file.
fn temporary_name(name: &str) -> String {
    format!(".{name}.part")
}

/// The components of a path.
fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "."))
}

/// `..` in a caller's path is a mistake or an attack.
fn reject_dot_dot(path: &str) -> io::Result<()> {
    if components(path).any(|part| part == "..") { Err(Errno::INVAL.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The same files and links in an archive.
    fn archive() -> Root {
        let file = |text: &str| Found::File(text.as_bytes().to_vec());
        let mut entries = BTreeMap::from([("a/b/file".to_owned(), file("text\n"))]);
        entries.extend(LINKS.map(|(link, target)| (link.to_owned(), Found::Link(target.to_owned()))));
        Root::archived(entries, true)
    }

    const LINKS: [(&str, &str); 8] = [
        ("down", "a/b"),
        ("absolute", "/a/b/file"),
        ("a/up", "../a/b/file"),
        ("out", "../secret"),
        ("a/far-out", "../../secret"),
        ("through", "down/../../../secret"),
        ("ring", "ring"),
        ("nowhere", "a/missing"),
    ];

    fn folder() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root_path = folder.path().join("root");
        std::fs::create_dir_all(root_path.join("a/b")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::fs::write(root_path.join("a/b/file"), "text\n").unwrap();
        for (link, target) in LINKS {
            symlink(target, root_path.join(link)).unwrap();
        }
        let root = Root::open(&root_path).unwrap();
        (folder, root)
    }

    #[test]
    fn links_are_followed_inside_the_root() {
        let (_folder, root) = folder();
        for root in [root, archive()] {
            for path in ["a/b/file", "/a/b/file", "down/file", "absolute", "a/up", "a/./b//file"] {
                assert_eq!(root.read(path).unwrap(), "text\n", "{path}");
                assert_eq!(root.resolved(path).unwrap(), "a/b/file", "{path}");
            }
            assert_eq!(root.names("down").unwrap(), ["file"]);
            assert_eq!(root.names("").unwrap(), ["a", "absolute", "down", "nowhere", "out", "ring", "through"]);
            assert_eq!(root.link("down").unwrap(), "a/b");
            assert_eq!(root.resolved("down").unwrap(), "a/b");
            assert_eq!(root.below("down").unwrap().read("file").unwrap(), "text\n");
        }
    }

    #[test]
    fn no_path_escapes_the_root() {
        let (_folder, root) = folder();
        for root in [root, archive()] {
            for path in
                ["out", "a/far-out", "through", "../secret", "a/../../secret", "..", "ring", "nowhere", "a/b/file/x"]
            {
                assert!(root.read(path).is_err(), "{path}");
                assert!(root.resolved(path).is_err(), "{path}");
                assert!(!root.has_folder(path), "{path}");
            }
            let below = root.below("a/b").unwrap();
            assert!(below.read("../up").is_err());
            let a = root.below("a").unwrap();
            assert!(a.read("up").is_err(), "its link leads out of a root that is smaller");
        }
    }

    #[test]
    fn an_archive_cannot_be_changed() {
        let root = archive();
        assert!(root.write("a/b/file", "x").is_err() && root.replace("a/new", b"x").is_err());
        assert!(root.remove("a/b/file").is_err() && root.make_folder("a/new").is_err());
        assert_eq!(root.read("a/b/file").unwrap(), "text\n");
    }

    #[test]
    fn folders_are_made_and_removed_below_the_root() {
        let (_folder, root) = folder();
        root.make_folder("a/new").unwrap();
        assert!(root.make_folder("a/new").is_err());
        assert!(root.make_folder("a/../../new").is_err());
        root.remove_folder("a/new").unwrap();
        assert!(!root.has_folder("a/new"));
        assert!(root.remove_folder("").is_err());
    }

    #[test]
    fn read_files_are_remembered_with_the_links_that_led_there() {
        let (folder, root) = folder();
        root.read("absolute").unwrap();
        assert!(root.found().is_empty(), "only a root that was asked to remembers");
        for root in [Root::open_and_remember(&folder.path().join("root")).unwrap(), archive()] {
            root.below("down").unwrap().read("file").unwrap();
            assert!(root.read("out").is_err());
            let text = Found::File(b"text\n".to_vec());
            let found = [("a/b", Found::Folder), ("a/b/file", text), ("down", Found::Link("a/b".to_owned()))];
            let found = found.map(|(path, found)| (path.to_owned(), found));
            let out = ("out".to_owned(), Found::Link("../secret".to_owned()));
            assert_eq!(root.found(), found.into_iter().chain([out]).collect());
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_never_outside() {
        let (folder, root) = folder();
        root.replace("a/new", b"one").unwrap();
        root.replace("a/new", b"two").unwrap();
        assert_eq!(root.read("a/new").unwrap(), "two");
        root.write("a/new", "x").unwrap();
        assert_eq!(root.read("a/new").unwrap(), "x");
        root.remove("a/new").unwrap();
        assert!(root.read("a/new").is_err());
        assert!(root.write("a/missing", "x").is_err(), "it makes no file");
        assert!(
            root.write("out", "x").is_err()
                && root.replace("../secret", b"x").is_err()
                && root.remove("../secret").is_err()
        );
        // The link itself is replaced, not its target.
        root.replace("out", b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "secret");
        std::fs::write(folder.path().join("root/.a.part"), "left").unwrap();
        root.remove_part("a");
        assert!(root.read(".a.part").is_err());
    }

    #[test]
    fn a_pipe_does_not_stop_a_reader() {
        let (folder, root) = folder();
        rustix::fs::mkfifoat(CWD, folder.path().join("root/pipe"), Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(root.read("pipe").unwrap_or_default(), "");
    }
}
