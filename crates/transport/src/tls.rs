//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{Address, Tls, TransportError};

/// The client's side of an encrypted connection that has not said anything yet;
/// `None` when it is not to be encrypted.
///
/// # Errors
/// Authorities that cannot be read, a host that no certificate could be for.
pub fn client(tls: &Tls, address: &Address) -> Result<Option<Box<ClientConnection>>, TransportError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    let config = match tls {
        Tls::Off => return Ok(None),
        Tls::Preferred if matches!(address, Address::Socket(_)) => return Ok(None),
        Tls::Preferred | Tls::Required => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))).with_no_client_auth()
        }
        Tls::Verified { ca } => builder.with_root_certificates(authorities(ca.as_deref())?).with_no_client_auth(),
    };
    let name = match address {
        Address::Socket(_) => "localhost",
        Address::Tcp { host, .. } => host.as_str(),
    };
    let server = ServerName::try_from(name.to_owned())
        .map_err(|_| TransportError::Tls(format!("{name:?} is no name that a certificate could be for")))?;
    let client = ClientConnection::new(Arc::new(config), server).map_err(|error| refused(&error))?;
    Ok(Some(Box::new(client)))
}

/// What to do about an encryption that failed.
pub(crate) fn refused(error: &rustls::Error) -> TransportError {
    let remedy = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "name the PEM file of the authority that signed the server's certificate, or require TLS without verification"
        }
        rustls::Error::InvalidCertificate(_) => {
            "connect by the name that the certificate is for, have a valid one made, or require TLS without verification"
        }
        _ => "see the server's log, and which versions of TLS it allows (1.2 and 1.3 are spoken here)",
    };
    TransportError::Tls(format!("{error}; {remedy}"))
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, TransportError> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        let (taken, _refused) = store.add_parsable_certificates(found.certs);
        if taken == 0 {
            return Err(TransportError::Tls(
                "this system has no certificate authorities; install ca-certificates, or name a PEM file".into(),
            ));
        }
        return Ok(store);
    };
    let unusable = |cause: &dyn std::fmt::Display| {
        TransportError::Tls(format!("{}: {cause}; name a PEM file of certificate authorities", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|cause| unusable(&cause))? {
        let certificate = certificate.map_err(|cause| unusable(&cause))?;
        store.add(certificate).map_err(|cause| unusable(&cause))?;
    }
    if store.is_empty() {
        return Err(unusable(&"no certificate in it"));
    }
    Ok(store)
}

/// Takes any certificate, if only its owner is at the other end.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
