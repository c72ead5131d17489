//! Dropping root privileges.

use std::ffi::CString;

use anyhow::{Context as _, Result, bail};
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};

/// Looks up a user that the process can become.
pub(super) fn find(name: &str) -> Result<User> {
    let found = User::from_name(name).with_context(|| format!("--user {name}"))?;
    let Some(user) = found else { bail!("--user {name}: there is no such user") };
    if !geteuid().is_root() && geteuid() != user.uid {
        bail!("--user {name}: only root can become another user");
    }
    Ok(user)
}

/// Changes all threads of the process to that user and its groups, irrevocably.
pub(super) fn become_user(user: &User) -> Result<()> {
    if geteuid() == user.uid {
        return Ok(());
    }
    let name = CString::new(user.name.as_str())?;
    let all = initgroups(&name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    all.with_context(|| format!("--user {}", user.name))
}
