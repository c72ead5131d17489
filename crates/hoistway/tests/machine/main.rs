//! Commands that measure and set devices of this machine: loop devices, and files. What needs root, loop devices or fio says that it is
//! skipped where one is missing.

mod calibrate;
mod killed;
#[path = "../../../linux/tests/support/loop_device.rs"]
mod loop_device;
mod support;
mod tour;
mod verify;
