//! The messages of a front end, on a separate thread: reading them may block, even in the middle of one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};

use hoistway_vhost::{Addresses, Device, Features, Memory, Problem, Record, RegionSpec, offered_protocol};
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandler};

use super::connection::{Guest, GuestState};
use super::requests::Requests;
use crate::event_loop::Watch;

/// Maximum memory regions of a front end.
const REGIONS: u64 = 32;

/// Takes messages until there are no more.
pub fn run(guest: &Arc<Guest>, socket: UnixStream) {
    let mut handler = BackendReqHandler::from_stream(socket, Arc::new(Messages(Arc::clone(guest))));
    let mut has_refused = false;
    // As elsewhere, a panic ends this guest only.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match handler.handle_request() {
                Ok(()) => {}
                Err(Error::Disconnected) => return,
                Err(Error::ReqHandlerError(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                    if !std::mem::replace(&mut has_refused, true) {
                        guest.say(&format!("refused: {error} (further ones are not logged)"));
                    }
                }
                Err(Error::ReqHandlerError(error)) => return guest.say(&format!("{error}; closed")),
                Err(error) => return guest.say(&format!("{error}; closed")),
            }
            guest.wake_worker();
        }
    }));
    if ended.is_err() {
        guest.say("internal error (panic) in a vhost-user message; guest disconnected, others continue");
    }
    guest.disconnect_guest();
}

struct Messages(Arc<Guest>);

/// An operation that fails ends the connection.
fn refused(problem: impl Into<Problem>) -> Error {
    Error::ReqHandlerError(io::Error::other(problem.into().to_string()))
}

impl Messages {
    fn with<T>(&self, body: impl FnOnce(&mut Device) -> std::result::Result<T, Problem>) -> Result<T> {
        let state = &mut *self.0.lock();
        body(device(state)?).map_err(refused)
    }

    /// Runs `body` while no request is in flight.
    fn at_rest<T>(&self, body: impl FnOnce(&Guest, MutexGuard<'_, GuestState>) -> Result<T>) -> Result<T> {
        let mut state = self.0.lock();
        device(&mut state)?.pause(true);
        let (state, is_connected) = self.0.wait(state, |requests| requests.in_flight() == 0);
        if !is_connected {
            return Err(Error::Disconnected);
        }
        let done = body(&self.0, state);
        if let Ok(device) = device(&mut self.0.lock()) {
            device.pause(false);
        }
        done
    }

    fn with_memory(&self, change: impl FnOnce(&Memory) -> std::result::Result<Memory, Problem>) -> Result<()> {
        self.at_rest(|_, mut state| {
            let device = device(&mut state)?;
            let memory = change(device.memory()).map_err(refused)?;
            device.set_memory(memory);
            Ok(())
        })
    }
}

fn requests(state: &mut GuestState) -> Result<&mut Requests> {
    state.requests.as_mut().ok_or(Error::Disconnected)
}

fn device(state: &mut GuestState) -> Result<&mut Device> {
    Ok(&mut requests(state)?.device)
}

/// The device, and the watch of its kick descriptors once it has been registered.
fn watched(state: &mut GuestState) -> Result<(&mut Device, Option<&Watch>)> {
    let GuestState { requests, watch, .. } = state;
    let requests = requests.as_mut().ok_or(Error::Disconnected)?;
    Ok((&mut requests.device, watch.as_ref()))
}

fn spec(region: &VhostUserMemoryRegion) -> RegionSpec {
    RegionSpec {
        guest: region.guest_phys_addr,
        bytes: region.memory_size,
        user: region.user_addr,
        file_offset: region.mmap_offset,
    }
}

impl VhostUserBackendReqHandler for Messages {
    fn set_owner(&self) -> Result<()> {
        Ok(())
    }

    /// Obsolete, and implementations differ.
    fn reset_owner(&self) -> Result<()> {
        Ok(())
    }

    fn reset_device(&self) -> Result<()> {
        self.at_rest(|_, mut state| {
            let (device, watch) = watched(&mut state)?;
            for ring in 0..device.rings().len() as u32 {
                let (_, kick) = device.stop(ring).map_err(refused)?;
                if let (Some(watch), Some(kick)) = (watch, kick) {
                    watch.remove(kick.as_fd());
                }
            }
            device.reset();
            Ok(())
        })
    }

    fn get_features(&self) -> Result<u64> {
        self.with(|device| Ok(device.offered().0))
    }

    fn set_features(&self, features: u64) -> Result<()> {
        self.with(|device| device.set_features(Features(features)))
    }

    fn get_protocol_features(&self) -> Result<VhostUserProtocolFeatures> {
        Ok(offered_protocol())
    }

    fn set_protocol_features(&self, features: u64) -> Result<()> {
        match features & !offered_protocol().bits() {
            0 => Ok(()),
            others => Err(refused(Problem::Features(others))),
        }
    }

    fn get_queue_num(&self) -> Result<u64> {
        self.with(|device| Ok(device.rings().len() as u64))
    }

    // --- memory ---

    fn set_mem_table(
        &self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        self.with_memory(|_| {
            let mut all = regions.iter().zip(files);
            Ok(all.try_fold(Memory::default(), |memory, (region, file)| memory.with(spec(region), file))?)
        })?;
        Ok(None)
    }

    fn get_max_mem_slots(&self) -> Result<u64> {
        Ok(REGIONS)
    }

    fn add_mem_region(
        &self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        self.with_memory(|memory| Ok(memory.with(spec(region), file)?))?;
        Ok(None)
    }

    fn remove_mem_region(&self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.with_memory(|memory| Ok(memory.without(region.guest_phys_addr, region.memory_size)?))
    }

    // --- rings ---

    fn set_vring_num(&self, index: u32, num: u32) -> Result<()> {
        self.with(|device| device.set_size(index, num))
    }

    fn set_vring_addr(
        &self,
        index: u32,
        _: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        self.with(|device| device.set_addresses(index, Addresses { descriptors, available, used }))
    }

    fn set_vring_base(&self, index: u32, base: u32) -> Result<()> {
        self.with(|device| device.set_base(index, base))
    }

    /// Returns once no request of the ring is in flight.
    fn get_vring_base(&self, index: u32) -> Result<VhostUserVringState> {
        let mut state = self.0.lock();
        let (device, watch) = watched(&mut state)?;
        let (base, kick) = device.stop(index).map_err(refused)?;
        if let (Some(watch), Some(kick)) = (watch, kick) {
            watch.remove(kick.as_fd());
        }
        let is_empty = |requests: &Requests| requests.device.rings()[index as usize].in_flight() == 0;
        match self.0.wait(state, is_empty) {
            (_, true) => Ok(VhostUserVringState::new(index, u32::from(base))),
            (_, false) => Err(Error::Disconnected),
        }
    }

    fn set_vring_kick(&self, index: u8, kick: Option<File>) -> Result<()> {
        let state = &mut *self.0.lock();
        let (device, watch) = watched(state)?;
        let before = device.set_kick(index, kick).map_err(refused)?;
        let Some(watch) = watch else { return Ok(()) };
        if let Some(before) = before {
            watch.remove(before.as_fd());
        }
        let Some(kick) = device.kick(index) else { return Ok(()) };
        watch.add(kick).map_err(|error| refused(Problem::EventFd(error)))
    }

    fn set_vring_call(&self, index: u8, call: Option<File>) -> Result<()> {
        self.with(|device| device.set_call(index, call))
    }

    fn set_vring_err(&self, index: u8, error: Option<File>) -> Result<()> {
        self.with(|device| device.set_error(index, error))
    }

    fn set_vring_enable(&self, index: u32, enable: bool) -> Result<()> {
        self.with(|device| device.enable(index, enable))
    }

    // --- configuration ---

    fn get_config(&self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        self.with(|device| Ok(device.config(offset, size)))?.ok_or(Error::InvalidParam)
    }

    /// A write cache is flushed when it is turned off. A write to a read-only field is refused, but the guest keeps its disk.
    fn set_config(&self, offset: u32, bytes: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        let requested = device(&mut self.0.lock())?.wants_write_back(offset, bytes);
        let invalid = |problem: Problem| io::Error::new(io::ErrorKind::InvalidInput, problem.to_string());
        let is_write_back = requested.map_err(|problem| Error::ReqHandlerError(invalid(problem)))?;
        self.at_rest(|guest, mut state| {
            if !is_write_back {
                requests(&mut state)?.begin_own_flush(&guest.server, guest.server.now());
                let (flushed, is_connected) = guest.wait(state, |requests| requests.own_flush.is_some());
                if !is_connected {
                    return Err(Error::Disconnected);
                }
                state = flushed;
                if let Some(Err(errno)) = requests(&mut state)?.own_flush {
                    return Err(Error::ReqHandlerError(io::Error::new(io::ErrorKind::InvalidInput, errno)));
                }
            }
            device(&mut state)?.set_write_back(is_write_back);
            Ok(())
        })
    }

    // --- the record of what is in flight ---

    fn get_inflight_fd(&self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (queues, size) = (wanted.num_queues, wanted.queue_size);
        let (file, bytes) = Record::create(queues, size).map_err(refused)?;
        Ok((VhostUserInflight::new(bytes, 0, queues, size), file))
    }

    fn set_inflight_fd(&self, given: &VhostUserInflight, file: File) -> Result<()> {
        let VhostUserInflight { mmap_size, mmap_offset, num_queues, queue_size } = *given;
        let record = Record::open(file, mmap_offset, mmap_size, num_queues, queue_size).map_err(refused)?;
        self.with(|device| {
            device.set_record(record);
            Ok(())
        })
    }

    // --- what was not offered ---

    fn set_gpu_socket(&self, _: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("this is a disk"))
    }

    fn get_shared_object(&self, _: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("this is a disk"))
    }

    fn set_device_state_fd(
        &self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation("there is no device state to transfer"))
    }

    fn check_device_state(&self) -> Result<()> {
        Err(Error::InvalidOperation("there is no device state to transfer"))
    }

    fn get_shmem_config(&self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation("this is a disk"))
    }

    fn set_log_base(&self, _: &VhostUserLog, _: File) -> Result<()> {
        Err(Error::InvalidOperation("live migration is not supported"))
    }
}
