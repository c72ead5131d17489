//! Numbers and layouts of `linux/ublk_cmd.h`.
//!
//! Used by: `device`, `request`, `kernel`, `queue`, `disk` and others.
//! Tests: below.

/// Where control commands are sent.
pub const CONTROL_PATH: &str = "/dev/ublk-control";

/// Bytes of `struct ublksrv_ctrl_cmd`, which also is part of the number of each control command.
const CONTROL_BYTES: u32 = 32;
/// Bytes of `struct ublksrv_io_cmd`.
const IO_BYTES: u32 = 16;
/// Bytes of `struct ublksrv_io_desc`.
pub const DESCRIPTOR_BYTES: usize = 24;
/// Bytes of `struct ublksrv_ctrl_dev_info`.
pub const INFO_BYTES: usize = 64;
/// Bytes of `struct ublk_params` as far as `ublk_param_discard`.
pub const PARAMETERS_BYTES: usize = 8 + 32 + 20;

const fn ior(number: u32, bytes: u32) -> u32 {
    2 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

const fn iowr(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

pub const GET_DEV_INFO: u32 = ior(0x02, CONTROL_BYTES);
pub const ADD_DEV: u32 = iowr(0x04, CONTROL_BYTES);
pub const DEL_DEV: u32 = iowr(0x05, CONTROL_BYTES);
pub const START_DEV: u32 = iowr(0x06, CONTROL_BYTES);
pub const STOP_DEV: u32 = iowr(0x07, CONTROL_BYTES);
pub const SET_PARAMS: u32 = iowr(0x08, CONTROL_BYTES);

pub const DEL_DEV_ASYNC: u32 = ior(0x14, CONTROL_BYTES);

pub const FETCH_REQ: u32 = iowr(0x20, IO_BYTES);
pub const COMMIT_AND_FETCH_REQ: u32 = iowr(0x21, IO_BYTES);

/// `UBLK_F_USER_RECOVERY`: the device survives its server.
pub const F_USER_RECOVERY: u64 = 1 << 3;
/// `UBLK_F_CMD_IOCTL_ENCODE`: the numbers of commands above.
pub const F_CMD_IOCTL_ENCODE: u64 = 1 << 6;
/// `UBLK_F_USER_COPY`.
pub const F_USER_COPY: u64 = 1 << 7;

/// Where the data of requests begins in `/dev/ublkcN`, and how many bits of a position are within a request.
const DATA_OFFSET: u64 = 0x8000_0000;
const DATA_BITS: u32 = 25;

/// The position of a request's data in `/dev/ublkcN`, for queue 0.
pub fn data_position(tag: u16) -> u64 {
    DATA_OFFSET + (u64::from(tag) << DATA_BITS)
}

/// A structure that is being laid out.
pub struct Layout<const BYTES: usize>(pub [u8; BYTES]);

impl<const BYTES: usize> Layout<BYTES> {
    pub fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> &mut Self {
        self.0[at..at + N].copy_from_slice(&bytes);
        self
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(array_at(bytes, at))
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(array_at(bytes, at))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(array_at(bytes, at))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// A control command for a device: its 80 bytes in the submission entry.
pub fn control_command(number: u32, address: u64, len: u16, data: u64) -> [u8; 80] {
    let mut command = Layout([0; 80]);
    command.put(0, number.to_ne_bytes());
    // For the device, not for a queue.
    command.put(4, u16::MAX.to_ne_bytes());
    command.put(6, len.to_ne_bytes()).put(8, address.to_ne_bytes()).put(16, data.to_ne_bytes());
    command.0
}

/// A command for a request of queue 0: its 16 bytes in the submission entry.
pub fn io_command(tag: u16, result: i32) -> [u8; 16] {
    let mut command = Layout([0; 16]);
    command.put(2, tag.to_ne_bytes()).put(4, result.to_ne_bytes());
    command.0
}

/// The state of a device that has not been started, or has ended.
pub const STATE_DEAD: u16 = 0;

/// `struct ublksrv_ctrl_dev_info`, as far as it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    pub depth: u16,
    pub state: u16,
    pub transfer_bytes_max: u32,
    pub number: u32,
    /// The process that serves it; not positive if there is none.
    pub process: i32,
    pub flags: u64,
    /// A value that the kernel keeps for the server.
    pub server_value: u64,
}

impl DeviceInfo {
    pub fn to_bytes(self) -> [u8; INFO_BYTES] {
        let mut info = Layout([0; INFO_BYTES]);
        info.put(0, 1_u16.to_ne_bytes()).put(2, self.depth.to_ne_bytes()).put(4, self.state.to_ne_bytes());
        info.put(8, self.transfer_bytes_max.to_ne_bytes()).put(12, self.number.to_ne_bytes());
        info.put(16, self.process.to_ne_bytes());
        info.put(24, self.flags.to_ne_bytes()).put(32, self.server_value.to_ne_bytes());
        info.0
    }

    pub fn from_bytes(bytes: &[u8; INFO_BYTES]) -> DeviceInfo {
        DeviceInfo {
            depth: u16_at(bytes, 2),
            state: u16_at(bytes, 4),
            transfer_bytes_max: u32_at(bytes, 8),
            number: u32_at(bytes, 12),
            process: u32_at(bytes, 16) as i32,
            flags: u64_at(bytes, 24),
            server_value: u64_at(bytes, 32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_numbers_of_the_kernel() {
        assert_eq!((GET_DEV_INFO, ADD_DEV, DEL_DEV), (0x8020_7502, 0xc020_7504, 0xc020_7505));
        assert_eq!((START_DEV, STOP_DEV, SET_PARAMS), (0xc020_7506, 0xc020_7507, 0xc020_7508));
        assert_eq!(DEL_DEV_ASYNC, 0x8020_7514);
        assert_eq!((FETCH_REQ, COMMIT_AND_FETCH_REQ), (0xc010_7520, 0xc010_7521));
        assert_eq!((data_position(0), data_position(3)), (1 << 31, (1 << 31) + (3 << 25)));
    }

    #[test]
    fn commands_lie_where_the_kernel_looks_for_them() {
        let command = control_command(7, 0x1122_3344_5566_7788, 64, 99);
        assert_eq!((u32_at(&command, 0), u16_at(&command, 4), u16_at(&command, 6)), (7, u16::MAX, 64));
        assert_eq!((u64_at(&command, 8), u64_at(&command, 16)), (0x1122_3344_5566_7788, 99));
        assert!(command[24..].iter().all(|&byte| byte == 0));
        let command = io_command(5, -5);
        assert_eq!((u16_at(&command, 0), u16_at(&command, 2), u32_at(&command, 4) as i32), (0, 5, -5));
        assert_eq!(u64_at(&command, 8), 0, "no address");
    }

    #[test]
    fn information_about_a_device_survives_the_way_to_the_kernel_and_back() {
        let info = DeviceInfo {
            depth: 128,
            state: 1,
            transfer_bytes_max: 1 << 20,
            number: 3,
            process: -1,
            flags: F_USER_COPY,
            server_value: 1 << 63,
        };
        let bytes = info.to_bytes();
        assert_eq!(DeviceInfo::from_bytes(&bytes), info);
        assert_eq!(u16_at(&bytes, 0), 1, "one queue");
    }
}
