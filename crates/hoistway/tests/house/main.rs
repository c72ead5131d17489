//! The house itself: what every crate's source has to keep to.

mod modules;
mod rings;

use std::path::PathBuf;

/// The folder of all crates.
fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rings that still stand, to be cut: the crate, and what is in the ring.
const STANDING: &[(&str, &str)] = &[
    ("blk", "attributes block_queue default_scheduler queue"),
    ("blk", "caller env"),
    ("blk", "elevator schedulers"),
    ("blk", "flush_queue lost merge plug request"),
    ("conform", "consistency kyber"),
    ("fio", "build iolog job jobfile options subjects"),
    (
        "lab",
        "comparison devices document effects guests host io_max io_prio_class load plan queue_files queues run schedulers setup surroundings tunables writes",
    ),
    ("load", "check generator load pace pattern plan process replay"),
    ("load", "generator lane order"),
    ("report", "conclusion failures table"),
    ("results", "comparison document"),
    ("results", "fio histogram_log io_log measurement"),
];

/// The modules of a crate are in layers: none of those that lie side by side in a folder uses another that, by whatever way
/// round, uses it. A ring that is cut is taken off the list of those that stand.
#[test]
fn no_crate_has_a_ring_of_modules_but_those_that_are_known() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for file in ["lib.rs", "main.rs"].map(|file| folder.join("src").join(file)) {
            if file.is_file() {
                let modules = modules::Modules::read(&file);
                found.extend(rings::of(&modules).into_iter().map(|ring| (name.clone(), ring)));
            }
        }
    }
    let is_known = |(name, ring): &&(String, rings::Ring)| STANDING.contains(&(name, &ring.members()));
    let new: Vec<_> =
        found.iter().filter(|ring| !is_known(ring)).map(|(name, ring)| format!("{name}: {ring}")).collect();
    assert!(new.is_empty(), "rings of modules:\n{}", new.join("\n"));
    let gone = STANDING
        .iter()
        .find(|&&(name, members)| !found.iter().any(|(other, ring)| other == name && ring.members() == members));
    assert_eq!(gone, None, "a ring that was cut is still on the list");
}

#[test]
fn a_ring_is_found_also_through_folders_and_what_they_hand_on() {
    let modules = modules::Modules::of(&[
        ("", "mod a; mod b; mod c; pub use b::Thing;"),
        ("a", "use crate::Thing; pub struct Here;"),
        ("b", "mod inner; pub use inner::Thing;"),
        ("b::inner", "use crate::c::There; pub struct Thing;"),
        ("c", "pub struct There; fn f() { let _ = crate::a::Here; }"),
    ]);
    let found = rings::of(&modules);
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["in the root: a -> b, b -> c, c -> a"]);
    assert_eq!(found[0].members(), "a b c");
}

#[test]
fn tests_within_a_module_and_uses_of_what_lies_above_make_no_ring() {
    let modules = modules::Modules::of(&[
        ("", "mod a; mod b; pub struct Root;"),
        ("a", "use super::Root; #[cfg(test)] mod tests { use crate::b::There; }"),
        ("b", "use crate::a; pub struct There;"),
    ]);
    assert!(rings::of(&modules).is_empty());
}
