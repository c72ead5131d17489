//! The archive format of dumps: tar, compressed with zstd.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Archive, Builder, EntryType, Header};
use tempfile::TempDir;

use super::{DumpError, Entries, MARK};
use crate::root::Found;

/// Maximum unpacked size in bytes: ten times the dump of a machine with thousands of disks.
const BYTES_MAX: u64 = 512 << 20;

/// The magic number of zstd.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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

/// Unpacks an archive into a temporary folder.
pub(super) fn unpack(archive: &Path, file: &str) -> Result<TempDir, DumpError> {
    let open_error = |error| DumpError::Unopened { file: file.to_owned(), error };
    let mut packed = BufReader::new(File::open(archive).map_err(open_error)?);
    let mut magic = [0; MAGIC.len()];
    if packed.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Err(DumpError::NoDump { file: file.to_owned() });
    }
    let entries = read(io::Cursor::new(MAGIC).chain(packed), file)?;
    let folder = tempfile::tempdir().map_err(open_error)?;
    // `read` has checked that no entry is below a link or outside the folder, so each can be created by its path.
    for (path, found) in &entries {
        let target_path = folder.path().join(path);
        let parent = target_path.parent().map_or(Ok(()), fs::create_dir_all);
        let created = parent.and_then(|()| match found {
            Found::Folder => fs::create_dir_all(&target_path),
            Found::Link(target) => symlink(target, &target_path),
            Found::File(bytes) => fs::write(&target_path, bytes),
        });
        created.map_err(open_error)?;
    }
    Ok(folder)
}

/// Reads all entries of an archive and checks them.
fn read(packed: impl Read, file: &str) -> Result<Entries, DumpError> {
    let damaged = |why: String| DumpError::Damaged { file: file.to_owned(), why };
    let decoder = StreamingDecoder::new(packed).map_err(|error| damaged(error.to_string()))?;
    let mut bytes = Vec::new();
    decoder.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(damaged(format!("unpacks to more than {} MiB", BYTES_MAX >> 20)));
    }
    let mut archive = Archive::new(bytes.as_slice());
    let mut entries = Entries::new();
    for entry in archive.entries().map_err(|error| damaged(error.to_string()))? {
        let mut entry = entry.map_err(|error| damaged(error.to_string()))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let unsafe_entry =
            |why: &str| DumpError::Unsafe { file: file.to_owned(), entry: name.clone(), why: why.to_owned() };
        let path = safe_entry_path(&name).map_err(|why| unsafe_entry(&why))?;
        if path.is_empty() {
            continue;
        }
        let found = match entry.header().entry_type() {
            EntryType::Directory => Found::Folder,
            EntryType::Regular | EntryType::Continuous => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
                Found::File(bytes)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                let target = String::from_utf8_lossy(&target).into_owned();
                if escapes_root(&path, &target) {
                    return Err(unsafe_entry(&format!("is a link to \"{target}\", outside the dump")));
                }
                Found::Link(target)
            }
            _ => return Err(unsafe_entry("is neither a file, a folder nor a symbolic link")),
        };
        entries.insert(path, found);
    }
    if entries.get(MARK.0) != Some(&Found::File(MARK.1.into())) {
        return Err(DumpError::NoDump { file: file.to_owned() });
    }
    for path in entries.keys() {
        let mut descendant = path.as_str();
        while let Some((folder, _)) = descendant.rsplit_once('/') {
            if !matches!(entries.get(folder), None | Some(Found::Folder)) {
                let why = format!("is below \"{folder}\", which is not a folder");
                return Err(DumpError::Unsafe { file: file.to_owned(), entry: path.clone(), why });
            }
            descendant = folder;
        }
    }
    Ok(entries)
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
