//! TLS, with certificates made here and clients that others wrote.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::control::refused;
use crate::running::{Running, hoistway, is_installed, succeeded};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for this host, and its key.
fn certify(authority: &Authority, certificate: &Path, key: &Path) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let pair = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(names).unwrap().signed_by(&pair, authority).unwrap();
    fs::write(certificate, signed.pem()).unwrap();
    fs::write(key, pair.serialize_pem()).unwrap();
}

/// What a server reads, and in `client` and `stranger` what libnbd does: certificates of our authority, and of another.
fn certificates() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    // Of the same name: a client shows what it takes for the right one, and only the signature says that it is not.
    let (ours, other) = (authority("ours"), authority("ours"));
    fs::write(place.join("ca.pem"), ours.pem()).unwrap();
    fs::write(place.join("other-ca.pem"), other.pem()).unwrap();
    certify(&ours, &place.join("cert.pem"), &place.join("key.pem"));
    for (name, signer) in [("client", Some(&ours)), ("stranger", Some(&other)), ("nobody", None)] {
        let own = place.join(name);
        fs::create_dir(&own).unwrap();
        fs::write(own.join("ca-cert.pem"), ours.pem()).unwrap();
        if let Some(signer) = signer {
            certify(signer, &own.join("client-cert.pem"), &own.join("client-key.pem"));
        }
    }
    folder
}

const TLS: [&str; 8] =
    ["--target", "mem:32M", "--tls-cert", "{}/cert.pem", "--tls-key", "{}/key.pem", "--tcp", "127.0.0.1:0"];

fn port(server: &Running) -> String {
    let log = server.log();
    let (_, rest) = log.split_once("127.0.0.1:").unwrap();
    rest.lines().next().unwrap().to_owned()
}

fn uri(server: &Running, scheme: &str, who: &str) -> String {
    let folder = server.folder().join(who);
    format!("{scheme}://127.0.0.1:{}/?tls-certificates={}", port(server), folder.display())
}

fn info(uri: &str) -> Output {
    Command::new("timeout").args(["60", "nbdinfo", "--size", uri]).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn nbdcopy_copies_there_and_back_through_tls() {
    if !is_installed("nbdcopy") || !is_installed("nbdinfo") {
        return;
    }
    let server = Running::start_in(certificates(), &[&TLS[..], &["--tls-ca", "{}/ca.pem", "--workers", "2"]].concat());
    let uri = uri(&server, "nbds", "client");
    let (there, back) = (server.folder().join("there"), server.folder().join("back"));
    let mut content = vec![0; 32 << 20];
    content.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 / 5 + at / 4096) as u8);
    fs::write(&there, &content).unwrap();
    succeeded("nbdcopy", &[there.to_str().unwrap(), &uri]);
    succeeded("nbdcopy", &[&uri, back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap() == content);
    // On this machine it can be had, and need not.
    let local = format!("nbds+unix://localhost/?socket={}", server.socket().display());
    let local = format!("{local}&tls-certificates={}", server.folder().join("client").display());
    assert_eq!(succeeded("nbdinfo", &["--size", &local]).trim(), (32 << 20).to_string());
    assert_eq!(succeeded("nbdinfo", &["--size", &server.uri("")]).trim(), (32 << 20).to_string());
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn clients_without_tls_or_a_valid_certificate_are_refused() {
    if !is_installed("nbdinfo") {
        return;
    }
    let mut server = Running::start_in(certificates(), &[&TLS[..], &["--tls-ca", "{}/ca.pem"]].concat());
    for (scheme, who, said) in [
        ("nbds", "nobody", "TLS: peer sent no certificates"),
        ("nbds", "stranger", "TLS: invalid peer certificate"),
        ("nbd", "client", ""),
    ] {
        let length = server.log().len();
        let output = info(&uri(&server, scheme, who));
        assert!(!output.status.success(), "{scheme} {who}: {output:?}");
        server.wait_until("it is in the log", |server| {
            server.log()[length..].contains(said) && server.log()[length..].lines().count() >= 2
        });
        assert!(!server.log()[length..].contains("opened export"));
    }
    assert!(info(&uri(&server, "nbds", "client")).status.success());
}

#[test]
fn optional_tls_serves_both_and_without_a_ca_asks_for_no_certificate() {
    if !is_installed("nbdinfo") {
        return;
    }
    let server = Running::start_in(certificates(), &[&TLS[..], &["--tls", "allowed"]].concat());
    for (scheme, who) in [("nbd", "client"), ("nbds", "nobody"), ("nbds", "client")] {
        let output = info(&uri(&server, scheme, who));
        assert!(output.status.success(), "{scheme} {who}: {output:?}");
    }
}

#[test]
fn a_client_without_our_ca_rejects_the_server() {
    if !is_installed("nbdinfo") {
        return;
    }
    let server = Running::start_in(certificates(), &TLS);
    let folder = server.folder();
    fs::copy(folder.join("other-ca.pem"), folder.join("nobody/ca-cert.pem")).unwrap();
    assert!(!info(&uri(&server, "nbds", "nobody")).status.success());
}

#[test]
fn certificates_are_read_again_with_the_configuration() {
    if !is_installed("nbdinfo") {
        return;
    }
    let folder = certificates();
    fs::write(folder.path().join("serve.toml"), "").unwrap();
    let mut server = Running::start_in(folder, &[&TLS[..], &["--config", "{}/serve.toml"]].concat());
    assert!(info(&uri(&server, "nbds", "nobody")).status.success());
    let new = authority("new");
    let place = server.folder().to_owned();
    certify(&new, &place.join("cert.pem"), &place.join("key.pem"));
    let mut again = |said: &str| {
        let length = server.log().len();
        kill_process(server.id(), Signal::HUP).unwrap();
        server.wait_until("it is read again", |server| server.log()[length..].contains("configuration reload"));
        assert!(server.log()[length..].contains(said), "{}", server.log());
    };
    again("reloaded: TLS files, for new connections");
    again("reloaded: nothing changed");
    fs::remove_file(place.join("key.pem")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.join("key.pem"), rustix::fs::Mode::RWXU).unwrap();
    again("key.pem: not a regular file");
    assert!(
        !info(&uri(&server, "nbds", "nobody")).status.success(),
        "it has the certificate of an authority unknown there"
    );
    fs::write(place.join("nobody/ca-cert.pem"), new.pem()).unwrap();
    assert!(info(&uri(&server, "nbds", "nobody")).status.success());
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn data_between_starttls_and_the_tls_handshake_ends_the_connection() {
    use std::io::{Read as _, Write as _};
    let mut server = Running::start_in(certificates(), &TLS);
    let mut stream = server.connect();
    let start_tls = b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0";
    let go = b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";
    stream.write_all(&[&start_tls[..], go].concat()).unwrap();
    // The greeting and the answer to STARTTLS at most.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.len() <= 18 + 20);
    server.wait_until("it is in the log", |server| server.log().contains("sent data before TLS"));
    // Noise instead of a handshake of TLS.
    let mut stream = server.connect();
    stream.write_all(start_tls).unwrap();
    stream.read_exact(&mut [0; 18 + 20]).unwrap();
    stream.write_all(&[0x55; 100]).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    server.wait_until("it is in the log", |server| server.log().contains("TLS: "));
}

#[test]
fn a_key_that_cannot_be_used_is_refused_with_those_that_can() {
    if !is_installed("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (key, certificate) = (place("key.pem"), place("cert.pem"));
    let subject = ["-subj", "/CN=localhost", "-keyout", &key, "-out", &certificate];
    for kind in [&["ec", "-pkeyopt", "ec_paramgen_curve:P-521"][..], &["rsa:2432"]] {
        let made =
            Command::new("openssl").args(["req", "-x509", "-nodes", "-newkey"]).args(kind).args(subject).output();
        assert!(made.as_ref().unwrap().status.success(), "{made:?}");
        let arguments =
            ["serve", "--target", "mem:1M", "--tcp", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
        let complaint = refused(&hoistway().args(arguments).output().unwrap());
        assert!(
            complaint.contains("key.pem: ") && complaint.contains("(expected RSA of 2048, 3072 or 4096 bits"),
            "{complaint}"
        );
    }
}

#[test]
fn unusable_certificate_and_key_files_are_named() {
    let folder = certificates();
    let place = folder.path().display().to_string();
    let at = |name: &str| format!("{place}/{name}");
    fs::write(at("empty"), "").unwrap();
    fs::write(at("torn"), "-----BEGIN CERTIFICATE-----\nMIIB").unwrap();
    fs::write(at("noise"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    fs::write(at("locked"), "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zeroes")).unwrap();
    for (files, said) in [
        (&[("cert", "noise"), ("key", "key.pem")][..], "noise: invalid peer certificate"),
        (&[("cert", "cert.pem"), ("key", "locked")], "locked: the private key is encrypted"),
        (&[("cert", "zeroes"), ("key", "key.pem")], "zeroes: is longer than 1 MiB (expected PEM)"),
        (&[("cert", "none"), ("key", "key.pem")][..], "none: No such file"),
        (&[("cert", "empty"), ("key", "key.pem")], "empty: contains no certificate (expected PEM)"),
        (&[("cert", "torn"), ("key", "key.pem")], "torn: is not PEM: missing section end"),
        (&[("cert", "cert.pem"), ("key", "cert.pem")], "cert.pem: contains no private key"),
        (&[("cert", "cert.pem"), ("key", "client/client-key.pem")], "client-key.pem: keys may not be consistent"),
        (&[("cert", "cert.pem"), ("key", "key.pem"), ("ca", "key.pem")], "key.pem: contains no certificate"),
        (&[("cert", "cert.pem")], "TLS needs both --tls-cert FILE and --tls-key FILE"),
        (&[("key", "key.pem")], "TLS needs both"),
        (&[("ca", "ca.pem")], "TLS needs both"),
        (&[], "TLS needs both"),
    ] {
        let mut command = hoistway();
        command.args(["serve", "--target", "mem:1M", "--socket", &at("s"), "--tls", "required"]);
        files.iter().for_each(|(option, name)| {
            command.arg(format!("--tls-{option}={}", at(name)));
        });
        let complaint = refused(&command.output().unwrap());
        assert!(complaint.contains(said), "{files:?}: {complaint}");
        assert!(!Path::new(&at("s")).exists());
    }
}

#[test]
fn an_export_serves_only_clients_with_the_certificate_name_it_lists() {
    if !is_installed("nbdinfo") {
        return;
    }
    let exports = [
        "--export",
        "name=mine,size=1M,clients=cert:LOCALHOST",
        "--export",
        "name=theirs,offset=1M,clients=cert:elsewhere",
    ];
    let server = Running::start_in(certificates(), &[&TLS[..], &["--tls-ca", "{}/ca.pem"], &exports].concat());
    let all = succeeded("nbdinfo", &["--json", "--list", &uri(&server, "nbds", "client")]);
    assert!(all.contains("\"mine\"") && !all.contains("\"theirs\""), "{all}");
    let theirs = uri(&server, "nbds", "client").replace("/?", "/theirs?");
    assert!(!info(&theirs).status.success());
    assert!(info(&uri(&server, "nbds", "client").replace("/?", "/mine?")).status.success());
}
