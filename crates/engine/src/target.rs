//! The targets of an engine in their text form.
//!
//! Used by: crates `hoistway`, `serve`, `serve-options`.
//! Tests: below.

use std::path::PathBuf;

/// Default size of `null:`.
const NULL_BYTES: u64 = 1 << 40;
/// Size range of memory targets, and of files that a run creates.
const TARGET_BYTES: std::ops::RangeInclusive<u64> = 4096..=Target::BYTES_MAX;
/// Maximum memory for fixed buffers.
const FIXED_BYTES_MAX: u64 = 1 << 30;

/// The value of `--target`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// `file:PATH`: a regular file.
    File(PathBuf),
    /// `blk:PATH`: a block device.
    Block(PathBuf),
    /// `mem:SIZE`: memory of this many bytes.
    Memory(u64),
    /// `null:` or `null:SIZE`: a device of this many bytes that stores nothing.
    Null(u64),
    /// `sim:PRESET`: a simulated device, by the name of its preset or the path of its file.
    Simulated(String),
}

impl Target {
    /// The forms that [`parse`](Self::parse) accepts.
    pub const EXPECTED: &str = "expected file:PATH, blk:PATH, mem:SIZE, null:, null:SIZE or sim:PRESET";
    /// Maximum size of a target.
    pub const BYTES_MAX: u64 = 1 << 50;

    /// Parses one of the forms.
    ///
    /// # Errors
    /// If it has none of the forms, a path is empty or a size is out of range; the message does not contain the name of
    /// the option.
    pub fn parse(text: &str) -> Result<Target, String> {
        let Some((kind, rest)) = text.split_once(':') else { return Err(Target::EXPECTED.into()) };
        let path = || match rest {
            "" => Err(format!("a path is missing ({})", Target::EXPECTED)),
            path => Ok(PathBuf::from(path)),
        };
        let bytes = || {
            let size = parse_size(rest).ok().filter(|bytes| TARGET_BYTES.contains(bytes));
            size.ok_or_else(|| "expected a size from 4K to 1024T, such as 512M".to_owned())
        };
        Ok(match kind {
            "file" => Target::File(path()?),
            "blk" => Target::Block(path()?),
            "mem" => Target::Memory(bytes()?),
            "null" if rest.is_empty() => Target::Null(NULL_BYTES),
            "null" => Target::Null(bytes()?),
            "sim" => Target::Simulated(rest.to_owned()),
            _ => return Err(Target::EXPECTED.into()),
        })
    }
}

/// A number of bytes: `4096`, `512K`, `10G`, `10GiB`, in powers of 1024.
///
/// # Errors
/// If it is not a number of bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => Some(0),
        "k" | "kib" | "kb" => Some(10),
        "m" | "mib" | "mb" => Some(20),
        "g" | "gib" | "gb" => Some(30),
        "t" | "tib" | "tb" => Some(40),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is not a number, alone or with K, M, G or T"))
}

/// Parses the bytes of [fixed buffers](crate::Files::with_fixed_buffers).
///
/// # Errors
/// If it is not a size, or more than 1 GiB.
pub fn parse_fixed_buffers(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text).ok().filter(|&bytes| bytes <= FIXED_BYTES_MAX);
    bytes.map(|bytes| bytes as usize).ok_or_else(|| format!("{text:?} is not a size from 0 to 1G, such as 4M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_of_its_forms() {
        assert_eq!(Target::parse("file:a:b"), Ok(Target::File("a:b".into())));
        assert_eq!(Target::parse("blk:/dev/sda"), Ok(Target::Block("/dev/sda".into())));
        assert_eq!(Target::parse("mem:4K"), Ok(Target::Memory(4096)));
        assert_eq!(Target::parse("null:"), Ok(Target::Null(1 << 40)));
        assert_eq!(Target::parse("null:1GiB"), Ok(Target::Null(1 << 30)));
        assert_eq!(Target::parse("sim:null"), Ok(Target::Simulated("null".into())));
        for wrong in ["", "disk.img", "tape:x", "file:", "mem:", "mem:4095", "mem:1025T", "null:lots"] {
            assert!(Target::parse(wrong).expect_err(wrong).contains("expected"), "{wrong}");
        }
    }

    #[test]
    fn fixed_buffers_are_bounded() {
        assert_eq!(parse_fixed_buffers("0"), Ok(0));
        assert_eq!(parse_fixed_buffers("1G"), Ok(1 << 30));
        assert!(parse_fixed_buffers("2G").is_err() && parse_fixed_buffers("-1").is_err());
    }
}
