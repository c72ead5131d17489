//! The device, the host and the kernel of guests in which groups of cgroups were recorded.

use std::collections::BTreeMap;

use hoistway_experiment::{Comparison, Devices, Load, Profile, QueueFile};

/// A load on a null device with these settings, and the largest request that the recorded kernel gave its driver.
pub fn comparison(job: &str, scheduler: &str, settings: &BTreeMap<String, String>, max_sectors_kb: u32) -> Comparison {
    let mut device = include_str!("closed_loop/data/null.device.toml").to_owned();
    for (name, value) in settings {
        device = device.replace(&format!("@{name}@"), value);
    }
    // What the kernel gives a driver that sets none, of which sysfs rounds 255 sectors down.
    let max_sectors = if max_sectors_kb == 127 { 255 } else { 2 * max_sectors_kb };
    device = device.replace("max_sectors = 2560", &format!("max_sectors = {max_sectors}"));
    let of_profile = |name: &str, text: String| Profile::Text { name: name.to_owned(), text };
    Comparison {
        load: Load::text(job),
        devices: vec![Devices { common: Some(of_profile("null.device.toml", device)), ..Devices::default() }],
        kernels: vec!["6.12".to_owned()],
        hosts: vec![of_profile("guest-host.toml", include_str!("closed_loop/data/guest-host.toml").to_owned())],
        cpus: Some(1),
        schedulers: vec![scheduler.to_owned()],
        queue_files: vec![QueueFile { file: "wbt_lat_usec".to_owned(), text: "0".to_owned() }],
        ..Comparison::default()
    }
}
