//! The client's end of a connection, with or without TLS.

use std::io::{self, ErrorKind, Read as _, Write};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

use super::streams::ClientEnd;

const HOST: &str = "localhost";

/// The TLS configurations of both sides. Keys, signatures and certificates are random, but their lengths are constant, so a
/// seed's history stays the same.
pub struct TlsSides {
    pub server: Arc<ServerConfig>,
    pub client: Arc<ClientConfig>,
}

impl TlsSides {
    pub fn new() -> TlsSides {
        let signing_key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(1_u64));
        let cert = params.self_signed(&signing_key).unwrap();
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let server = server.unwrap().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.resumption = Resumption::disabled();
        TlsSides { server: Arc::new(server), client: Arc::new(client) }
    }
}

/// The client's end.
#[derive(Debug)]
pub struct Wire {
    far: ClientEnd,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    pub fn new(far: ClientEnd) -> Wire {
        Wire { far, tls: None }
    }

    /// Switches to TLS, beginning with these received bytes.
    pub fn begin_tls(&mut self, config: &Arc<ClientConfig>, received: &[u8]) {
        let name = ServerName::try_from(HOST).unwrap();
        let tls = self.tls.insert(Box::new(ClientConnection::new(Arc::clone(config), name).unwrap()));
        decrypt(tls, received, &mut Vec::new());
    }

    /// Sends as much as fits, and returns the number of bytes.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let Some(tls) = &mut self.tls else { return self.far.send(bytes) };
        send_records(tls, &mut self.far);
        if tls.wants_write() {
            return 0;
        }
        let taken = tls.writer().write(bytes).unwrap();
        send_records(tls, &mut self.far);
        taken
    }

    /// Whether everything has been sent.
    pub fn has_sent_all(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Receives at most this many bytes from the connection, and appends the decrypted data to `into`.
    pub fn receive(&mut self, bytes_max: usize, into: &mut Vec<u8>) {
        let Some(tls) = &mut self.tls else { return self.far.receive(bytes_max, into) };
        let mut received = Vec::new();
        self.far.receive(bytes_max, &mut received);
        decrypt(tls, &received, into);
        send_records(tls, &mut self.far);
    }

    /// Whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        self.far.has_ended()
    }

    /// Finishes sending.
    pub fn finish(&mut self) {
        self.far.finish();
    }

    /// Breaks the connection.
    pub fn break_connection(&mut self) {
        self.far.break_connection();
    }
}

/// Takes records, or parts of them, and appends the decrypted data to `into`.
fn decrypt(tls: &mut ClientConnection, mut received: &[u8], into: &mut Vec<u8>) {
    while !received.is_empty() {
        tls.read_tls(&mut received).unwrap();
        tls.process_new_packets().expect("the server speaks TLS");
        match tls.reader().read_to_end(into) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
}

/// Sends records, as far as there is room.
fn send_records(tls: &mut ClientConnection, far: &mut ClientEnd) {
    while tls.wants_write() && tls.write_tls(&mut Sink(far)).is_ok() {}
}

struct Sink<'a>(&'a mut ClientEnd);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes) {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
