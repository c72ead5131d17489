//! Whether the program was started without a standard output.
//!
//! Used by: `output`.
//! Tests: `crates/hoistway/tests/cli/ending.rs`.
//!
//! The standard library opens `/dev/null` in place of closed standard streams before `main`, and results would vanish there without
//! an error. So this is found out earlier, when the C library calls the functions of `.init_array`.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

// `look` needs nothing of the standard library that `main` would have to set up.
#[allow(unsafe_code)]
#[used]
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn() = look;

/// Whether standard output was closed when the program was started.
pub(crate) fn is_stdout_closed() -> bool {
    // Named here, so that the linker takes the function along.
    std::hint::black_box(&EARLY);
    WAS_CLOSED.load(Ordering::Relaxed)
}
