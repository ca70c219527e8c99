//! A PostgreSQL server for the tests of this program: one that `CUEBOOK_TEST_POSTGRES` names, or one of our own in a temporary
//! folder, which ends with this program, however that ends. Where it is missing it is installed if that is possible.

#[path = "../../../skip.rs"]
mod skip;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub const PASSWORD: &str = "pass-of-the-tests";

pub struct Server {
    /// Its address, with a password.
    pub url: String,
    /// Its certificate, if it has one.
    pub certificate: Option<PathBuf>,
    /// Ends the server when this program ends, because then its input does.
    _keeper: Option<Child>,
}

/// The server, if there can be one. Its absence is said, and under `CI=true` it is a failure.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    match SERVER.get_or_init(start) {
        Ok(server) => Some(server),
        Err(why) => {
            skip::missing_peer(format_args!("PostgreSQL: {why} (CUEBOOK_TEST_POSTGRES can name a server)"));
            None
        }
    }
}

fn start() -> Result<Server, String> {
    if let Ok(url) = std::env::var("CUEBOOK_TEST_POSTGRES") {
        return Ok(Server { url, certificate: None, _keeper: None });
    }
    let programs = match find() {
        Some(programs) => programs,
        None => {
            install()?;
            find().ok_or("its programs are not where they should be")?
        }
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?.keep();
    let user = other_user()?;
    let done = run_server(&programs, &folder, &user);
    if done.is_err() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    done
}

/// The folder with `initdb` and `postgres`.
fn find() -> Option<PathBuf> {
    let has = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok();
    let versions = installed.into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = versions.chain(std::env::split_paths(&path)).filter(has).collect();
    found.sort();
    found.pop()
}

fn install() -> Result<(), String> {
    if !is_root() || Command::new("apt-get").arg("--version").output().is_err() {
        return Err("it is not installed, and cannot be installed from here".to_owned());
    }
    eprintln!("PostgreSQL: installing it, with `apt-get install -y postgresql`");
    let install = || {
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends", "postgresql"])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
    };
    let mut output = install().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let _ = Command::new("apt-get").arg("update").stdin(Stdio::null()).output();
        output = install().map_err(|error| error.to_string())?;
    }
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("it cannot be installed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// How to run something as a user who may run the server: it refuses to be run by root.
fn other_user() -> Result<Vec<String>, String> {
    if !is_root() {
        return Ok(Vec::new());
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let ways = [
        words(&["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]),
        words(&["runuser", "-u", "postgres", "--"]),
    ];
    let works = |way: &&Vec<String>| {
        let output = Command::new(&way[0]).args(&way[1..]).arg("true").output();
        output.is_ok_and(|output| output.status.success())
    };
    ways.iter().find(works).cloned().ok_or_else(|| "there is no way to run it as another user".to_owned())
}

fn run(user: &[String], program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut words = user.iter().map(String::as_str).chain([program]).chain(arguments.iter().copied());
    let output = Command::new(words.next().unwrap()).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn run_server(programs: &Path, folder: &Path, user: &[String]) -> Result<Server, String> {
    let data = folder.join("data");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let secret = folder.join("password");
    let mut file = std::fs::File::create(&secret).map_err(|error| error.to_string())?;
    writeln!(file, "{PASSWORD}").map_err(|error| error.to_string())?;
    drop(file);
    if !user.is_empty() {
        run(&[], "chown", &["-R", "postgres", &path(folder)])?;
    }
    let initdb = path(&programs.join("initdb"));
    let (pwfile, at) = (format!("--pwfile={}", path(&secret)), path(&data));
    run(
        user,
        &initdb,
        &["-D", &at, "-U", "cuebook", "--auth=scram-sha-256", &pwfile, "--encoding=UTF8", "--no-sync"],
    )?;
    let certificate = folder.join("server.crt");
    let key = folder.join("server.key");
    let made = run(
        user,
        "openssl",
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            &path(&key),
            "-out",
            &path(&certificate),
        ],
    );
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.map_err(|error| error.to_string())?.port();
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", path(folder)),
        "max_connections=300".to_owned(),
        // Clients are killed here, never the machine.
        "fsync=off".to_owned(),
        "deadlock_timeout=100ms".to_owned(),
    ];
    if made.is_ok() {
        settings.push("ssl=on".to_owned());
        settings.push(format!("ssl_cert_file={}", path(&certificate)));
        settings.push(format!("ssl_key_file={}", path(&key)));
    }
    // The input of the shell ends when this program does, in whatever way.
    let script = r#"folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$folder""#;
    let postgres = path(&programs.join("postgres"));
    let keeper = Command::new("sh")
        .args(["-c", script, "keeper", &path(folder)])
        .args(user)
        .args([postgres.as_str(), "-D", &at])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let url = format!("postgres://cuebook:{PASSWORD}@127.0.0.1:{port}/postgres");
    let began = Instant::now();
    loop {
        match postgres::Client::connect(
            &url.replace("/postgres", "/postgres?sslmode=disable"),
            postgres::NoTls,
        ) {
            Ok(_) => break,
            Err(_) if began.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(50))
            }
            Err(error) => {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("it does not start: {error}\n{log}"));
            }
        }
    }
    Ok(Server { url, certificate: made.is_ok().then_some(certificate), _keeper: Some(keeper) })
}
