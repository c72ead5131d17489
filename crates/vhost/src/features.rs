//! Offered and accepted features.
//!
//! Used by: `device`, `ring`; crate `serve`.
//! Tests: below.

use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use virtio_bindings::bindings::{virtio_blk as blk, virtio_config, virtio_ring};

/// The offered features of the vhost-user protocol.
#[must_use]
pub fn offered_protocol() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
        | VhostUserProtocolFeatures::RESET_DEVICE
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
}

/// Feature bits of virtio, offered or accepted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features(pub u64);

impl Features {
    /// The features that a disk offers.
    #[must_use]
    pub fn offered(read_only: bool) -> Features {
        let always = [
            blk::VIRTIO_BLK_F_SEG_MAX,
            blk::VIRTIO_BLK_F_BLK_SIZE,
            blk::VIRTIO_BLK_F_FLUSH,
            blk::VIRTIO_BLK_F_TOPOLOGY,
            blk::VIRTIO_BLK_F_CONFIG_WCE,
            blk::VIRTIO_BLK_F_MQ,
            virtio_ring::VIRTIO_RING_F_INDIRECT_DESC,
            virtio_ring::VIRTIO_RING_F_EVENT_IDX,
            virtio_config::VIRTIO_F_VERSION_1,
        ];
        let access: &[u32] = match read_only {
            true => &[blk::VIRTIO_BLK_F_RO],
            false => &[blk::VIRTIO_BLK_F_DISCARD, blk::VIRTIO_BLK_F_WRITE_ZEROES],
        };
        let bits = always.iter().chain(access).fold(0, |bits, bit| bits | 1 << bit);
        Features(bits | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits())
    }

    /// Whether it contains all of these.
    #[must_use]
    pub fn contain(self, others: Features) -> bool {
        others.0 & !self.0 == 0
    }

    fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// Whether the rings are those of version 1, the only supported ones.
    #[must_use]
    pub fn version_1(self) -> bool {
        self.has(virtio_config::VIRTIO_F_VERSION_1)
    }

    /// Whether kicks and interrupts are requested by index.
    #[must_use]
    pub fn event_idx(self) -> bool {
        self.has(virtio_ring::VIRTIO_RING_F_EVENT_IDX)
    }

    /// Whether a descriptor may point to a table of descriptors.
    #[must_use]
    pub fn indirect(self) -> bool {
        self.has(virtio_ring::VIRTIO_RING_F_INDIRECT_DESC)
    }

    /// Whether rings are enabled by a message; otherwise they are enabled from the start.
    #[must_use]
    pub fn protocol(self) -> bool {
        self.0 & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0
    }

    /// Whether the driver may change the mode of the write cache while it is running.
    #[must_use]
    pub fn chooses_cache(self) -> bool {
        self.has(blk::VIRTIO_BLK_F_CONFIG_WCE)
    }

    /// Whether the disk starts in write-back mode, which requires a driver that flushes.
    #[must_use]
    pub fn begins_with_write_back(self) -> bool {
        self.has(blk::VIRTIO_BLK_F_FLUSH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_cannot_be_written_offers_nothing_that_writes() {
        let (both, only_read) = (Features::offered(false), Features::offered(true));
        assert!(both.has(blk::VIRTIO_BLK_F_DISCARD) && !both.has(blk::VIRTIO_BLK_F_RO));
        assert!(!only_read.has(blk::VIRTIO_BLK_F_WRITE_ZEROES) && only_read.has(blk::VIRTIO_BLK_F_RO));
        assert!(only_read.has(blk::VIRTIO_BLK_F_FLUSH) && !both.contain(only_read));
    }

    #[test]
    fn only_a_driver_that_flushes_begins_with_a_write_cache() {
        let taken = |bits: &[u32]| Features(bits.iter().fold(0, |all, bit| all | 1 << bit));
        assert!(taken(&[blk::VIRTIO_BLK_F_FLUSH]).begins_with_write_back());
        assert!(taken(&[blk::VIRTIO_BLK_F_FLUSH, blk::VIRTIO_BLK_F_CONFIG_WCE]).begins_with_write_back());
        assert!(!taken(&[blk::VIRTIO_BLK_F_CONFIG_WCE]).begins_with_write_back());
        assert!(!taken(&[]).begins_with_write_back());
    }
}
