//! Division of a sweep's points into shards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of several parts of a sweep: every point belongs to exactly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// The number of the shard, from 1.
    number: u64,
    of: u64,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// The shard, of `of` shards, that contains a point. Shards have equal sizes. Neighbouring points are in different shards,
    /// and so are points at regular distances, so that slow points are spread evenly.
    pub const fn holding(point: u64, of: u64) -> Shard {
        Shard { number: 1 + (point % of + point / of) % of, of }
    }

    /// The shard's points of a sweep with `all` points, in order.
    pub fn points(self, all: u64) -> impl Iterator<Item = u64> {
        let Shard { number, of } = self;
        let rows = all.div_ceil(of);
        (0..rows).map(move |row| row * of + (number - 1 + of - row % of) % of).filter(move |&point| point < all)
    }

    /// The number of shards.
    pub const fn of(self) -> u64 {
        self.of
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        /// With more, the largest sweeps would have less than one run per shard.
        const SHARDS_MAX: u64 = 1_000_000;
        let parsed = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) && of <= SHARDS_MAX => Ok(Shard { number, of }),
            _ => Err(format!("expected K/N, the shard's number from 1 to N, and N up to {SHARDS_MAX}, such as 3/64")),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_in_one_shard_and_shards_are_evenly_sized() {
        for (all, of) in [(0, 3), (1, 4), (7, 1), (100, 7), (1000, 64), (64, 64)] {
            let mut seen = vec![0; all as usize];
            let mut lengths = Vec::new();
            for number in 1..=of {
                let shard: Shard = format!("{number}/{of}").parse().unwrap();
                let points: Vec<u64> = shard.points(all).collect();
                assert!(points.is_sorted());
                assert!(points.iter().all(|&point| Shard::holding(point, of) == shard));
                points.iter().for_each(|&point| seen[point as usize] += 1);
                lengths.push(points.len());
            }
            assert!(seen.iter().all(|&times| times == 1), "{all} {of}");
            assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn periodic_runs_are_spread_over_all_shards() {
        let firsts = Shard { number: 1, of: 4 }.points(400).filter(|point| point % 4 == 0).count();
        assert_eq!(firsts, 25);
    }

    #[test]
    fn an_invalid_shard_is_refused_with_an_example() {
        for text in ["", "1", "0/4", "5/4", "1/0", "-1/4", "a/b", "1/99999999"] {
            assert!(text.parse::<Shard>().unwrap_err().contains("such as 3/64"), "{text}");
        }
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
    }
}
