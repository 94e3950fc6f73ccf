//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{Address, Tls, TransportError};

/// The client's side of an encrypted connection before its handshake; `None` if there is no encryption.
///
/// # Errors
/// Authorities or a client certificate that cannot be read; a host that cannot have a certificate.
pub fn client(tls: &Tls, address: &Address) -> Result<Option<Box<ClientConnection>>, TransportError> {
    let (tls, own) = match tls {
        Tls::Identified(own) => (&own.how, Some((own.certificate.as_path(), own.key.as_path()))),
        other => (other, None),
    };
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match tls {
        Tls::Preferred if matches!(address, Address::Socket(_)) => return Ok(None),
        Tls::Off => return Ok(None),
        Tls::Identified(_) => return Err(TransportError::Tls("two certificates of one's own; name one".into())),
        Tls::Preferred | Tls::Required => Arc::new(AnyHost { provider: provider.clone(), authorities: None }),
        Tls::Signed { ca } => {
            let authorities = Some(authorities(ca.as_deref())?);
            Arc::new(AnyHost { provider: provider.clone(), authorities })
        }
        Tls::Verified { ca } => {
            let authorities = Arc::new(authorities(ca.as_deref())?);
            WebPkiServerVerifier::builder_with_provider(authorities, provider.clone())
                .build()
                .map_err(|error| TransportError::Tls(error.to_string()))?
        }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => with_own(builder, certificate, key)?,
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

/// Adds a client certificate.
fn with_own(
    builder: rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>,
    certificate: &Path,
    key: &Path,
) -> Result<ClientConfig, TransportError> {
    let unusable = |file: &Path, what: &str, cause: &dyn std::fmt::Display| {
        TransportError::Tls(format!("{}: {cause}; name a PEM file of {what}", file.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| unusable(certificate, "your certificate", &cause))?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|cause| unusable(key, "your certificate's private key", &cause))?;
    builder
        .with_client_auth_cert(chain, private)
        .map_err(|cause| unusable(certificate, "a certificate that the key is for", &cause))
}

/// The error for a failed handshake, with its remedy.
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

/// Accepts a certificate for any host name, after checking that the server has its private key.
#[derive(Debug)]
struct AnyHost {
    provider: Arc<CryptoProvider>,
    /// The authorities of which one must have signed the certificate; without them any certificate is accepted.
    authorities: Option<RootCertStore>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(authorities) = &self.authorities {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, authorities, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
