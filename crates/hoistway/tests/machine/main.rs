//! Commands that measure and change devices of this machine: loop devices, and files. Tests report that they are
//! skipped if root, loop devices or fio is missing.

mod calibrate;
mod killed;
#[path = "../../../linux/tests/support/loop_device.rs"]
mod loop_device;
mod support;
mod tour;
mod verify;
