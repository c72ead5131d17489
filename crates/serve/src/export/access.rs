//! Access control: which clients may use an export.

use hoistway_nbd::wire::STRING_BYTES_MAX;
use nix::unistd::User;

use crate::export::clients::{Client, Origin};

/// A client that may use an export.
#[derive(Clone, PartialEq, Eq, Debug)]
enum AllowedClient {
    /// A user of this machine, over a Unix socket.
    User(u32),
    /// A client whose certificate has this DNS name.
    Certificate(String),
}

/// Clients that may use an export; an empty list allows all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Access(Vec<AllowedClient>);

impl Access {
    /// Reads `user:NAME+cert:NAME`, or `all`.
    ///
    /// # Errors
    /// A message, if the text is neither or a user does not exist.
    pub fn parse(text: &str) -> Result<Access, String> {
        if text == "all" {
            return Ok(Access::default());
        }
        let parse_client = |text: &str| match text.split_once(':') {
            Some(("user", name)) => {
                if let Ok(user) = name.parse() {
                    return Ok(AllowedClient::User(user));
                }
                let found = User::from_name(name).ok().flatten();
                found
                    .map(|user| AllowedClient::User(user.uid.as_raw()))
                    .ok_or_else(|| format!("there is no user {name:?}"))
            }
            Some(("cert", name)) if !name.is_empty() && name.len() <= STRING_BYTES_MAX => {
                Ok(AllowedClient::Certificate(name.to_ascii_lowercase()))
            }
            _ => Err(format!(
                "{text:?} names no client (expected all, or some of user:NAME, user:UID and cert:DNS-NAME with + between them)"
            )),
        };
        text.split('+').map(parse_client).collect::<Result<_, _>>().map(Access)
    }

    /// Whether all clients may use it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this client may use it.
    #[must_use]
    pub fn allows(&self, client: &Client) -> bool {
        let is_this_client = |allowed: &AllowedClient| match allowed {
            AllowedClient::User(user) => client.peer.origin == Origin::User(*user),
            AllowedClient::Certificate(name) => {
                client.certificate().iter().any(|other| other.eq_ignore_ascii_case(name))
            }
        };
        self.is_open() || self.0.iter().any(is_this_client)
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_open() {
            return f.write_str("all");
        }
        for (index, client) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "+" })?;
            match client {
                AllowedClient::User(user) => write!(f, "user:{user}")?,
                AllowedClient::Certificate(name) => write!(f, "cert:{name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_rules_are_parsed_and_printed() {
        for text in ["all", "user:7", "user:0+cert:vm1.example.com"] {
            assert_eq!(Access::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Access::parse("user:root").unwrap().to_string(), "user:0");
        for (wrong, said) in [
            ("", "names no client"),
            ("user:0+", "names no client"),
            ("cert:", "names no client"),
            ("alice", "expected all, or some of user:NAME"),
            ("user:nobody-of-that-name", "there is no user"),
        ] {
            assert!(Access::parse(wrong).unwrap_err().contains(said), "{wrong}");
        }
    }
}
