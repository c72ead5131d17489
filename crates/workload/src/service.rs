//! Which of several files is next: `file_service_type`.

use crate::error::quoted;
use crate::generator::Popularity;
use crate::values::{Refusal, whole};

/// What `file_service_type` asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FileService {
    /// One file after the other, each for so many I/Os at a time.
    RoundRobin { ios: u32 },
    /// Each file until it is done.
    Sequential,
    /// One at random, for so many I/Os.
    Random { ios: u32 },
    /// Some files more often than others.
    Skewed(Popularity),
}

impl Default for FileService {
    fn default() -> Self {
        FileService::RoundRobin { ios: 1 }
    }
}

impl FileService {
    pub(crate) fn parse(text: &str) -> Result<FileService, Refusal> {
        let (word, after) = match text.split_once(':') {
            Some((word, after)) => (word, Some(after)),
            None => (text, None),
        };
        let ios = || after.map_or(Ok(1), |n| whole(n, 1, i64::from(u32::MAX))).map(|n| n as u32);
        Ok(match word {
            "roundrobin" => FileService::RoundRobin { ios: ios()? },
            "sequential" => {
                // A file is done before the next one all the same.
                ios()?;
                FileService::Sequential
            }
            "random" => FileService::Random { ios: ios()? },
            _ => match Popularity::parse(word, after)? {
                Some(popularity) => FileService::Skewed(popularity),
                None => {
                    return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                        .hinting("expected roundrobin, sequential, random, zipf, pareto, normal or gauss"));
                }
            },
        })
    }

    /// Whether files are drawn for ever, so that each goes round by itself.
    pub(crate) fn never_ends(self) -> bool {
        matches!(self, FileService::Skewed(_))
    }
}
