//! Whether a verdict hangs on how full the drive is: the same comparison of the drive as it was measured.

use hoistway_answer::ResultsDocument;
use hoistway_answer::verdict::recommended;

use crate::comparison::Comparison;
use crate::comparison::error::Error;
use crate::comparison::observer::Unobserved;
use crate::plan::Plan;

/// Runs of each variant of the drive as it was measured, at most.
const REPEATS_MAX: u32 = 3;

impl Plan<'_> {
    /// Adds a doubt for each device whose decision is another one on a drive that was written over at random as a whole, the state in which
    /// the presets were measured.
    pub(crate) fn check_measured_state(&self, document: &mut ResultsDocument) -> Result<(), Error> {
        let comparison = self.options.comparison;
        if document.partial || (comparison.fill_percent.is_none() && !comparison.trimmed) {
            return Ok(());
        }
        let repeats = comparison.repeats.min(REPEATS_MAX);
        let (fill_percent, until_sure) = (None, false);
        let as_measured = Comparison { fill_percent, trimmed: false, until_sure, repeats, ..comparison.clone() };
        let plan = Plan::of(&as_measured, self.options.environment)?;
        let measured = plan.run(&plan.controls(), &Unobserved)?;
        let here = document.clone().judged();
        for (verdict, other) in here.verdicts.iter().zip(&measured.verdicts) {
            let [here, measured] = [verdict, other].map(|verdict| recommended(std::slice::from_ref(verdict)));
            if let (Some(here), Some(measured)) = (here, measured)
                && here != measured
            {
                document.doubts.push(format!(
                    "how full the drive is decides: written over at random as a whole, as it was measured, the answer is {measured} and not \
                     {here}"
                ));
            }
        }
        Ok(())
    }
}
