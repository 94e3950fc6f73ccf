//! Decides which requests are served. Any page open in a browser can send requests to this host. A foreign page does
//! not know the secret in the address, and cannot fake its origin. The check of the `Host` header stops it from mapping
//! its own name to this host (DNS rebinding).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The host names with ports that this server accepts.
pub struct Names(Vec<String>);

impl Names {
    /// The names of a server on loopback with this port.
    pub fn new(port: u16) -> Self {
        let with_port = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        // Browsers omit the default port.
        let without = (port == 80).then(|| ["127.0.0.1".to_owned(), "localhost".to_owned()]);
        Self(with_port.into_iter().chain(without.into_iter().flatten()).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether a request comes from a page of this server, or from no page.
    fn admits(&self, method: &Method, headers: &HeaderMap) -> bool {
        let only = |name: HeaderName| {
            let mut values = headers.get_all(name).iter();
            (values.next().map(|value| value.to_str().unwrap_or_default()), values.next().is_none())
        };
        let host_is_own = matches!(only(header::HOST), (Some(host), true) if self.has(host));
        let changes = *method != Method::GET && *method != Method::HEAD;
        let origin_is_own = match only(header::ORIGIN) {
            // Browsers send it with every request that may change something.
            (None, _) => !changes,
            (Some(origin), is_one) => is_one && origin.strip_prefix("http://").is_some_and(|host| self.has(host)),
        };
        host_is_own && origin_is_own
    }
}

/// Pages may run only their inline code and contact only this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every response. The address is a secret, so it is sent to no other server, and pages are not stored on
/// disk.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Serves allowed requests and refuses all others.
pub async fn guard(State(names): State<Arc<Names>>, request: Request, next: Next) -> Response {
    let mut response = if names.admits(request.method(), request.headers()) {
        next.run(request).await
    } else {
        StatusCode::FORBIDDEN.into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(method: Method, headers: &[(HeaderName, &'static str)]) -> bool {
        let of = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let mut map = HeaderMap::new();
        of.for_each(|(name, value)| {
            map.append(name, value);
        });
        Names::new(4000).admits(&method, &map)
    }

    #[test]
    fn request_with_a_foreign_host_header_is_refused() {
        for host in ["127.0.0.1:4000", "localhost:4000", "LOCALHOST:4000"] {
            assert!(admits(Method::GET, &[(header::HOST, host)]), "{host}");
        }
        for host in ["127.0.0.1", "127.0.0.1:4001", "evil.example:4000", "localhost.evil.example:4000", ""] {
            assert!(!admits(Method::GET, &[(header::HOST, host)]), "{host}");
        }
        assert!(!admits(Method::GET, &[]), "none is none of ours");
        let twice = [(header::HOST, "127.0.0.1:4000"), (header::HOST, "evil.example")];
        assert!(!admits(Method::GET, &twice));
    }

    #[test]
    fn a_page_of_another_origin_neither_reads_nor_stops() {
        let with = |method, origin| admits(method, &[(header::HOST, "127.0.0.1:4000"), (header::ORIGIN, origin)]);
        assert!(with(Method::POST, "http://127.0.0.1:4000"));
        for origin in ["http://evil.example", "http://127.0.0.1:4001", "https://127.0.0.1:4000", "null", ""] {
            assert!(!with(Method::POST, origin) && !with(Method::GET, origin), "{origin}");
        }
        assert!(!admits(Method::POST, &[(header::HOST, "127.0.0.1:4000")]), "who changes something says who it is");
    }
}
