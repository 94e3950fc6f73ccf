//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, InconsistentKeys, RootCertStore,
    SignatureScheme,
};

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
    let any_host =
        |authorities| Arc::new(AnyHost { algorithms: provider.signature_verification_algorithms, authorities });
    let verifier: Arc<dyn ServerCertVerifier> = match tls {
        Tls::Preferred if matches!(address, Address::Socket(_)) => return Ok(None),
        Tls::Off => return Ok(None),
        Tls::Identified(_) => return Err(TransportError::Tls("there are two client certificates; name one".into())),
        Tls::Preferred | Tls::Required => any_host(None),
        Tls::Signed { ca } => any_host(Some(authorities(ca.as_deref())?)),
        Tls::Verified { ca } => {
            let authorities = Arc::new(authorities(ca.as_deref())?);
            WebPkiServerVerifier::builder_with_provider(authorities, provider.clone())
                .build()
                .map_err(|error| TransportError::Tls(error.to_string()))?
        }
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let own = own_certificate(&provider, certificate, key)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
        }
    };
    let name = match address {
        Address::Socket(_) => "localhost",
        Address::Tcp { host, .. } => host.as_str(),
    };
    let server = ServerName::try_from(name.to_owned())
        .map_err(|_| TransportError::Tls(format!("a certificate cannot be for the name {name:?}")))?;
    let client = ClientConnection::new(Arc::new(config), server).map_err(|error| refused(&error))?;
    Ok(Some(Box::new(client)))
}

fn own_certificate(provider: &CryptoProvider, certificate: &Path, key: &Path) -> Result<CertifiedKey, TransportError> {
    let unusable = |file: &Path, what: &str, cause: &dyn std::fmt::Display| {
        TransportError::Tls(format!("{}: {cause}; name a PEM file of {what}", file.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| unusable(certificate, "your certificate", &cause))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|cause| unusable(key, "your certificate's private key", &cause))
        .and_then(|private| {
            let loaded = provider.key_provider.load_private_key(private);
            loaded.map_err(|cause| unusable(key, "your certificate's private key", &cause))
        })?;
    let own = CertifiedKey::new(chain, private);
    match own.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(own),
        // The server decides whether it accepts the certificate, and whether the key is the right one.
        Err(rustls::Error::InvalidCertificate(cause)) if is_version_1(&cause) => Ok(own),
        Err(cause) => Err(unusable(certificate, "a certificate that the key is for", &cause)),
    }
}

/// The error for a failed handshake, with its remedy.
pub(crate) fn refused(error: &rustls::Error) -> TransportError {
    let remedy = match error {
        rustls::Error::InvalidCertificate(error) if is_version_1(error) => {
            "the server's certificate has X.509 version 1, as `openssl x509 -req` makes it without -extfile, and only \
             version 3 can be verified; sign it again with `-extfile names`, where the file names has the line \
             subjectAltName=DNS:HOST (or IP:ADDRESS), or require TLS without verification"
        }
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "name the PEM file of the authority that signed the server's certificate, or require TLS without verification"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "connect by the name that the certificate is for (names are read from subjectAltName, not from CN), verify \
             the authority alone, or require TLS without verification"
        }
        rustls::Error::InvalidCertificate(_) => "have a valid certificate made, or require TLS without verification",
        _ => {
            "see the server's log, and which versions of TLS it allows (1.2 and 1.3 are spoken here); keys that can be \
             verified are RSA of 2048 bits or more, P-256, P-384 and Ed25519"
        }
    };
    TransportError::Tls(format!("{error}; {remedy}"))
}

/// Whether a certificate was not parsed because of its version. Only version 3 has extensions, and `webpki` parses no
/// other. Its error type is not public in `rustls`, so its name decides.
fn is_version_1(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string() == "UnsupportedCertVersion")
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

/// Accepts certificates for any host name.
///
/// With authorities, one of them must have signed the certificate, and the server must have its private key.
///
/// Without authorities any certificate is accepted, as with MySQL's `required` and PostgreSQL's `require`. The
/// handshake's signature is not verified either, and the certificate is not even parsed. The signature would prove that
/// the server has the key of its certificate, but an attacker also has the key of a certificate of his own. Without
/// parsing, servers work whose certificate `webpki` refuses (X.509 version 1) or whose key has no algorithm in `ring`.
#[derive(Debug)]
struct AnyHost {
    algorithms: WebPkiSupportedAlgorithms,
    authorities: Option<RootCertStore>,
}

impl AnyHost {
    fn signature(
        &self,
        verify: impl FnOnce(&WebPkiSupportedAlgorithms) -> Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.authorities.is_some() { verify(&self.algorithms) } else { Ok(HandshakeSignatureValid::assertion()) }
    }
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
            let algorithms = self.algorithms.all;
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
        self.signature(|algorithms| verify_tls12_signature(message, certificate, signature, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(|algorithms| verify_tls13_signature(message, certificate, signature, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.algorithms.supported_schemes();
        if self.authorities.is_none() {
            schemes.push(SignatureScheme::ECDSA_NISTP521_SHA512);
        }
        schemes
    }
}
