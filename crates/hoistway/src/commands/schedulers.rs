//! `hoistway schedulers`: lists the schedulers.

use anyhow::Result;
use clap::Args;
use hoistway_blk::ground::Kernel;
use hoistway_experiment::KernelOption;
use hoistway_experiment::facts;
use hoistway_experiment::texts::{SchedulerText, Texts};
use hoistway_legacy::all_schedulers;
use hoistway_render::text::{aligned, wrap_hanging, wrapped};
use serde_json::{Value, json};

use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};

/// List the schedulers: what each promises and costs, which kernels have it, and which priorities and weights it honours.
///
/// Examples:
///   hoistway schedulers
///   hoistway schedulers --kernel 4.19
///   hoistway schedulers --format json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// List only the schedulers of this kernel: any release since 4.4 (6.18, 6.12.107), or the output of uname -r.
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelOption>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let texts = Texts::read();
    let requested = arguments.kernel.as_ref().map(|option| option.kernel);
    // Schedulers that no kernel has are listed only without --kernel.
    let candidates =
        texts.schedulers.iter().filter(|scheduler| requested.is_none() || scheduler.outside_linux().is_none());
    let (listed, missing): (Vec<_>, Vec<_>) =
        candidates.partition(|scheduler| requested.is_none_or(|kernel| scheduler.exists_in(kernel)));
    let text = match arguments.format {
        Format::Json => {
            let schedulers: Vec<Value> = listed.iter().map(|text| scheduler_document(text, requested)).collect();
            let kernel = arguments.kernel.as_ref().map(KernelOption::to_string);
            let document = json!({"format": "hoistway-schedulers/1", "kernel": kernel, "schedulers": schedulers});
            serde_json::to_string_pretty(&document)? + "\n"
        }
        Format::Table => {
            let width = output.text_width();
            let mut text = table(&listed, requested);
            for scheduler in &listed {
                text.push('\n');
                text += &wrap_hanging(&format!("{}: {}", scheduler.name, scheduler.promises), width, 0, 2);
                text += &wrap_hanging(&format!("Costs: {}", scheduler.costs), width, 2, 4);
                text += &wrap_hanging(&format!("Default for: {}.", scheduler.default_for), width, 2, 4);
            }
            text.push('\n');
            if let Some(notice) = arguments.kernel.as_ref().and_then(KernelOption::notice) {
                text += &wrapped(&notice, width, 0);
            }
            if let (Some(kernel), false) = (&arguments.kernel, missing.is_empty()) {
                let names: Vec<&str> = missing.iter().map(|scheduler| scheduler.name.as_str()).collect();
                text += &wrapped(&format!("Not in Linux {kernel}: {}.", names.join(", ")), width, 0);
            }
            text + &wrapped(
                "`hoistway explain SCHEDULER` describes what it does, when to use it, and its tunables.",
                width,
                0,
            )
        }
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

/// The kernel of `--kernel`, or the newest kernel that has the scheduler.
fn kernel_of(scheduler: &SchedulerText, requested: Option<Kernel>) -> Kernel {
    requested.unwrap_or_else(|| scheduler.newest_kernel())
}

fn scheduler_document(scheduler: &SchedulerText, requested: Option<Kernel>) -> Value {
    let kernels: Vec<String> = scheduler.kernels().map(|kernel| kernel.to_string()).collect();
    let tunables = facts::tunables(&scheduler.name, kernel_of(scheduler, requested));
    json!({
        "name": scheduler.name,
        "title": scheduler.title,
        "front": scheduler.front,
        "linux": scheduler.linux,
        "kernels": kernels,
        "promises": scheduler.promises,
        "costs": scheduler.costs,
        "ioprio": scheduler.ioprio,
        "cgroup_weights": scheduler.weights,
        "default_for": scheduler.default_for,
        "tunables": tunables.iter().map(|tunable| tunable.name).collect::<Vec<_>>(),
    })
}

/// The facts as a table.
fn table(schedulers: &[&SchedulerText], requested: Option<Kernel>) -> String {
    let mut rows = vec![["scheduler", "block layer", "kernels", "ioprio", "weights", "tunables"].map(str::to_owned)];
    for scheduler in schedulers {
        let known = all_schedulers();
        let row = known.find(&scheduler.name).expect("there is a row for each text");
        let kernels = match &row.until {
            _ if row.outside_linux().is_some() => "none".to_owned(),
            Some(last) => format!("{} to {last}", row.since),
            None => format!("{} and later", row.since),
        };
        rows.push([
            scheduler.name.clone(),
            scheduler.front.split(' ').next().unwrap_or_default().to_owned(),
            kernels,
            // `explain` has the details of what is honoured, and since when.
            scheduler.ioprio.clone(),
            if scheduler.weights == "no" { "no" } else { "yes" }.to_owned(),
            facts::tunables(&scheduler.name, kernel_of(scheduler, requested)).len().to_string(),
        ]);
    }
    aligned(&rows)
}
