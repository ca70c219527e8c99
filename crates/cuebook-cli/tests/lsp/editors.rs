//! The settings of editors, as `cuebook help editors` shows them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::{skip, written};

const PAGE: &str = include_str!("../../topics/editors.md");
const FILE: &str = "prompts/p.prompty";

/// The blocks of a language on the page.
fn blocks(language: &str) -> Vec<&'static str> {
    let starts = PAGE
        .match_indices(&format!("\n```{language}\n"))
        .map(|(at, start)| at + start.len())
        .collect::<Vec<_>>();
    starts.into_iter().map(|start| PAGE[start..].split("\n```").next().unwrap()).collect()
}

/// What a program says of its version.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version of a program; as root on Debian it is installed.
fn installed(program: &str, packages: &str) -> Option<String> {
    version(program).or_else(|| {
        let install = format!("apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends {packages}");
        let quiet = Command::new("sh").args(["-c", &install]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success()).then(|| version(program))?
    })
}

/// What an editor prints that has a prompt with one mistake open.
fn said(program: &str, arguments: &[&str], settings: (&str, &str), driver: (&str, &str)) -> String {
    let folder = written(&[
        ("cuebook.toml", ""),
        (FILE, "---\nname: p\n---\nsystem:\n{{ \"x\"|uper }}\n"),
        settings,
        driver,
        ("home/empty", ""),
    ]);
    let programs = Path::new(env!("CARGO_BIN_EXE_cuebook")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(programs.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder.path())
        .env("PATH", path.unwrap())
        .env("HOME", folder.path().join("home"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_settings_of_neovim_show_a_finding() {
    let Some(version) = installed("nvim", "neovim") else { return skip::missing_peer("Neovim") };
    let number = |part: usize| -> u32 {
        let version = version.lines().next().unwrap_or_default().trim_start_matches("NVIM v");
        version.split(['.', '-']).nth(part).and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let [new, old] = blocks("lua")[..] else { panic!("the page has other blocks") };
    let settings = if (number(0), number(1)) >= (0, 11) { new } else { old };
    let driver = "vim.wait(120000, function() return #vim.diagnostic.get(0) > 0 end)\n\
                  for _, one in ipairs(vim.diagnostic.get(0)) do io.stdout:write(\"found: \" .. one.message .. \"\\n\") end\n\
                  vim.cmd(\"qall!\")\n";
    let arguments = ["--headless", "-u", "settings.lua", FILE, "-c", "luafile driver.lua"];
    let said = said("nvim", &arguments, ("settings.lua", settings), ("driver.lua", driver));
    assert_eq!(said.matches("found: unknown filter `uper`").count(), 1, "{said}");
}

#[test]
fn the_settings_of_emacs_show_a_finding() {
    if installed("emacs", "emacs-nox elpa-eglot elpa-markdown-mode").is_none() {
        return skip::missing_peer("Emacs");
    }
    let [settings] = blocks("elisp")[..] else { panic!("the page has other blocks") };
    let driver = format!(
        "(require 'package)\n(package-initialize)\n(unless (and (require 'eglot nil t) (require 'markdown-mode nil t)) (message \"missing\") (kill-emacs))\n\
         (load (expand-file-name \"settings.el\"))\n(find-file \"{FILE}\")\n(apply #'eglot (eglot--guess-contact))\n\
         (with-timeout (120) (while (not (flymake-diagnostics)) (flymake-start) (accept-process-output nil 0.1)))\n\
         (dolist (one (flymake-diagnostics)) (message \"found: %s\" (flymake-diagnostic-text one)))\n"
    );
    let said =
        said("emacs", &["--batch", "-l", "driver.el"], ("settings.el", settings), ("driver.el", &driver));
    if said.trim() == "missing" {
        return skip::missing_peer("eglot and markdown-mode");
    }
    assert_eq!(said.matches("unknown filter `uper`").count(), 1, "{said}");
}

#[test]
fn the_settings_of_helix_and_zed_start_the_server() {
    let [helix] = blocks("toml")[..] else { panic!("the page has other blocks") };
    let helix: toml::Table = toml::from_str(helix).unwrap();
    let helix = serde_json::to_value(helix).unwrap();
    let server = &helix["language-server"]["cuebook"];
    assert_eq!((&server["command"], &server["args"]), (&json!("cuebook"), &json!(["lsp"])));
    for language in helix["language"].as_array().unwrap() {
        assert_eq!(language["language-servers"], json!(["cuebook"]), "{language}");
    }
    let [zed] = blocks("json")[..] else { panic!("the page has other blocks") };
    let zed: Json = serde_json::from_str(zed).unwrap();
    let name = zed["languages"]["Markdown"]["language_servers"][0].as_str().unwrap();
    let program = &zed["lsp"][name]["binary"];
    assert_eq!((&program["path"], &program["arguments"]), (&json!("cuebook"), &json!(["lsp"])));
}
