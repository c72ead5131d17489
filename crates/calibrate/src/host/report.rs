//! The text report of measured host costs.

use super::costs::Costs;

impl Costs {
    /// Tables of the measured costs, followed by a list of what was not measured.
    #[must_use]
    pub fn report(&self) -> String {
        let [measured, requested] = self.rounds;
        let mut text = format!("{} CPUs, medians of {measured} rounds (least to most); ns\n", self.cpus);
        if measured < requested {
            text += &format!("Stopped: {requested} rounds were requested.\n");
        }
        text += &format!("\nI/O through the engine, scheduler none: {} of CPU time\n", self.engine);
        text += "\nscheduler     per I/O in the block layer; inside the scheduler's locks; outside them\n";
        for scheduler in &self.schedulers {
            text += &format!("{:12}  {}", scheduler.name, scheduler.per_io);
            if let (Some(section), Some(beside)) = (&scheduler.section, &scheduler.beside) {
                let under = section.median * scheduler.sections_per_io;
                text += &format!("; {under:.0} in {:.1} sections of {section}", scheduler.sections_per_io);
                text += &format!("; outside {beside}");
            }
            text.push('\n');
            for operation in &scheduler.operations {
                text += &format!("  {:14}  {}, {:.2} per I/O\n", operation.name, operation.time, operation.per_io);
            }
        }
        text += &format!("\nadding requests to a list, or removing them: {}\n", self.list);
        text += "\nthousand I/Os per second, by threads that share a queue\n";
        for scheduler in &self.schedulers {
            let rates: Vec<String> =
                scheduler.rates.iter().map(|(threads, rate)| format!("{threads}: {:.0}", rate.median / 1e3)).collect();
            text += &format!("{:12}  {}\n", scheduler.name, rates.join("  "));
        }
        text += "\nthreads\n";
        if let Some(contention) = &self.contention {
            text += &format!("  fetch a lock from another CPU     {}\n", contention.lock);
            if let Some(data) = &contention.data {
                text += &format!("  fetch the data under the lock     {data}\n");
            }
            if let Some(far) = &contention.far {
                text += &format!("  a lock from another cache         {}\n", far.lock);
                if let Some(data) = &far.data {
                    text += &format!("  the data under that lock          {data}\n");
                }
            }
            if let Some(growth) = &contention.growth {
                text += &format!("  added by each waiting CPU         {growth}\n");
            }
        }
        text += &format!("  a switch on one CPU               {}\n", self.switch);
        text += &format!("  a wake-up, 10th percentile        {}\n", self.wake[0]);
        text += &format!("  a wake-up, 90th                   {}\n", self.wake[1]);
        for sleep in &self.sleeps {
            text += &format!("  added by a sleep of {:4} us       {}\n", sleep.slept_ns / 1000, sleep.wake);
        }
        text += &format!("  a worker, 10th percentile         {}\n", self.worker[0]);
        text += &format!("  a worker, 90th                    {}\n", self.worker[1]);
        if let Ok(kernel) = &self.kernel {
            text += &format!("\nthe running kernel through {}, CPU time of a read\n", kernel.device);
            for (scheduler, figure) in &kernel.per_io {
                text += &format!("{scheduler:12}  {figure}\n");
            }
        }
        let unmeasured = self.unmeasured();
        if !unmeasured.is_empty() {
            text += "\nnot measured\n";
            unmeasured.iter().for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }

    /// One line for each cost that could not be measured on this machine.
    #[must_use]
    pub fn unmeasured(&self) -> Vec<String> {
        let mut unmeasured = Vec::new();
        if let Err(why) = &self.kernel {
            unmeasured.push(format!(
                "CPU time per I/O in the kernel: {why}. The profile uses the costs of Hoistway's block layer instead."
            ));
        }
        match &self.contention {
            None => unmeasured.push(
                "costs of a shared lock and of wake-ups on another CPU: this process may use only one \
                 CPU"
                .to_owned(),
            ),
            Some(contention) if contention.growth.is_none() => {
                unmeasured.push("cost of each additional CPU that waits for a lock: this needs three CPUs".to_owned());
            }
            Some(_) => {}
        }
        if cfg!(debug_assertions) {
            unmeasured.push("costs of the optimised block layer: this was built without --release".to_owned());
        }
        // A wide range means that other programs ran, or that the machine is virtual.
        let [low, high] = [self.switch.least, self.switch.most];
        if high > 2.0 * low {
            unmeasured.push(format!(
                "most figures to better than a factor of {:.1}: the rounds differ by that much. Was the machine busy?",
                high / low.max(1.0)
            ));
        }
        unmeasured
    }
}

#[cfg(test)]
mod tests {
    use super::super::figure::MedianOfRounds;
    use super::super::profile::tests::costs;
    use super::*;

    #[test]
    fn the_report_lists_every_figure_and_what_is_missing() {
        let report = costs().report();
        for expected in [
            "4 CPUs, medians of 15 rounds",
            "mq-deadline   200 (180 to 240); 100 in 4.0 sections of 25 (22 to 30); outside 30 (27 to 36)",
            "  insert          25 (22 to 30), 1.00 per I/O",
            "adding requests to a list, or removing them: 12 (11 to 14)",
            "added by each waiting CPU         12",
            "CPU time per I/O in the kernel: there is no null device here.",
        ] {
            assert!(report.contains(expected), "{expected}\n{report}");
        }
        assert!(!report.contains("Stopped") && !report.contains("busy"), "{report}");
    }

    #[test]
    fn the_report_names_a_busy_machine_and_an_early_stop() {
        let switch = MedianOfRounds { median: 2000.0, least: 1000.0, most: 4000.0 };
        let report = Costs { switch, rounds: [3, 15], ..costs() }.report();
        assert!(report.contains("Stopped: 15 rounds were requested."), "{report}");
        assert!(report.contains("better than a factor of 4.0"), "{report}");
    }
}
