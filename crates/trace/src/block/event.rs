//! An event of a block device, independent of the recording's format.

use std::fmt;

use hoistway_blk::bio::IoPriority;

/// A block device's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Device {
    /// Major number: the driver.
    pub major: u16,
    /// Minor number: the driver's disk or partition, 20 bits.
    pub minor: u32,
}

impl Device {
    /// Parses a text such as `8,0` or `8:0`; `None` if the numbers exceed Linux's limits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Device> {
        let (major, minor) = text.split_once([',', ':'])?;
        let device = Device { major: major.trim().parse().ok()?, minor: minor.trim().parse().ok()? };
        (device == Device::from_number(device.number())).then_some(device)
    }

    /// From the kernel's number, `major << 20 | minor`.
    #[must_use]
    pub const fn from_number(number: u32) -> Device {
        Device { major: (number >> 20) as u16, minor: number & 0xf_ffff }
    }

    /// The kernel's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.major as u32) << 20 | (self.minor & 0xf_ffff)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

/// What happened. The value is blktrace's code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Action {
    /// Q: a task submitted a bio.
    Queue = 1,
    /// M: a bio was merged at the end of a request.
    BackMerge = 2,
    /// F: a bio was merged at the front of a request.
    FrontMerge = 3,
    /// G: a bio got a request.
    GetRequest = 4,
    /// S: a task waits for a request (old kernels).
    SleepRequest = 5,
    /// R: the driver gave a request back.
    Requeue = 6,
    /// D: a request went to the driver.
    Issue = 7,
    /// C: a request, or a part of it, completed.
    Complete = 8,
    /// P: a task began a plug.
    Plug = 9,
    /// U: a task ended its plug.
    Unplug = 10,
    /// UT: a plug ended because its task went to sleep.
    UnplugScheduled = 11,
    /// I: a request was inserted into a scheduler or software queue.
    Insert = 12,
    /// X: a bio was split; sector and bytes are the first part.
    Split = 13,
    /// B: a bio was bounced (old kernels).
    Bounce = 14,
    /// A: a bio was remapped to this device.
    Remap = 15,
}

impl Action {
    /// All actions.
    pub const ALL: [Action; 15] = [
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::GetRequest,
        Action::SleepRequest,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugScheduled,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
    ];

    /// The action with this blktrace code, if there is one.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Action> {
        Action::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }

    /// The letters that blkparse prints.
    #[must_use]
    pub const fn letters(self) -> &'static str {
        const LETTERS: [&str; 15] = ["Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A"];
        LETTERS[self as usize - 1]
    }

    /// The action that blkparse prints as these letters.
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.letters().as_bytes() == letters)
    }
}

/// Direction and modifiers of a bio or request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u16);

impl Flags {
    /// Data from the device.
    pub const READ: Flags = Flags(0x0001);
    /// Data to the device, or a discard.
    pub const WRITE: Flags = Flags(0x0002);
    /// A flush, or a flush before the data (PREFLUSH).
    pub const FLUSH: Flags = Flags(0x0004);
    /// A task waits for it.
    pub const SYNC: Flags = Flags(0x0008);
    /// A passthrough command.
    pub const PASSTHROUGH: Flags = Flags(0x0200);
    /// Read-ahead.
    pub const AHEAD: Flags = Flags(0x0800);
    /// Metadata of a file system.
    pub const META: Flags = Flags(0x1000);
    /// A discard.
    pub const DISCARD: Flags = Flags(0x2000);
    /// Forced unit access.
    pub const FUA: Flags = Flags(0x8000);
    /// Every flag. The bits are those of blktrace's categories.
    pub const ALL: Flags = Flags(0xba0f);

    /// The flags in blktrace's category mask that describe the I/O.
    #[must_use]
    pub const fn from_category(mask: u16) -> Flags {
        Flags(mask & Flags::ALL.0)
    }

    /// The bits in blktrace's category mask.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags without those in `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Removes "read" from an event without data: blktrace sets that bit on everything that is not a write.
    #[must_use]
    pub const fn without_read_if_empty(self, bytes: u32) -> Flags {
        if bytes == 0 { self.without(Flags::READ) } else { self }
    }

    /// Parses blkparse's or the kernel's letters; unknown letters are ignored.
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> Flags {
        let mut flags = Flags::default();
        let (before, rest) = match letters {
            [b'F', rest @ ..] if !rest.is_empty() => (Flags::FLUSH, rest),
            letters => (Flags::default(), letters),
        };
        flags |= before;
        let Some((operation, rest)) = rest.split_first() else { return flags };
        flags |= match operation {
            b'R' => Flags::READ,
            b'W' => Flags::WRITE,
            b'D' => Flags::WRITE | Flags::DISCARD,
            b'F' => Flags::FLUSH,
            _ => Flags::default(),
        };
        for letter in rest {
            flags |= match letter {
                b'F' => Flags::FUA,
                b'A' => Flags::AHEAD,
                b'S' => Flags::SYNC,
                b'M' => Flags::META,
                _ => Flags::default(),
            };
        }
        flags
    }

    /// The letters as blkparse prints them.
    #[must_use]
    pub fn letters(self) -> String {
        let mut text = String::with_capacity(6);
        let mut add = |is_set: bool, letter: char| {
            if is_set {
                text.push(letter);
            }
        };
        add(self.has(Flags::FLUSH), 'F');
        let operation = match self {
            flags if flags.has(Flags::DISCARD) => 'D',
            flags if flags.has(Flags::WRITE) => 'W',
            flags if flags.has(Flags::READ) => 'R',
            _ => 'N',
        };
        add(true, operation);
        add(self.has(Flags::FUA), 'F');
        add(self.has(Flags::AHEAD), 'A');
        add(self.has(Flags::SYNC), 'S');
        add(self.has(Flags::META), 'M');
        text
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letters())
    }
}

/// Additional data of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// Number of requests on a plug.
    Requests(u64),
    /// First sector of the second part of a split.
    Rest(u64),
    /// The original position of a remapped bio.
    From {
        /// The original device.
        device: Device,
        /// The sector on that device.
        sector: u64,
    },
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Nanoseconds of the recording's clock.
    pub time_ns: u64,
    /// First 512-byte sector, relative to the whole disk.
    pub sector: u64,
    /// Length in bytes; 0 for a flush and for plugs.
    pub bytes: u32,
    /// The task in whose context it happened; 0 for the idle task.
    pub pid: u32,
    /// The device.
    pub device: Device,
    /// The CPU.
    pub cpu: u32,
    /// A positive error number of a completion, else 0.
    pub error: u16,
    /// What happened.
    pub action: Action,
    /// Direction and modifiers.
    pub flags: Flags,
    /// Priority of the request; [`IoPriority::UNSET`] if the format has none.
    pub priority: IoPriority,
    /// Id of the cgroup; 0 if the format has none.
    pub cgroup: u64,
    /// Additional data.
    pub payload: Payload,
}

impl Event {
    /// An event with this action and no other data.
    #[must_use]
    pub const fn new(action: Action) -> Event {
        Event {
            time_ns: 0,
            sector: 0,
            bytes: 0,
            pid: 0,
            device: Device { major: 0, minor: 0 },
            cpu: 0,
            error: 0,
            action,
            flags: Flags(0),
            priority: IoPriority::UNSET,
            cgroup: 0,
            payload: Payload::None,
        }
    }

    /// The sector after the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sector.saturating_add((self.bytes / 512) as u64)
    }
}
