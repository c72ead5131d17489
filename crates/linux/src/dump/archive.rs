//! The archives of dumps: tar, written compressed with zstd, and read with zstd, gzip or neither.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Archive, Builder, EntryType, Header};

use super::{DumpError, Entries, MARK};
use crate::root::Found;

/// Maximum unpacked size in bytes: ten times the dump of a machine with thousands of disks.
const BYTES_MAX: u64 = 512 << 20;

/// The magic number of zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The magic number of gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The magic number of tar, and its place.
const TAR_MAGIC: (usize, &[u8]) = (257, b"ustar");

/// Folder of block devices, which every dump has.
const SYSFS: &str = "sys/block";

/// A complete tar ends with this many zero bytes.
const TAR_END_BYTES: usize = 1024;

/// Packs entries into an archive that begins with the mark of a dump.
pub(super) fn pack(entries: &Entries) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let mut append = |path: &str, found: &Found| {
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        match found {
            Found::Folder => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                builder.append_data(&mut header, path, io::empty())
            }
            Found::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                header.set_size(0);
                builder.append_link(&mut header, path, target)
            }
            Found::File(bytes) => {
                header.set_mode(0o644);
                header.set_size(bytes.len() as u64);
                builder.append_data(&mut header, path, bytes.as_slice())
            }
        }
    };
    let (name, text) = MARK;
    append(name, &Found::File(text.into()))?;
    for (path, found) in entries.iter().filter(|(path, _)| !path.is_empty() && path.as_str() != name) {
        append(path, found)?;
    }
    Ok(compress_to_vec(builder.into_inner()?.as_slice(), CompressionLevel::Fastest))
}

/// Reads the entries of an archive.
pub(super) fn entries(archive: &Path, file: &str) -> Result<Entries, DumpError> {
    let opened = File::open(archive).map_err(|error| DumpError::Unopened { file: file.to_owned(), error })?;
    read(BufReader::new(opened), file)
}

/// Unpacks the tar inside an archive.
fn tar_bytes(mut packed: impl Read, file: &str) -> Result<Vec<u8>, DumpError> {
    let damaged = |why: String| DumpError::Damaged { file: file.to_owned(), why };
    let mut begin = Vec::new();
    let magic_bytes = (TAR_MAGIC.0 + TAR_MAGIC.1.len()) as u64;
    packed.by_ref().take(magic_bytes).read_to_end(&mut begin).map_err(|error| damaged(error.to_string()))?;
    let is_zstd = begin.starts_with(&ZSTD_MAGIC);
    let is_gzip = begin.starts_with(&GZIP_MAGIC);
    let is_tar = begin.get(TAR_MAGIC.0..) == Some(TAR_MAGIC.1);
    let whole = io::Cursor::new(begin).chain(packed);
    let mut bytes = Vec::new();
    let read = if is_zstd {
        let decoder = StreamingDecoder::new(whole).map_err(|error| damaged(error.to_string()))?;
        decoder.take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else if is_gzip {
        MultiGzDecoder::new(whole).take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else if is_tar {
        whole.take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        return Err(DumpError::NoDump { file: file.to_owned() });
    };
    read.map_err(|error| damaged(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(damaged(format!("unpacks to more than {} MiB", BYTES_MAX >> 20)));
    }
    let end = bytes.len().saturating_sub(TAR_END_BYTES);
    if bytes.len() < TAR_END_BYTES || bytes[end..].iter().any(|&byte| byte != 0) {
        return Err(damaged("the end of the archive is missing".to_owned()));
    }
    Ok(bytes)
}

/// Reads all entries of an archive and checks them.
fn read(packed: impl Read, file: &str) -> Result<Entries, DumpError> {
    let damaged = |why: String| DumpError::Damaged { file: file.to_owned(), why };
    let unsafe_entry =
        |entry: &str, why: String| DumpError::Unsafe { file: file.to_owned(), entry: entry.to_owned(), why };
    let bytes = tar_bytes(packed, file)?;
    let mut archive = Archive::new(bytes.as_slice());
    let mut entries = Entries::new();
    for entry in archive.entries().map_err(|error| damaged(error.to_string()))? {
        let mut entry = entry.map_err(|error| damaged(error.to_string()))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = safe_entry_path(&name).map_err(|why| unsafe_entry(&name, why))?;
        let found = match entry.header().entry_type() {
            // The global header of archives made by git and others.
            EntryType::XGlobalHeader => continue,
            EntryType::Directory => Found::Folder,
            EntryType::Regular | EntryType::Continuous => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
                Found::File(bytes)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                Found::Link(String::from_utf8_lossy(&target).into_owned())
            }
            _ => return Err(unsafe_entry(&name, "is neither a file, a folder nor a symbolic link".to_owned())),
        };
        if !path.is_empty() {
            entries.insert(path, found);
        }
    }
    let entries = without_top_folder(entries);
    let is_marked = entries.get(MARK.0) == Some(&Found::File(MARK.1.into()));
    if !is_marked && !entries.keys().any(|path| path == SYSFS || path.starts_with(&format!("{SYSFS}/"))) {
        return Err(DumpError::NoDump { file: file.to_owned() });
    }
    for (path, found) in &entries {
        if let Found::Link(target) = found
            && escapes_root(path, target)
        {
            return Err(unsafe_entry(path, format!("is a link to \"{target}\", outside the dump")));
        }
        let mut descendant = path.as_str();
        while let Some((folder, _)) = descendant.rsplit_once('/') {
            if !matches!(entries.get(folder), None | Some(Found::Folder)) {
                return Err(unsafe_entry(path, format!("is below \"{folder}\", which is not a folder")));
            }
            descendant = folder;
        }
    }
    Ok(entries)
}

/// Removes the folder that contains all others, as in an archive of `web-1/sys`, `web-1/proc`.
fn without_top_folder(entries: Entries) -> Entries {
    let Some(top) = entries.keys().next().and_then(|path| path.split('/').next()).map(str::to_owned) else {
        return entries;
    };
    let below = format!("{top}/");
    let is_all =
        entries.iter().all(|(path, found)| path.starts_with(&below) || (*path == top && *found == Found::Folder));
    if !is_all || !entries.keys().any(|path| path[below.len().min(path.len())..].starts_with(SYSFS)) {
        return entries;
    }
    entries.into_iter().filter_map(|(path, found)| Some((path.strip_prefix(&below)?.to_owned(), found))).collect()
}

/// The path of an entry, or an error if it points outside the archive.
fn safe_entry_path(name: &str) -> Result<String, String> {
    if name.starts_with('/') {
        return Err("has an absolute path".to_owned());
    }
    if name.contains('\0') {
        return Err("has a zero byte in its name".to_owned());
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") { Err("points outside the dump".to_owned()) } else { Ok(parts.join("/")) }
}

/// Whether a link at `path` to `target` points outside the root. An absolute target starts at the root.
pub(super) fn escapes_root(path: &str, target: &str) -> bool {
    let mut depth = if target.starts_with('/') { 0 } else { path.matches('/').count() };
    for part in target.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, depth) {
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    target.contains('\0') || target.is_empty()
}
