//! The claims that are stored with the figures of `reproduce`: each can fail, and asks at least half of what was published.

use std::path::Path;

use csv::StringRecord;

/// The stored cells of tables of Linux's schedulers and of others.
const STORED: [&str; 2] = ["reproduction.csv", "research.csv"];

/// Claims about a drive rather than about a scheduler: an error is claimed whether or not schedulers differ.
const OF_DRIVES: [&str; 2] = ["icpe24-writers", "icpe24-reads"];

/// Part of a published effect that a claim asks, on a logarithmic scale; figures are stored with four digits.
const PART_OF_EFFECT: f64 = 0.5 - 0.02;

fn cells() -> Vec<StringRecord> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals");
    let tables = STORED.map(|file| csv::Reader::from_path(folder.join(file)).unwrap());
    tables.into_iter().flat_map(|table| table.into_records().map(Result::unwrap)).collect()
}

/// A stored cell.
struct Stored<'a> {
    cell: &'a StringRecord,
    published: Option<f64>,
    /// The figure without the effect.
    without: Option<f64>,
}

impl<'a> Stored<'a> {
    fn of(cell: &'a StringRecord) -> Stored<'a> {
        Stored { cell, published: cell[4].parse().ok(), without: cell[7].parse().ok() }
    }

    /// The claim, and whether it holds.
    fn claim(&self) -> Option<(&'a str, bool)> {
        let text = &self.cell[6];
        let held = text.strip_prefix("holds: ").map(|claim| (claim, true));
        held.or_else(|| text.strip_prefix("MISSED: ").map(|claim| (claim, false)))
    }

    /// Whether the other cell is none's figure of the same table: in the same column, or in the same row.
    fn is_beside(&self, other: &StringRecord) -> bool {
        let [row, column] = [1, 2].map(|index| self.cell[index] == other[index]);
        self.cell[0] == other[0] && (column && &other[1] == "none" || row && &other[2] == "none")
    }

    fn name(&self) -> String {
        format!("{}: {}, {}: {}", &self.cell[0], &self.cell[1], &self.cell[2], &self.cell[6])
    }

    /// The least and the most that a claim allows.
    fn allowed(&self, claim: &str) -> [f64; 2] {
        let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{}", self.name()));
        let published = || self.published.unwrap_or_else(|| panic!("{}: nothing was published", self.name()));
        if let Some(percent) = claim.strip_prefix("error at most ").and_then(|rest| rest.strip_suffix(" %")) {
            return [published() * (1.0 - number(percent) / 100.0), published() * (1.0 + number(percent) / 100.0)];
        }
        if let Some(distance) = claim.strip_prefix("at most ").and_then(|rest| rest.strip_suffix(" away")) {
            return [published() - number(distance), published() + number(distance)];
        }
        if let Some(factor) = claim.strip_prefix("within a factor of ") {
            return [published() / number(factor), published() * number(factor)];
        }
        if let Some(most) = claim.strip_prefix("at most ") {
            return [f64::NEG_INFINITY, number(most)];
        }
        if let Some(least) = claim.strip_prefix("at least ") {
            return [number(least), f64::INFINITY];
        }
        let (least, most) = claim.split_once(" to ").unwrap_or_else(|| panic!("{}", self.name()));
        [number(least), number(most)]
    }
}

#[test]
fn no_claim_that_holds_would_hold_without_the_scheduler() {
    let cells = cells();
    let claims = cells.iter().map(Stored::of).filter_map(|stored| Some((stored.claim()?, stored)));
    let mut count = 0;
    for ((claim, holds), stored) in claims {
        count += 1;
        let [least, most] = stored.allowed(claim);
        let Some(without) = stored.without else { continue };
        // Bounds are stored with three digits after the point.
        let is_allowed = least + 0.0005 < without && without + 0.0005 < most;
        assert!(!holds || !is_allowed, "{}, but {without} without it", stored.name());
    }
    assert!(count > 200, "{count} claims");
}

#[test]
fn a_claim_about_a_published_effect_asks_at_least_half_of_it() {
    let cells = cells();
    let mut count = 0;
    for stored in cells.iter().map(Stored::of).filter(|stored| !OF_DRIVES.contains(&&stored.cell[0])) {
        // What was published without the effect, if it was.
        let none = cells.iter().find(|cell| stored.is_beside(cell)).and_then(|cell| cell[4].parse().ok());
        let (Some((claim, _)), Some(published), Some(without)) =
            (stored.claim(), stored.published, none.or(stored.without))
        else {
            continue;
        };
        let [least, most] = stored.allowed(claim);
        let is_limit_on_cost = least < without && without < most;
        let is_equal = without != 0.0 && (published / without).max(without / published) < 1.1;
        if is_limit_on_cost || is_equal {
            continue;
        }
        // The allowed figure that is nearest to the one without the effect.
        let nearest = if published > without { least } else { most };
        let asked =
            if without == 0.0 { nearest / published } else { (nearest / without).ln() / (published / without).ln() };
        assert!(asked >= PART_OF_EFFECT, "{}: {asked:.2} of the effect, {without} to {published}", stored.name());
        count += 1;
    }
    assert!(count > 60, "{count} claims about published effects");
}

#[test]
fn the_readme_counts_the_stored_claims() {
    let cells = cells();
    let of_linux = || cells.iter().filter(|cell| !cell[0].starts_with("research-"));
    let count = |start: &str| of_linux().filter(|cell| cell[6].starts_with(start)).count();
    let [held, missed] = ["holds: ", "MISSED: "].map(count);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let sentence = format!("of {} claims about its\nfigures {held} hold", held + missed);
    assert!(std::fs::read_to_string(readme).unwrap().contains(&sentence), "README.md lacks {sentence:?}");
}
