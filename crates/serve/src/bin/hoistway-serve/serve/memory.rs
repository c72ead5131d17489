//! The default of `--memory`: memory for the data of clients.

/// The share of the machine's memory is one divided by this.
const MEMORY_FRACTION: u64 = 4;
const BYTES_MIN: u64 = 64 << 20;
const BYTES_MAX: u64 = 1 << 30;

/// A quarter of the machine's memory, at most 1 GiB.
pub(super) fn default_bytes() -> usize {
    // Without `/proc/meminfo`, assume that the machine has enough memory for the maximum.
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    share_of(total(&text).unwrap_or(u64::MAX)) as usize
}

fn share_of(total: u64) -> u64 {
    (total / MEMORY_FRACTION).clamp(BYTES_MIN, BYTES_MAX)
}

/// The machine's memory in bytes, as `/proc/meminfo` has it in KiB.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_limit_is_a_quarter_of_ram_and_at_most_a_gibibyte() {
        assert_eq!(total("MemTotal:        2097152 kB\nMemFree: 1 kB\n"), Some(2 << 30));
        assert_eq!(share_of(2 << 30), 512 << 20);
        assert_eq!((share_of(64 << 30), share_of(1)), (1 << 30, 64 << 20));
        assert_eq!(total("nothing"), None);
    }
}
