//! A server: a target under a scheduler, with exports.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::ground::Nanos;
use hoistway_blk::queue::ConfigError;
use hoistway_engine::{Backend, Engine, StartError};

use crate::event_loop::{EventLoop, Inboxes};
use crate::front_end::FrontEnd;
use crate::log::Log;
use crate::site::{Bounds, Site};
use crate::spec::{Placed, SpecError};
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

/// A running server. [`accept`](Self::accept) lets clients connect.
pub struct Server {
    site: Arc<Site>,
}

impl Server {
    /// Starts the block layer over `target`, with these exports on it.
    ///
    /// # Errors
    /// If the options contradict each other or the target, or the system refuses.
    pub fn start(
        config: &hoistway_engine::Config,
        target: Box<dyn Backend>,
        exports: &[Placed],
        bounds: Bounds,
        log: Log,
    ) -> Result<Server, ServerError> {
        let inboxes = Inboxes::new(config.workers)?;
        // Workers busy-poll in their event loops, where the sockets are.
        let busy_poll_max = Duration::from_nanos(config.spin.0);
        let config = hoistway_engine::Config { spin: Nanos::ZERO, ..config.clone() };
        let engine = Engine::start(&config, EventLoop::around(target, inboxes.clone()).busy_polling(busy_poll_max))?;
        let site = Site::new(engine, inboxes, bounds, log);
        site.remember_defaults();
        site.offer_these(exports)?;
        Ok(Server { site: Arc::new(site) })
    }

    /// What it is made of.
    #[must_use]
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Accepts clients of all these front ends until `stop` is set.
    pub fn accept(&self, front_ends: &[Box<dyn FrontEnd>], stop: &Stop) {
        std::thread::scope(|scope| {
            for front_end in front_ends {
                scope.spawn(|| front_end.serve(&self.site, stop));
            }
        });
    }

    /// Drains the server: in-flight requests are completed, throttled ones are refused, and connections are closed. Waits until none
    /// is left, but no longer than `grace`; returns how many are.
    #[must_use]
    pub fn drain(&self, grace: Duration) -> usize {
        self.site.drain();
        self.site.inboxes.wait_until_empty(grace)
    }

    /// Stops the block layer and its workers; connections that are left are dropped.
    pub fn stop(self) {
        self.site.engine.stop();
    }

    /// The same without waiting for the workers: after [`drain`](Self::drain) timed out, their commands may never end.
    pub fn abandon(self) {
        self.site.engine.abandon();
    }
}
