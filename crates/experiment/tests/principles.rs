//! What verdicts keep to: each disk has its own, and they follow from the facts of the document alone.

use std::collections::BTreeMap;

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::Verdict;
use hoistway_experiment::{Alone, Comparison, Devices, Load, Profile};

use crate::metamorphic::{Case, Random};

/// Both disks, with enough differences that none has the other's answers.
const DISKS: [(&str, &str); 2] = [("/dev/sda", "laptop-hdd"), ("/dev/nvme0n1", "micron-9100-1600gb")];
/// A verdict below this certainty may be another one by chance.
const SURE: f64 = 0.95;

fn compared(text: String, disks: &[(&str, &str)]) -> ResultsDocument {
    let files = disks.iter().map(|(file, device)| ((*file).to_owned(), Profile::Named((*device).to_owned())));
    Comparison {
        load: Load::Text { name: "case.fio".to_owned(), text },
        devices: vec![Devices { common: None, files: files.collect::<BTreeMap<_, _>>() }],
        // CPUs are the only thing that jobs on unlike disks share.
        hosts: vec!["instant".into()],
        cpus: Some(16),
        repeats: 3,
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap()
}

/// A random load on a disk: the jobs of a case, whose names begin with the disk's.
fn jobs(number: u64, file: &str) -> String {
    let mut case = Case::new(number);
    case.runtime_ms = 1500;
    let name = file.trim_start_matches("/dev/");
    for section in &mut case.sections {
        section.name = format!("{name}-{}", section.name);
    }
    case.job_file().replace("/dev/sda", file)
}

/// Whether a change is recommended, and to what.
fn decision(verdict: &Verdict) -> (String, String) {
    (verdict.reference.clone(), verdict.recommended.clone())
}

#[test]
fn each_disk_is_decided_as_it_is_alone() {
    let mut compared_decisions = 0;
    for number in 0..6 {
        let texts: Vec<String> = (0..).zip(DISKS).map(|(disk, (file, _))| jobs(2 * number + disk, file)).collect();
        // The second file's global section is the first one's.
        let both = compared(texts.concat(), &DISKS);
        assert_eq!(both.verdicts.len(), 2, "{number}: one verdict for each disk");
        for ((text, disk), verdict) in texts.into_iter().zip(DISKS).zip(&both.verdicts) {
            let alone = compared(text.clone(), &[disk]);
            let alone = &alone.verdicts[0];
            let is_sure = |verdict: &Verdict| verdict.certainty.is_some_and(|certainty| certainty >= SURE);
            if is_sure(alone) && is_sure(verdict) {
                assert_eq!(decision(verdict), decision(alone), "{number}: {disk:?}\n{text}");
                compared_decisions += 1;
            }
        }
    }
    assert!(compared_decisions >= 6, "{compared_decisions}");
}

#[test]
fn verdicts_follow_from_the_stored_document_alone() {
    for number in 0..8 {
        let (file, device) = DISKS[Random(number).one_of(&[0, 1])];
        let document = compared(jobs(number, file), &[(file, device)]);
        let stored = serde_json::to_string(&document).unwrap();
        let mut facts = ResultsDocument::from_json(&stored).unwrap();
        (facts.verdicts, facts.statistics) = (Vec::new(), None);
        let again = facts.judged();
        assert_eq!(again.verdicts, document.verdicts, "{number}");
        assert_eq!(serde_json::to_string(&again).unwrap(), stored, "{number}");
    }
}
