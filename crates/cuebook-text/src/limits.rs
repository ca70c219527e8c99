//! The limits that several files share. A limit with one user stands beside it.

/// Bytes of the file of a prompt or an item. For prompts, `limits.file_size` changes it.
pub const FILE_BYTES: u64 = 4 << 20;
/// Bytes of a file of settings.
pub const SETTINGS_BYTES: u64 = 1 << 20;
/// Bytes of a file with a key or a signature.
pub const KEY_BYTES: u64 = 64 << 10;
/// Bytes of the headers of one HTTP message.
pub const HEAD_BYTES: usize = 64 << 10;
