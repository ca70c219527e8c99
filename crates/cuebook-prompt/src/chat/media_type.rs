//! What the name of a file says about its content, and bytes as base64.

/// What the ending of a URL or a file name says.
pub(super) fn guess(name: &str) -> Option<&'static str> {
    let path = name.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    let ending = file.rsplit_once('.')?.1.to_lowercase();
    TYPES.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
}

/// Endings, and what they stand for; the first ending of a type is the one that a made-up name gets.
pub(super) const TYPES: [(&str, &str); 31] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("aac", "audio/aac"),
    ("m4a", "audio/mp4"),
    ("aiff", "audio/aiff"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("csv", "text/csv"),
    ("xml", "text/xml"),
    ("json", "application/json"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
];

/// Bytes in base64, as `data:` URIs have them.
pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= three.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn a_media_type_is_read_from_an_ending() {
        assert_eq!(guess("https://example.com/a/photo.JPG?size=2#top"), Some("image/jpeg"));
        assert_eq!(guess("report.pdf"), Some("application/pdf"));
        assert_eq!(guess("https://example.com"), None);
    }

    #[test]
    fn base64_is_what_another_implementation_writes() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for length in 0..bytes.len() {
            let expected = base64::engine::general_purpose::STANDARD.encode(&bytes[..length]);
            assert_eq!(base64(&bytes[..length]), expected);
        }
    }
}
