//! kyber as a queue names it, and as any scheduler with locks of its own.

use std::path::Path;

use hoistway_blk::policy::Concurrent;

use super::*;

#[test]
fn kyber_decides_alike_through_the_seam() {
    let mut recordings = 0;
    for folder in ["traces/kyber", "traces/linux-6.12/kyber", "traces/linux-7.3/kyber"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in folder.read_dir().expect("a folder of recordings") {
            let file = file.expect("a recording").path();
            let trace = Trace::open(&file).unwrap_or_else(|error| panic!("{error}"));
            let recording = Consistent::check(&trace).expect("a consistent recording");
            for depths in [Depths::Recorded, Depths::Own] {
                let named = KyberReplay::new(&recording, depths, Elevator::from).run(&trace);
                let through_seam = |kyber| {
                    let scheduler: Box<dyn Concurrent<Local>> = Box::new(kyber);
                    Elevator::concurrent("kyber", scheduler)
                };
                let seam = KyberReplay::new(&recording, depths, through_seam).run(&trace);
                let file = file.display();
                assert!(named.decisions.len() > 100, "{file}");
                assert_eq!(named.decisions, seam.decisions, "{file}");
                assert_eq!(named.findings, seam.findings, "{file}");
                assert_eq!(named.outcome.score, seam.outcome.score, "{file}");
                assert_eq!((named.outcome.merges, named.outcome.tokens), (seam.outcome.merges, seam.outcome.tokens));
            }
            recordings += 1;
        }
    }
    assert_eq!(recordings, 27);
}
