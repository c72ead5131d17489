//! A server: a target under a scheduler, exports on it, and doors for clients.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::{ConfigError, Nanos};
use hoistway_engine::{Backend, Engine, StartError};

use crate::front_end::FrontEnd;
use crate::lobby::{Doors, Lobby};
use crate::served::{Bounds, Log, Site};
use crate::spec::{ExportSpec, SpecError};
use crate::stop::Stop;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An export.
    #[error(transparent)]
    Export(#[from] SpecError),
    /// A weight.
    #[error(transparent)]
    Weight(#[from] ConfigError),
    /// What a running server does not change, or its queue does not take.
    #[error("{0}")]
    Refused(String),
    /// The block layer or the target.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// The system.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A socket.
    #[error("cannot listen on {place}: {why}")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        why: io::Error,
    },
}

/// An export and the volume of the target that it is on.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What is asked for.
    pub spec: ExportSpec,
    /// Which volume.
    pub volume: usize,
}

/// A running server. Clients come when somebody [accepts](Self::accept) them.
pub struct Server {
    site: Arc<Site>,
}

impl Server {
    /// Starts the block layer over `target`, with these exports on it.
    ///
    /// # Errors
    /// If something of that contradicts something else, or the system refuses.
    pub fn start(
        config: &hoistway_engine::Config,
        target: Box<dyn Backend>,
        exports: &[Placed],
        bounds: Bounds,
        log: Log,
    ) -> Result<Server, ServerError> {
        let doors = Doors::new(config.workers)?;
        // A worker looks on where it would sleep, among the sockets.
        let looks_on = Duration::from_nanos(config.spin.0);
        let config = hoistway_engine::Config { spin: Nanos::ZERO, ..config.clone() };
        let engine = Engine::start(&config, Lobby::around(target, doors.clone()).looking_on(looks_on))?;
        let site = Site::new(engine, doors, bounds, log);
        site.remember_defaults();
        site.offer_these(exports)?;
        Ok(Server { site: Arc::new(site) })
    }

    /// What it is made of.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Takes clients in, by all of these, until somebody stops that.
    pub fn accept(&self, front_ends: &[Box<dyn FrontEnd>], stop: &Stop) {
        std::thread::scope(|scope| {
            for front_end in front_ends {
                scope.spawn(|| front_end.serve(&self.site, stop));
            }
        });
    }

    /// Ends: what clients have under way is answered, then they are closed. Waits until none is left, but not longer than
    /// `grace`; answers how many are.
    #[must_use]
    pub fn drain(&self, grace: Duration) -> usize {
        let begin = std::time::Instant::now();
        self.site.drain();
        while self.site.doors.visitors() > 0 && begin.elapsed() < grace {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.site.doors.visitors()
    }

    /// Stops the block layer, once nobody is connected any more.
    pub fn stop(self) {
        let mut site = self.site;
        // What a worker has just let go of may hold it for a moment; a worker cannot be the one to stop the workers.
        for _ in 0..1000 {
            match Arc::try_unwrap(site) {
                Ok(site) => return site.engine.stop(),
                Err(shared) => site = shared,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::forget(site);
    }
}
