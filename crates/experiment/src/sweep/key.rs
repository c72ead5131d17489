//! Keys of experiments: a hash of the version, of all inputs and of the seed.

use std::fmt;
use std::str::FromStr;

use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};

use super::VERSION;

/// Bytes of a key: enough that no two of 10^18 experiments collide.
const BYTES: usize = 16;

/// The key of an experiment: equal only if version, comparison, inputs and seed are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key([u8; BYTES]);

impl Key {
    /// Hashes texts in this order.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hash = Hash::new();
        for part in parts {
            // The length comes first, so that two different lists never hash the same bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut key = [0; BYTES];
        key.copy_from_slice(&hash.finalize()[..BYTES]);
        Key(key)
    }

    /// The key of an experiment without its seed, in this version of Hoistway.
    pub(super) fn seedless_key(comparison: &str, inputs: &[u8]) -> Key {
        Key::of(&[b"hoistway-run/1", VERSION.as_bytes(), comparison.as_bytes(), inputs])
    }

    /// The key of the same experiment with a seed.
    pub(super) fn with_seed(&self, seed: u64) -> Key {
        Key::of(&[&self.0, &seed.to_le_bytes()])
    }

    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Key, String> {
        let expected = || format!("{text:?} is not a key (expected {} hexadecimal digits)", 2 * BYTES);
        if text.len() != 2 * BYTES || !text.is_ascii() {
            return Err(expected());
        }
        let mut key = [0; BYTES];
        for (index, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| expected())?;
        }
        Ok(Key(key))
    }
}

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Key, String> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_earlier_versions() {
        // SHA-256 of nothing, and of "abc" after its length, as `sha256sum` prints them.
        assert_eq!(Key::of(&[]).to_string(), "e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(Key::of(&[b"abc"]).to_string(), "ce91dc5eec0139adf091900d225971d6");
    }
}
