//! TLS by rustls: reading certificates, and a non-blocking TLS layer for sockets.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::stream::Stream;

/// Maximum file size in bytes: the certificates of all public authorities together need a quarter of it.
const BYTES_MAX: u64 = 1 << 20;
/// Supported keys.
const KEYS: &str = "expected RSA of 2048, 3072 or 4096 bits, ECDSA P-256 or P-384, or Ed25519";
const ENCRYPTED_KEY: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";

/// The files that TLS needs, as PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// The key that belongs to it.
    pub key: PathBuf,
    /// Certificates of authorities, one of which must have signed a client's certificate. Without this file clients
    /// need no certificate.
    pub authority: Option<PathBuf>,
}

/// An error in one of the files.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct TlsError {
    path: PathBuf,
    why: String,
}

fn tls_error(path: &Path, why: impl ToString) -> TlsError {
    TlsError { path: path.to_owned(), why: why.to_string() }
}

fn pem_error(path: &Path, what: &str, error: &pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => tls_error(path, error),
        pem::Error::NoItemsFound => tls_error(path, format!("contains no {what} (expected PEM)")),
        error => tls_error(path, format!("is not PEM: {error}")),
    }
}

/// Contents of the TLS files.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsTexts {
    files: TlsFiles,
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| tls_error(path, error))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| tls_error(path, error))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(tls_error(path, "is longer than 1 MiB (expected PEM)"));
    }
    Ok(text)
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    let read = read.and_then(|all| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) });
    read.map_err(|error| pem_error(path, "certificate", &error))
}

fn private_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| {
        let is_encrypted = text.windows(ENCRYPTED_KEY.len()).any(|found| found == ENCRYPTED_KEY);
        match error {
            pem::Error::NoItemsFound if is_encrypted => {
                tls_error(path, "the private key is encrypted (expected one without a passphrase)")
            }
            error => pem_error(path, "private key", &error),
        }
    })
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn read(&self) -> Result<TlsTexts, TlsError> {
        Ok(TlsTexts {
            files: self.clone(),
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authority: self.authority.as_deref().map(read).transpose()?,
        })
    }
}

impl TlsTexts {
    /// Makes the configuration of a server.
    ///
    /// # Errors
    /// If one of them is not valid, or does not match the others.
    pub fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let TlsFiles { certificate: certificate_path, key: key_path, .. } = &self.files;
        let provider = Arc::new(default_provider());
        let chain = certificates(certificate_path, &self.certificate)?;
        let key = private_key(key_path, &self.key)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| tls_error(certificate_path, error))?;
        let builder = match (&self.files.authority, &self.authority) {
            (Some(path), Some(text)) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, text)? {
                    roots.add(certificate).map_err(|error| tls_error(path, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| tls_error(path, error))?)
            }
            _ => builder.with_no_client_auth(),
        };
        // Fails if the key does not match, or the certificate has errors that its PEM form does not show.
        let config = builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InvalidCertificate(_) => tls_error(certificate_path, error),
            error @ rustls::Error::General(_) => tls_error(key_path, format!("{error} ({KEYS})")),
            error => tls_error(key_path, error),
        })?;
        Ok(Arc::new(config))
    }
}

/// TLS on a socket.
#[derive(Debug)]
pub(crate) struct TlsLayer {
    connection: ServerConnection,
    /// Whether the client has sent the end of the stream, or has disconnected.
    has_ended: bool,
    /// Whether the names of the client's certificate have been requested.
    names_taken: bool,
}

impl TlsLayer {
    pub(crate) fn new(config: Arc<ServerConfig>) -> io::Result<TlsLayer> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(TlsLayer { connection, has_ended: false, names_taken: false })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// DNS names of the client's certificate, which has been verified; returned once, after the client has presented
    /// one.
    pub(crate) fn peer_names(&mut self) -> Option<Vec<String>> {
        if self.names_taken || self.connection.is_handshaking() {
            return None;
        }
        self.names_taken = true;
        let certificate = webpki::EndEntityCert::try_from(self.connection.peer_certificates()?.first()?).ok()?;
        Some(certificate.valid_dns_names().map(str::to_owned).collect())
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn announce_end_of_stream(&mut self) {
        self.connection.send_close_notify();
    }

    /// Fills all of `into` if there is enough data: a short read has emptied the socket.
    pub(crate) fn receive(&mut self, plain: &mut dyn Stream, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut received = 0;
        for slice in into {
            let mut rest = &mut slice[..];
            while !rest.is_empty() {
                match self.connection.reader().read(rest) {
                    Ok(0) => self.has_ended = true,
                    Ok(count) => {
                        received += count;
                        rest = &mut rest[count..];
                        continue;
                    }
                    // A missing close_notify is an end, too.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.has_ended = true,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if self.read_records(plain)? {
                            continue;
                        }
                        let is_empty = received == 0;
                        return if is_empty { Err(ErrorKind::WouldBlock.into()) } else { Ok(received) };
                    }
                    Err(error) => return Err(error),
                }
                return Ok(received);
            }
        }
        Ok(received)
    }

    /// Reads from the system. Returns whether there was data, or the end of the stream.
    fn read_records(&mut self, plain: &mut dyn Stream) -> io::Result<bool> {
        match self.connection.read_tls(plain) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        }
        let processed = self.connection.process_new_packets();
        // Also sends alerts to a client that is refused.
        let written = self.write_records(plain);
        processed.map_err(|error| io::Error::other(format!("TLS: {error}")))?;
        written.map(|()| true)
    }

    /// Takes as much as fits into one batch of records, once the previous batch has been sent.
    pub(crate) fn send(&mut self, plain: &mut dyn Stream, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_records(plain)?;
        if self.has_unsent() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.connection.writer().write_vectored(pieces)?;
        self.write_records(plain)?;
        if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    pub(crate) fn write_records(&mut self, plain: &mut dyn Stream) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(plain) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
