//! Which of several files is next: `file_service_type`.

use crate::error::quoted;
use crate::generator::Distribution;
use crate::values::{Refusal, decimal, whole};

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
    Skewed(Distribution),
    /// Files in the middle more often than others; the spread is in percent of the number of files.
    Gauss { spread: f64 },
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
        let parameter = |default| after.map_or(Ok(default), decimal);
        Ok(match word {
            "roundrobin" => FileService::RoundRobin { ios: ios()? },
            "sequential" => {
                // A file is done before the next one all the same.
                ios()?;
                FileService::Sequential
            }
            "random" => FileService::Random { ios: ios()? },
            "zipf" => {
                let theta = parameter(1.1)?;
                if theta == 0.0 || theta == 1.0 || theta > 100.0 {
                    return Err(Refusal::new("theta of zipf is out of range").hinting("above 0, not 1, at most 100"));
                }
                FileService::Skewed(Distribution::Zipf { theta, centre: None })
            }
            "pareto" => {
                let h = parameter(0.2)?;
                if h <= 0.0 || h >= 1.0 {
                    return Err(Refusal::new("h of pareto is out of range").hinting("above 0 and below 1"));
                }
                FileService::Skewed(Distribution::Pareto { h, centre: None })
            }
            "normal" | "gauss" => {
                let spread = parameter(0.0)?;
                if spread >= 100.0 {
                    return Err(Refusal::new("the deviation is out of range").hinting("below 100 percent"));
                }
                FileService::Gauss { spread }
            }
            _ => {
                return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                    .hinting("expected roundrobin, sequential, random, zipf, pareto, normal or gauss"));
            }
        })
    }

    /// Whether files are drawn for ever, so that each goes round by itself.
    pub(crate) fn never_ends(self) -> bool {
        matches!(self, FileService::Skewed(_) | FileService::Gauss { .. })
    }
}
