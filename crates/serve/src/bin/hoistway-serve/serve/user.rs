//! Dropping root privileges.

use std::ffi::CString;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::SocketAccess;
use nix::unistd::{Group, User, geteuid, initgroups, setgid, setuid};

/// Looks up a user that the process can switch to.
pub(super) fn find(name: &str) -> Result<User> {
    let found = User::from_name(name).with_context(|| format!("--user {name}"))?;
    let Some(user) = found else { bail!("--user {name}: there is no such user") };
    if !geteuid().is_root() && geteuid() != user.uid {
        bail!("--user {name}: only root can become another user");
    }
    Ok(user)
}

/// The owner of a socket, USER[:GROUP] by names or numbers, and its mode.
pub(super) fn access(option: &str, owner: Option<&str>, mode: Option<u32>) -> Result<SocketAccess> {
    let Some(owner) = owner else { return Ok(SocketAccess { mode, ..SocketAccess::default() }) };
    let (user, group) = owner.split_once(':').map_or((owner, None), |(user, group)| (user, Some(group)));
    let user_id = match user.parse() {
        Ok(number) => Some(number),
        Err(_) => User::from_name(user).ok().flatten().map(|user| user.uid.as_raw()),
    };
    let Some(user_id) = user_id else {
        bail!("{option} {owner}: there is no user {user:?} (expected USER or USER:GROUP)")
    };
    let group = match group.map(|name| (name, name.parse())) {
        None => None,
        Some((_, Ok(number))) => Some(number),
        Some((name, Err(_))) => match Group::from_name(name).ok().flatten() {
            Some(group) => Some(group.gid.as_raw()),
            None => bail!("{option} {owner}: there is no group {name:?} (expected USER or USER:GROUP)"),
        },
    };
    Ok(SocketAccess { mode, user: Some(user_id), group })
}

/// Switches all threads of the process to that user and its groups, irrevocably.
pub(super) fn become_user(user: &User) -> Result<()> {
    if geteuid() == user.uid {
        return Ok(());
    }
    let name = CString::new(user.name.as_str())?;
    let switched = initgroups(&name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    switched.with_context(|| format!("--user {}", user.name))
}
