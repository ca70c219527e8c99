//! The page and its parts, which `crates/cuebook-serve/studio/build.mjs` makes. They are stored compressed and sent as they are.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::response::Response;

const PAGE: &str = include_str!("../../studio/assets/index.html");
const SCRIPT: &[u8] = include_bytes!("../../studio/assets/app.js.gz");
/// The worker with the web socket of the page.
const LINE: &[u8] = include_bytes!("../../studio/assets/line.js.gz");
const STYLE: &[u8] = include_bytes!("../../studio/assets/app.css.gz");

/// The place in the page for the nonce of its styles.
const NONCE: &str = "@nonce@";

/// The page reaches this server and nothing else, and no page can frame it. The editor adds styles, which need the nonce.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

pub(super) fn is_known(path: &str) -> bool {
    matches!(path, "/" | "/app.js" | "/line.js" | "/app.css")
}

/// The part at a path that [`is_known`].
pub(super) fn response(path: &str) -> Response {
    let nonce = nonce();
    let (body, kind, is_compressed) = match path {
        "/app.js" => (Body::from(SCRIPT), "text/javascript; charset=utf-8", true),
        "/line.js" => (Body::from(LINE), "text/javascript; charset=utf-8", true),
        "/app.css" => (Body::from(STYLE), "text/css; charset=utf-8", true),
        _ => (Body::from(PAGE.replace(NONCE, &nonce)), "text/html; charset=utf-8", false),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        // With the one above, the page may share memory with its worker.
        (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// A new nonce for every page. Without random bytes the page has a fixed one, and the policy still refuses foreign scripts.
fn nonce() -> String {
    let mut bytes = [0; 16];
    let _ = getrandom::fill(&mut bytes);
    cuebook::sha256::hex(&bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_page_has_a_new_nonce_and_a_strict_policy() {
        let policies: Vec<String> = (0..2)
            .map(|_| response("/").headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned())
            .collect();
        assert_ne!(policies[0], policies[1]);
        assert!(policies.iter().all(|policy| policy.starts_with("default-src 'none'; script-src 'self';")));
        assert!(PAGE.contains(NONCE), "the page has a place for the nonce");
    }

    /// What `build.mjs` was given is recorded beside its results.
    #[test]
    fn the_parts_are_built_from_the_current_sources() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("studio");
        let mut files = vec!["build.mjs".to_owned(), "package.json".to_owned()];
        let mut sources: Vec<String> = std::fs::read_dir(folder.join("src"))
            .unwrap()
            .map(|entry| format!("src/{}", entry.unwrap().file_name().to_str().unwrap()))
            .collect();
        sources.sort();
        files.extend(sources);
        let mut hash = Sha256::new();
        for file in files {
            hash.update(format!("{file}\0"));
            hash.update(std::fs::read(folder.join(&file)).unwrap());
            hash.update("\0");
        }
        let now = cuebook::sha256::hex(&hash.finalize());
        let built = std::fs::read_to_string(folder.join("assets/sources.sha256")).unwrap();
        assert_eq!(
            built.trim(),
            now,
            "build the page: cd {} && npm install && npm run build",
            folder.display()
        );
    }

    #[test]
    fn the_parts_are_small_enough() {
        let all = SCRIPT.len() + LINE.len() + STYLE.len() + PAGE.len();
        assert!(all <= 350 * 1024, "{all} bytes");
    }
}
