//! Finds cycles among the modules of a folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{ModulePath, Modules};

/// Pairs of modules of a folder, of which the first uses the second.
pub type Uses = BTreeSet<(String, String)>;

/// Modules of a folder that use each other in a cycle.
pub struct Ring {
    folder: ModulePath,
    uses: Vec<(String, String)>,
}

impl std::fmt::Display for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folder = if self.folder.is_empty() { "the root".to_owned() } else { self.folder.join("::") };
        let uses: Vec<String> = self.uses.iter().map(|(user, used)| format!("{user} -> {used}")).collect();
        write!(f, "in {folder}: {}", uses.join(", "))
    }
}

/// Finds all cycles.
pub fn of(modules: &Modules) -> Vec<Ring> {
    by_folder(modules).iter().flat_map(|(folder, uses)| in_folder(folder, uses)).collect()
}

/// For each folder, the uses among its modules. A module stands for everything below it.
pub fn by_folder(modules: &Modules) -> BTreeMap<ModulePath, Uses> {
    let mut folders: BTreeMap<ModulePath, Uses> = BTreeMap::new();
    for (from, to) in modules.uses() {
        let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        // Otherwise one module contains the other, which is allowed.
        if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
            folders.entry(from[..common].to_vec()).or_default().insert((user.clone(), used.clone()));
        }
    }
    folders
}

fn in_folder(folder: &[String], uses: &Uses) -> Vec<Ring> {
    let members: BTreeSet<&String> = uses.iter().flat_map(|(user, used)| [user, used]).collect();
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        members.iter().map(|&member| (member, reachable(member, uses))).collect();
    let mut shown = BTreeSet::new();
    let mut rings = Vec::new();
    for &member in &members {
        let ring: BTreeSet<&String> = members
            .iter()
            .copied()
            .filter(|other| reach[member].contains(other) && reach[other].contains(member))
            .collect();
        if !ring.is_empty() && shown.insert(ring.clone()) {
            let inside = uses.iter().filter(|(user, used)| ring.contains(user) && ring.contains(used));
            rings.push(Ring { folder: folder.to_vec(), uses: inside.cloned().collect() });
        }
    }
    rings
}

/// The modules that a module uses, directly or indirectly.
fn reachable<'a>(member: &str, uses: &'a Uses) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next = vec![member];
    while let Some(user) = next.pop() {
        for (_, used) in uses.iter().filter(|(other, _)| other == user) {
            if found.insert(used) {
                next.push(used);
            }
        }
    }
    found
}
