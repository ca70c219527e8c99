//! Keys: a public one that checks signatures, and the private one of a user that makes them.
//!
//! A private key lies in the user's space, in a folder and a file that only they can open. It is never printed, not even
//! by `Debug`, and an existing file is never overwritten unless the caller says so.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::ed25519::{Signing, Verifying};
use crate::limits::KEY_BYTES;
use crate::sha256::{Sha256, hex};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::items::{Spaces, user_name};

/// The folder of the signing keys below `.ai`.
const FOLDER: &str = "config/keys/signing";

/// A key that signatures are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    key: Verifying,
    pem: String,
    fingerprint: String,
}

impl PublicKey {
    /// Reads a key in PEM. A weak one, for which anybody could make signatures, is refused.
    pub fn from_pem(pem: &str) -> Result<PublicKey> {
        let key = Verifying::from_pem(pem.trim())?.ok_or_else(|| {
            bad("not a public Ed25519 key in PEM").hint(
                Hint::command_line(
                    "a key begins with `-----BEGIN PUBLIC KEY-----`: cuebook keys export prints one",
                )
                .for_programs("a key begins with `-----BEGIN PUBLIC KEY-----`")
                .with_command("cuebook keys export"),
            )
        });
        PublicKey::of(key.map_err(integrity)?)
    }

    fn of(key: Verifying) -> Result<PublicKey> {
        if key.is_weak() {
            let hint = "ask its owner for another key";
            return Err(integrity(bad("this key is weak: anyone can forge its signatures").hint(hint)));
        }
        let pem = key.to_pem().ok_or_else(|| integrity(bad("cannot write this key as PEM")))?;
        let mut fingerprint = hex(&Sha256::digest(pem.as_bytes()));
        fingerprint.truncate(16);
        Ok(PublicKey { key, pem, fingerprint })
    }

    /// The key in PEM, with a newline at the end.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The first 16 hexadecimal digits of the SHA-256 of the PEM.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether this key made a signature of these bytes.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify(message, signature)
    }
}

/// A key that signs.
#[derive(Clone)]
pub struct SigningKey {
    key: Signing,
    public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.fingerprint)
    }
}

impl SigningKey {
    /// A new key from the system's random source.
    pub fn generate() -> Result<SigningKey> {
        let mut seed = [0; 32];
        crate::variables::random_bytes(&mut seed).map_err(|error| {
            integrity(bad(format!("the system provides no random bytes: {error}")).hint("try again later"))
        })?;
        SigningKey::from_seed(&seed)
    }

    /// The key of a seed, for tests and for those who keep their seeds elsewhere.
    pub fn from_seed(seed: &[u8; 32]) -> Result<SigningKey> {
        let key = Signing::from_seed(seed)?;
        let public = PublicKey::of(key.verifying())?;
        Ok(SigningKey { key, public })
    }

    /// Reads a private key in PEM (PKCS#8).
    pub fn from_pem(pem: &str) -> Result<SigningKey> {
        let key = Signing::from_pem(pem.trim())?.ok_or_else(|| {
            // What is wrong with it could hold a part of it.
            let hint = "a key begins with `-----BEGIN PRIVATE KEY-----` and has no password";
            integrity(bad("not a private Ed25519 key in PEM").hint(hint))
        })?;
        let public = PublicKey::of(key.verifying())?;
        Ok(SigningKey { key, public })
    }

    /// The signing key of the user of these spaces.
    pub fn load(spaces: &Spaces) -> Result<SigningKey> {
        let (path, name) = private_file(spaces)?;
        let found = files::look(&path).map_err(|error| files::io_error(&name, &error))?;
        let Some(metadata) = found else {
            let hint = Hint::run("create one", "cuebook keys generate");
            return Err(integrity(bad("No signing key found").file(name).hint(hint)));
        };
        if is_open_to_others(&metadata) {
            let message = "other users can read this private key, so they may have copied it";
            let hint = Hint::from(format!("chmod 600 {}", path.display()))
                .or(Hint::run("or create a new one", "cuebook keys generate --replace"));
            return Err(integrity(bad(message).file(name).hint(hint)));
        }
        let source = files::read_text(&path, &name, KEY_BYTES)?;
        SigningKey::from_pem(source.text()).map_err(|error| {
            let diagnostic = error.diagnostic().clone().file(name);
            integrity(diagnostic)
        })
    }

    /// Writes the key into the user's space. A key that is there stays, unless it is to be replaced.
    pub fn save(&self, spaces: &Spaces, replace: bool) -> Result<()> {
        let (path, name) = private_file(spaces)?;
        let found = path.symlink_metadata().is_ok();
        if found && !replace {
            let hint = Hint::command_line("keep it, or pass --replace")
                .for_programs("keep it")
                .or("its signatures stay valid as long as you trust it");
            return Err(integrity(bad("a signing key already exists").file(name).hint(hint)));
        }
        let written = self.key.with_pem(|pem| write_private(&path, pem));
        let written = written.ok_or_else(|| integrity(bad("cannot write the key as PEM")))?;
        written.map_err(|error| files::write_error(&name, &error))?;
        let public = path.with_file_name("public_key.pem");
        files::write_atomic(&public, &name.replace("private", "public"), self.public.pem.as_bytes())
    }

    /// Its public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The fingerprint of its public half.
    pub fn fingerprint(&self) -> &str {
        &self.public.fingerprint
    }

    /// The signature of some bytes.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message)
    }
}

/// The private key's file, and its name for people.
fn private_file(spaces: &Spaces) -> Result<(PathBuf, String)> {
    let Some(folder) = spaces.user_folder() else {
        let hint = "set USER_SPACE to the folder that holds your .ai";
        return Err(integrity(bad("there is no user space, so there is no signing key").hint(hint)));
    };
    let file = format!("{FOLDER}/private_key.pem");
    Ok((folder.join(&file), format!("{}/{file}", user_name(&folder))))
}

/// Writes a file that only its owner can open, in a folder that only they can open.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let folder = path.parent().unwrap_or(Path::new("."));
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only on Unix it gets a mode"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let temporary = files::temporary_beside(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // That the leftover cannot be removed either would hide the reason.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    files::sync_folder(folder)
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

fn bad(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::BadKey, message)
}

fn integrity(diagnostic: Diagnostic) -> Error {
    Error::new(ErrorKind::Integrity, diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded() -> SigningKey {
        let mut seed = [0; 32];
        for (index, byte) in seed.iter_mut().enumerate() {
            *byte = u8::try_from(index).unwrap();
        }
        SigningKey::from_seed(&seed).unwrap()
    }

    #[test]
    fn the_fingerprint_is_that_of_the_public_pem() {
        let key = seeded();
        assert_eq!(key.fingerprint(), "f0ff50dacf109dea");
        assert_eq!(PublicKey::from_pem(key.public().pem()).unwrap(), *key.public());
        assert_eq!(format!("{key:?}"), "SigningKey(f0ff50dacf109dea)");
    }

    #[test]
    fn a_weak_key_is_refused() {
        use base64::Engine as _;
        // The identity: its order is 1, so every signature with it can be made by everybody.
        let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00, 0x01];
        der.resize(44, 0);
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
        let error = PublicKey::from_pem(&pem).unwrap_err();
        assert!(error.diagnostic().message.contains("weak"), "{error}");
    }

    #[test]
    fn a_key_is_saved_for_its_owner_alone_and_never_written_over() {
        let user = tempfile::tempdir().unwrap();
        let spaces = Spaces::new(Path::new("/nowhere"), Some(user.path()));
        assert_eq!(SigningKey::load(&spaces).unwrap_err().code(), Code::BadKey);
        seeded().save(&spaces, false).unwrap();
        let folder = user.path().join(".ai").join(FOLDER);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder), mode(&folder.join("private_key.pem"))), (0o700, 0o600));
        }
        assert_eq!(SigningKey::load(&spaces).unwrap().fingerprint(), "f0ff50dacf109dea");
        let other = SigningKey::generate().unwrap();
        assert!(other.save(&spaces, false).unwrap_err().to_string().contains("already"));
        assert_eq!(SigningKey::load(&spaces).unwrap().fingerprint(), "f0ff50dacf109dea");
        other.save(&spaces, true).unwrap();
        assert_eq!(SigningKey::load(&spaces).unwrap().fingerprint(), other.fingerprint());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let user = tempfile::tempdir().unwrap();
        let spaces = Spaces::new(Path::new("/nowhere"), Some(user.path()));
        seeded().save(&spaces, false).unwrap();
        let file = user.path().join(".ai").join(FOLDER).join("private_key.pem");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = SigningKey::load(&spaces).unwrap_err();
        assert!(error.diagnostic().hint.as_deref().unwrap().starts_with("chmod 600 "), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n-----END PRIVATE KEY-----\n").unwrap();
        let error = SigningKey::load(&spaces).unwrap_err();
        assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    }
}
