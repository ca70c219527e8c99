//! Random bytes of the system.

/// Fills a buffer. `wasm32-unknown-unknown` has no source of random bytes: a program for it brings its own
/// [`NonceSource`](super::NonceSource).
///
/// # Errors
///
/// The words of a system that has none.
pub fn random_bytes(buffer: &mut [u8]) -> Result<(), String> {
    #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
    return getrandom::fill(buffer).map_err(|error| error.to_string());
    #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
    {
        let _ = buffer;
        Err("there is no source of them".to_owned())
    }
}
