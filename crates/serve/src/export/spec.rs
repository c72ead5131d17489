//! The text form of exports: `name=vm1,size=10G,weight=200`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_cgroup::IoMax;
use hoistway_engine::{OpenVolume, parse_size};
use hoistway_nbd::wire::STRING_BYTES_MAX;
use hoistway_ublk::{DEVICE_NUMBER_MAX, DISK_BLOCK_BYTES_MIN, DeviceNumber};

use crate::export::access::Access;

/// Weights of exports; the same range as bfq's group weights.
pub const WEIGHTS: std::ops::RangeInclusive<u16> = 1..=1000;

/// The specification of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportSpec {
    /// The name that clients ask for; empty for the default export.
    pub name: String,
    /// A description for users.
    pub description: String,
    /// Its own file or disk; otherwise it is a part of the server's target.
    pub path: Option<PathBuf>,
    /// The vhost-user socket for the guest whose disk it is.
    pub vhost_user: Option<PathBuf>,
    /// The block device of this machine that it is.
    pub ublk: Option<DeviceNumber>,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes; `None` for all of the volume.
    pub size: Option<u64>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether it may overlap other exports even if clients may write to one of them.
    pub shared: bool,
    /// Which clients may use it.
    pub access: Access,
    /// Weight and priority.
    pub settings: Settings,
    /// Its limits.
    pub limits: IoMax,
}

/// Settings of an export that can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its share relative to other exports: 1 to 1000.
    pub weight: u16,
    /// Its class and level.
    pub ioprio: IoPriority,
}

/// An export and its volume.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The specification.
    pub spec: ExportSpec,
    /// The number of its disk among those of the server.
    pub disk: usize,
    /// The number of the volume there.
    pub volume: usize,
    /// Keeps its own file open.
    pub file: Option<Arc<OpenVolume>>,
}

impl Placed {
    /// An export on the first volume of the first disk: a part of the target.
    #[must_use]
    pub fn on_target(spec: ExportSpec) -> Placed {
        Placed { spec, disk: 0, volume: 0, file: None }
    }
}

/// An error in an export, in one line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

fn spec_error<T>(message: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError(message.into()))
}

impl Default for ExportSpec {
    /// The whole target, under the empty name.
    fn default() -> Self {
        ExportSpec {
            name: String::new(),
            description: String::new(),
            path: None,
            vhost_user: None,
            ublk: None,
            offset: 0,
            size: None,
            read_only: false,
            shared: false,
            access: Access::default(),
            settings: Settings { weight: 100, ioprio: IoPriority::DEFAULT },
            limits: IoMax::default(),
        }
    }
}

impl ExportSpec {
    /// Reads `KEY=VALUE,KEY=VALUE,read-only`.
    ///
    /// # Errors
    /// If a key is unknown or given twice, or a value is invalid.
    pub fn parse(text: &str) -> Result<ExportSpec, SpecError> {
        let mut spec = ExportSpec::default();
        let mut seen: Vec<&str> = Vec::new();
        for setting in text.split(',') {
            let (key, value) = setting.split_once('=').map_or((setting, None), |(key, value)| (key, Some(value)));
            if seen.contains(&key) {
                return spec_error(format!("{key} is given twice"));
            }
            seen.push(key);
            spec.take(key, value)?;
        }
        Ok(spec)
    }

    /// Parses one setting; `read-only` and `shared` have no value, `ublk` may have one, and all others have one.
    ///
    /// # Errors
    /// If the setting is unknown, or its value is invalid.
    pub fn take(&mut self, key: &str, value: Option<&str>) -> Result<(), SpecError> {
        let bytes = |text| parse_size(text).map_err(|why| SpecError(format!("{key}: {why}")));
        match (key, value) {
            ("read-only", None) => self.read_only = true,
            ("shared", None) => self.shared = true,
            ("clients", Some(text)) => {
                self.access = Access::parse(text).map_err(|why| SpecError(format!("clients: {why}")))?;
            }
            ("name" | "description", Some(text)) if text.len() > STRING_BYTES_MAX => {
                return spec_error(format!("{key} is longer than {STRING_BYTES_MAX} bytes"));
            }
            ("name", Some(name)) => self.name = name.to_owned(),
            ("description", Some(text)) => self.description = text.to_owned(),
            ("path", Some("")) => return spec_error("path is empty"),
            ("path", Some(path)) => self.path = Some(path.into()),
            ("vhost-user", Some("")) => return spec_error("vhost-user is empty"),
            ("vhost-user", Some(path)) => self.vhost_user = Some(path.into()),
            ("ublk", None) => self.ublk = Some(DeviceNumber::Any),
            ("ublk", Some(text)) => match text.parse() {
                Ok(number) if number <= DEVICE_NUMBER_MAX => self.ublk = Some(DeviceNumber::Given(number)),
                _ => return spec_error(format!("ublk {text:?} is not a number from 0 to {DEVICE_NUMBER_MAX}")),
            },
            ("offset", Some(text)) => self.offset = bytes(text)?,
            ("size", Some(text)) => match bytes(text)? {
                0 => return spec_error("size is 0"),
                bytes => self.size = Some(bytes),
            },
            (key, Some(value)) if apply(key, value, &mut self.settings, &mut self.limits)? => {}
            _ => {
                let setting = value.map_or_else(|| key.to_owned(), |value| format!("{key}={value}"));
                return spec_error(format!(
                    "unknown setting {setting:?} (expected some of name=, path=, offset=, size=, description=, vhost-user=, ublk, ublk=, clients=, read-only, shared, \
                     {SETTINGS}, with commas between them)"
                ));
            }
        }
        Ok(())
    }

    /// Its bytes on a volume of `volume_bytes`. The disk of a guest or of this machine consists of whole blocks of `block_bytes`.
    ///
    /// # Errors
    /// If the volume is too small, or such a disk is not made of whole blocks.
    pub fn range(&self, volume_bytes: u64, block_bytes: u64) -> Result<Range<u64>, SpecError> {
        let Self { name, offset, .. } = self;
        let rest = volume_bytes.saturating_sub(*offset);
        let (unit, disk) = match self {
            Self { ublk: Some(_), .. } => (block_bytes.max(u64::from(DISK_BLOCK_BYTES_MIN)), "block device (ublk)"),
            Self { vhost_user: Some(_), .. } => (block_bytes, "guest's disk (vhost-user)"),
            _ => (1, "export"),
        };
        let size = self.size.unwrap_or(rest - rest % unit);
        if !offset.is_multiple_of(unit) || !size.is_multiple_of(unit) {
            return spec_error(format!(
                "export {name:?}: offset and size of a {disk} must be multiples of {unit} bytes"
            ));
        }
        if rest == 0 {
            return spec_error(format!(
                "export {name:?} would begin at byte {offset}, but the target has {volume_bytes}"
            ));
        }
        if size == 0 || size > rest {
            let end = offset.saturating_add(size);
            return spec_error(format!("export {name:?} would end at byte {end}, but the target has {volume_bytes}"));
        }
        Ok(*offset..offset + size)
    }
}

/// The settings that can change while a server is running.
pub const SETTINGS: &str = "weight=, ioprio=, max-iops=, max-bps=, riops=, wiops=, rbps=, wbps=";

/// Applies one of them. Returns whether the setting exists.
///
/// # Errors
/// If the value is invalid.
pub fn apply(key: &str, value: &str, settings: &mut Settings, limits: &mut IoMax) -> Result<bool, SpecError> {
    match key {
        "weight" => match value.parse() {
            Ok(weight) if WEIGHTS.contains(&weight) => settings.weight = weight,
            _ => {
                return spec_error(format!(
                    "weight {value:?} is not a number from {} to {}",
                    WEIGHTS.start(),
                    WEIGHTS.end()
                ));
            }
        },
        "ioprio" => settings.ioprio = parse_ioprio(value)?,
        "max-iops" => set_limits(limits, ["riops", "wiops"], key, value)?,
        "max-bps" => set_limits(limits, ["rbps", "wbps"], key, value)?,
        "riops" | "wiops" | "rbps" | "wbps" => set_limits(limits, [key, key], key, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn set_limits(limits: &mut IoMax, keys: [&str; 2], name: &str, value: &str) -> Result<(), SpecError> {
    let number = match value {
        "max" => "max".to_owned(),
        _ => parse_size(value).map_err(|why| SpecError(format!("{name}: {why}, or max")))?.to_string(),
    };
    for key in keys {
        limits.update(&format!("{key}={number}")).map_err(|error| SpecError(format!("{name}={value}: {error}")))?;
    }
    Ok(())
}

/// `rt/0` to `rt/7`, `be/0` to `be/7`, `idle`.
fn parse_ioprio(text: &str) -> Result<IoPriority, SpecError> {
    let (class, level) = text.split_once('/').unwrap_or((text, ""));
    let level_number = level.parse::<u8>().ok().filter(|level| *level < 8);
    match (class, level_number) {
        ("rt", Some(level)) => Ok(IoPriority::new(PriorityClass::RealTime, level)),
        ("be", Some(level)) => Ok(IoPriority::new(PriorityClass::BestEffort, level)),
        ("idle", None) if level.is_empty() => Ok(IoPriority::new(PriorityClass::Idle, 0)),
        _ => spec_error(format!("ioprio {text:?} is not one of rt/0 to rt/7, be/0 (highest) to be/7 (lowest), idle")),
    }
}

/// The text form of a priority.
#[must_use]
pub fn ioprio_text(ioprio: IoPriority) -> String {
    match ioprio.class() {
        PriorityClass::RealTime => format!("rt/{}", ioprio.level()),
        PriorityClass::Idle => "idle".into(),
        PriorityClass::BestEffort | PriorityClass::None => format!("be/{}", ioprio.level()),
    }
}

/// Checks that names are unique.
///
/// # Errors
/// If two are equal.
pub fn check_names(specs: &[ExportSpec]) -> Result<(), SpecError> {
    for (index, spec) in specs.iter().enumerate() {
        if specs[..index].iter().any(|other| other.name == spec.name) {
            return spec_error(format!("two exports have the name {:?}", spec.name));
        }
    }
    Ok(())
}

/// Rejects exports that overlap on a volume if clients may write to one of them, unless both are shared.
///
/// # Errors
/// If two exports overlap. Each export comes with its disk, its volume there, and its range there.
pub fn check_overlaps(exports: &[(&ExportSpec, (usize, usize), Range<u64>)]) -> Result<(), SpecError> {
    for (index, (spec, volume, range)) in exports.iter().enumerate() {
        for (other, other_volume, other_range) in &exports[..index] {
            let overlap = volume == other_volume && range.start < other_range.end && other_range.start < range.end;
            if overlap && !(spec.read_only && other.read_only) && !(spec.shared && other.shared) {
                return spec_error(format!(
                    "export {:?} overlaps export {:?}, and clients may write (expected other ranges, read-only, or shared for both)",
                    spec.name, other.name
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_read_from_its_settings() {
        let text = "name=vm1,path=/a b/c,offset=1M,size=2GiB,weight=200,ioprio=rt/0,max-iops=1000,wbps=5M,read-only,vhost-user=/s";
        let spec = ExportSpec::parse(text).unwrap();
        assert_eq!((spec.name.as_str(), spec.path), ("vm1", Some("/a b/c".into())));
        assert_eq!(spec.vhost_user, Some("/s".into()));
        assert_eq!((spec.offset, spec.size, spec.read_only), (1 << 20, Some(2 << 30), true));
        assert_eq!((spec.settings.weight, ioprio_text(spec.settings.ioprio).as_str()), (200, "rt/0"));
        assert_eq!(spec.limits.to_string(), "rbps=max wbps=5242880 riops=1000 wiops=1000");
    }

    #[test]
    fn the_kernel_chooses_the_number_of_a_device_unless_one_is_given() {
        let ublk = |text: &str| ExportSpec::parse(text).unwrap().ublk;
        assert_eq!((ublk("name=a"), ublk("ublk,name=a")), (None, Some(DeviceNumber::Any)));
        assert_eq!(ublk("name=a,ublk=0"), Some(DeviceNumber::Given(0)));
        assert_eq!(ublk("ublk=1048575"), Some(DeviceNumber::Given(1_048_575)));
        // A target with blocks of less than 512 bytes has devices with such blocks, and one with larger blocks those.
        let range = |block_bytes| ExportSpec::parse("ublk").unwrap().range(5000, block_bytes);
        assert_eq!((range(1), range(4096)), (Ok(0..4608), Ok(0..4096)));
    }

    #[test]
    fn invalid_export_settings_are_reported() {
        for (text, said) in [
            ("name=a,weight=0", "weight \"0\" is not a number from 1 to 1000"),
            ("weight=1001", "from 1 to 1000"),
            ("ioprio=be/8", "be/0 (highest)"),
            ("ioprio=idle/1", "idle"),
            ("max-iops=1", "smallest limit is 2"),
            ("max-bps=fast", "not a number"),
            ("size=0", "size is 0"),
            ("offset=-1", "offset: \"-1\" is not a number"),
            ("size=99999999999T", "not a number"),
            ("name=a,name=b", "name is given twice"),
            ("colour=red", "unknown setting \"colour=red\""),
            ("read-only=1", "unknown setting"),
            ("", "unknown setting"),
            ("path=", "path is empty"),
            ("vhost-user=", "vhost-user is empty"),
            ("ublk=", "ublk \"\" is not a number from 0 to 1048575"),
            ("ublk=1048576", "ublk \"1048576\" is not a number"),
            ("ublk=1,ublk", "ublk is given twice"),
            ("clients=alice", "expected all, or some of user:NAME"),
        ] {
            let error = ExportSpec::parse(text).expect_err(text).to_string();
            assert!(error.contains(said) && error.lines().count() == 1, "{text}: {error}");
        }
        let overlap = |one: &str, other: &str| {
            let specs = [one, other].map(|text| ExportSpec::parse(text).unwrap());
            check_overlaps(&[(&specs[0], (0, 0), 0..10), (&specs[1], (0, 0), 9..20)]).is_err()
        };
        assert!(overlap("name=a", "name=b,read-only") && overlap("name=a,shared", "name=b"));
        assert!(!overlap("name=a,read-only", "name=b,read-only") && !overlap("name=a,shared", "name=b,shared"));
        let spec = ExportSpec::default();
        assert!(
            check_overlaps(&[
                (&spec, (0, 0), 0..10),
                (&spec, (0, 0), 10..20),
                (&spec, (0, 1), 0..20),
                (&spec, (1, 0), 0..20)
            ])
            .is_ok()
        );
        let twice = [ExportSpec::default(), ExportSpec::default()];
        assert!(check_names(&twice).unwrap_err().to_string().contains("two exports"));
    }

    #[test]
    fn a_range_lies_in_its_volume_and_is_made_of_blocks_if_a_guest_uses_it() {
        let range = |text: &str, volume| ExportSpec::parse(text).unwrap().range(volume, 512);
        assert_eq!(range("name=a", 1000).unwrap(), 0..1000);
        assert_eq!(range("name=a,offset=1,size=7", 1000).unwrap(), 1..8);
        assert_eq!(range("name=a,vhost-user=/s", 1000).unwrap(), 0..512);
        assert_eq!(range("name=a,ublk", 1000).unwrap(), 0..512);
        assert_eq!(range("name=a,offset=512", 4096).unwrap(), 512..4096);
        assert_eq!(range("name=a,offset=512,size=512", 4096).unwrap(), 512..1024);
        for (text, volume) in [
            ("offset=4096", 4096),
            ("offset=8192", 4096),
            ("size=8192", 4096),
            ("offset=512,size=17179869183G", 4096),
            ("offset=1,vhost-user=/s", 4096),
            ("size=513,vhost-user=/s", 4096),
            ("vhost-user=/s", 511),
            ("offset=1,ublk=1", 4096),
            ("size=513,ublk", 4096),
            ("ublk", 511),
            ("name=a", 0),
        ] {
            assert!(range(text, volume).is_err(), "{text}");
        }
    }
}
