//! What the queue of a device is made of.

use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_sim::QueueSettings;

#[test]
fn a_sata_disk_takes_flushes_alone_and_an_nvme_drive_beside_other_ios() {
    let queueable = |device: &str| {
        let preset = Preset::builtin(device).unwrap();
        QueueSettings::new(Kernel::V4_12, 4).config(&preset.shape()).limits.flush_queueable
    };
    assert!(!queueable("intel-s3520-1600gb"), "SATA");
    assert!(queueable("samsung-980pro-1tb"), "NVMe");
}

#[test]
fn read_and_poll_queues_are_taken_from_the_hardware_queues_of_a_device() {
    let shape = Preset::builtin("samsung-980pro-1tb").unwrap().shape();
    let left = |read_queues, poll_queues| {
        let queue = QueueSettings { read_queues, poll_queues, ..QueueSettings::new(Kernel::V6_18, 4) };
        queue.config(&shape).hw_queues
    };
    assert_eq!([left(0, 0), left(3, 0), left(3, 2)], [0, 3, 5].map(|taken| shape.hw_queues - taken));
}
