//! A small client of NBD, for tests about which clients are served and which are not.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::running::Running;

/// A client at an export.
pub(crate) struct Client(pub(crate) UnixStream);

impl Client {
    /// Says hello and asks for an export; `None` if there is none of that name.
    pub(crate) fn at(server: &Running, export: &str) -> Option<Client> {
        Client::on(server.connect(), export)
    }

    /// The same on a connection that there is.
    pub(crate) fn on(mut stream: UnixStream, export: &str) -> Option<Client> {
        stream.write_all(b"\0\0\0\x03").unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        Client::go(stream, export)
    }

    /// A client at an export that takes answers in chunks, so that holes need not be sent.
    pub(crate) fn in_chunks(server: &Running, export: &str) -> Option<Client> {
        let mut stream = server.connect();
        stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 18 + 20]).unwrap();
        // base:allocation of this export, for block status.
        let name = export.as_bytes();
        let mut context = b"IHAVEOPT\0\0\0\x0a".to_vec();
        context.extend((name.len() as u32 + 27).to_be_bytes());
        context.extend((name.len() as u32).to_be_bytes());
        context.extend(name);
        context.extend(b"\0\0\0\x01\0\0\0\x0fbase:allocation");
        stream.write_all(&context).unwrap();
        loop {
            let mut header = [0; 20];
            stream.read_exact(&mut header).unwrap();
            let field = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
            stream.read_exact(&mut vec![0; field(16) as usize]).unwrap();
            if field(12) != 4 {
                break;
            }
        }
        Client::go(stream, export)
    }

    fn go(mut stream: UnixStream, export: &str) -> Option<Client> {
        let length = export.len() as u32;
        let mut hello = b"IHAVEOPT\0\0\0\x07".to_vec();
        hello.extend((length + 6).to_be_bytes());
        hello.extend(length.to_be_bytes());
        hello.extend(export.as_bytes());
        hello.extend([0, 0]);
        stream.write_all(&hello).unwrap();
        loop {
            let mut header = [0; 20];
            stream.read_exact(&mut header).unwrap();
            let field = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
            stream.read_exact(&mut vec![0; field(16) as usize]).unwrap();
            match field(12) {
                1 => return Some(Client(stream)),
                3 => {}
                _ => return None,
            }
        }
    }

    /// Asks for 512 bytes at the beginning.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        self.0.write_all(b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\0\0\x02\0")
    }

    /// Whether it is answered well.
    pub(crate) fn is_served(&mut self) -> bool {
        let mut answer = [1; 16 + 512];
        self.ask().is_ok() && self.0.read_exact(&mut answer).is_ok() && answer[4..8] == [0; 4]
    }

    /// Whether the server has ended the connection; waits for something to come.
    pub(crate) fn is_sent_away(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 1]), Ok(0))
    }
}
