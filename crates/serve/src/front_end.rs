//! Ways in for clients, whatever they speak.

use std::sync::Arc;

use crate::served::Site;
use crate::stop::Stop;

/// One protocol at one place. It makes [visitors](crate::Visitor) of whoever comes and has them in through the site's
/// [doors](Site::doors); what a visitor submits goes through a [gate](crate::Gate), so that weights, priorities and limits
/// hold between clients of all front ends.
pub trait FrontEnd: Send + Sync {
    /// Where it listens, for people.
    fn place(&self) -> String;

    /// Takes clients in until it is stopped. Errors of single clients are told to the log, and that is all. Clients that are
    /// in stay when this ends: they leave when the site [drains](Site::is_draining).
    fn serve(&self, site: &Arc<Site>, stop: &Stop);
}
