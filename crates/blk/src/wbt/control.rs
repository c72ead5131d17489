//! The control: at the end of each window the step is adjusted by the latency of reads (BL-119 to BL-125).

use super::depths::depth;
use crate::ground::time::Nanos;

/// The length of a window at step 0 and below.
const WINDOW: Nanos = Nanos::from_millis(100);
/// With fewer writes in a window, their effect on reads is unknown.
const WRITES_MIN: u32 = 3;
/// After this many windows without a result in a row, the step moves towards 0.
const UNKNOWN_WINDOWS_MAX: u32 = 5;

/// The result of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowResult {
    /// Reads take longer than the target.
    Exceeded,
    /// They do not.
    Ok,
    /// There were none.
    OnlyWrites,
    /// Nothing has ended, or too little for a result.
    Unknown,
}

/// The step, and what has ended in the current window.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// 0 at first; above 0 fewer I/Os may be in flight, below 0 more.
    step: i32,
    /// Windows in a row without a result.
    unknown_windows: u32,
    reads: u32,
    /// The latency of the fastest of them.
    read_min: Nanos,
    writes: u32,
}

impl Control {
    pub(super) fn step(&self) -> i32 {
        self.step
    }

    /// The length of the window: the fewer writes are allowed, the sooner it is checked whether more could be.
    pub(super) fn window(&self) -> Nanos {
        if self.step <= 0 {
            return WINDOW;
        }
        Nanos(WINDOW.0 * 16 / ((self.step as u64 + 1) * 256).isqrt())
    }

    pub(super) fn read_ended(&mut self, latency: Nanos) {
        self.read_min = if self.reads == 0 { latency } else { self.read_min.min(latency) };
        self.reads += 1;
    }

    pub(super) fn write_ended(&mut self) {
        self.writes += 1;
    }

    /// The result of the window. `oldest_read`: for how long the oldest read that is still at the device has been
    /// there.
    pub(super) fn window_result(&self, target: Nanos, oldest_read: Option<Nanos>) -> WindowResult {
        let is_too_old = |age| age > self.window() || (age > target && self.reads == 0);
        if oldest_read.is_some_and(is_too_old) {
            return WindowResult::Exceeded;
        }
        match (self.reads, self.writes) {
            (1.., WRITES_MIN..) if self.read_min > target => WindowResult::Exceeded,
            (1.., WRITES_MIN..) => WindowResult::Ok,
            (0, 1..) => WindowResult::OnlyWrites,
            _ => WindowResult::Unknown,
        }
    }

    /// The window is over: the step is adjusted, and the next window begins. A step that would not change the depth is
    /// not taken, so that the way back has as many steps. (No source limits it.)
    pub(super) fn next_window(&mut self, result: WindowResult, queue_depth: u32) {
        let step = match result {
            WindowResult::Exceeded => (self.step + 1).max(0),
            WindowResult::Ok | WindowResult::OnlyWrites => self.step - 1,
            WindowResult::Unknown if self.unknown_windows + 1 == UNKNOWN_WINDOWS_MAX => self.step - self.step.signum(),
            WindowResult::Unknown => self.step,
        };
        let changes_depth = depth(queue_depth, step) != depth(queue_depth, self.step);
        // Steps from below 0 towards 0 are always taken, since many devices have the same depth at both.
        if changes_depth || step.abs() < self.step.abs() {
            self.step = step;
        }
        let has_result = result != WindowResult::Unknown;
        let unknown_windows = if has_result { 0 } else { (self.unknown_windows + 1) % UNKNOWN_WINDOWS_MAX };
        *self = Control { step: self.step, unknown_windows, ..Control::default() };
    }
}
