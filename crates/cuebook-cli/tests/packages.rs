//! `cuebook add`, `sync`, `update` and `remove`: what comes from elsewhere, and what the lockfile pins.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, though the lint sees only functions")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;
use support::Project;

/// A project beside the sources of its packages.
struct Setup {
    project: Project,
}

impl Setup {
    fn new() -> Setup {
        let setup = Setup { project: Project::new() };
        setup.pack("pack", "courtesy", "1.0.0", "Sorry, {{ customer }}.\n");
        setup.source(
            "skill/SKILL.md",
            "---\nname: review\ndescription: Reviews code\n---\nLook at {{ it }}.\n",
        );
        setup.source("skill/scripts/look.sh", "echo look\n");
        setup
    }

    fn source(&self, path: &str, text: &str) {
        self.project.write(&format!("../sources/{path}"), text);
    }

    fn pack(&self, folder: &str, id: &str, version: &str, text: &str) {
        let manifest =
            format!("{{\"pack_id\": \"{id}\", \"version\": \"{version}\", \"prompts\": [\"apology\"]}}");
        self.source(&format!("{folder}/pack.json"), &manifest);
        self.source(&format!("{folder}/prompts/apology/template.md"), text);
    }

    fn git(&self, folder: &str, args: &[&str]) {
        let who =
            ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
        let folder = self.project.path().join("../sources").join(folder);
        let allow = ["-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"];
        let done = self.project.command("git", &folder).args(who).args(allow).args(args).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Makes the folder of sources a repository.
    fn commit(&self) {
        if !self.project.path().join("../sources/.git").exists() {
            self.git("", &["init", "-q"]);
        }
        self.git("", &["add", "."]);
        self.git("", &["commit", "-q", "-m", "A step"]);
    }

    fn url(&self, rest: &str) -> String {
        let folder = self.project.path().join("../sources").canonicalize().unwrap();
        format!("git+file://{}{rest}", folder.display())
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        let output = command.args(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn done(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out + &err
    }

    fn json(&self, args: &[&str]) -> Json {
        let (code, out, err) = self.run(&[args, &["--json"]].concat());
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// A command that fails with a code, and says these words.
    fn fails(&self, args: &[&str], error: &str, words: &str) {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 1, "{args:?}: {out}{err}");
        assert!(err.contains(error) && err.contains(words), "{args:?}: {err}");
        assert!(err.contains("help: "), "{args:?}: {err}");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project.path().join(path)).unwrap()
    }

    fn exists(&self, path: &str) -> bool {
        self.project.path().join(path).exists()
    }
}

#[test]
fn a_folder_is_added_restored_updated_and_removed() {
    let setup = Setup::new();
    for (source, name, folder) in [
        ("../sources/pack", "courtesy", "user_data/packs/courtesy"),
        ("../sources/skill", "review", "skills/review"),
    ] {
        let added = setup.json(&["add", source]);
        assert_eq!((added["name"].as_str(), added["source"].as_str()), (Some(name), Some(source)));
        assert_eq!(added["needs_approval"], false);
        assert!(setup.read("cuebook.lock").contains(&format!("name = \"{name}\"")));
        setup.done(&["sync", "--frozen"]);
        fs::remove_dir_all(setup.project.path().join(folder)).unwrap();
        setup.fails(&["sync", "--frozen"], "CB242", "is not installed");
        assert_eq!(setup.json(&["sync", "--dry-run"])["packages"][0]["status"], "missing");
        setup.done(&["sync"]);
        setup.done(&["sync", "--frozen"]);
        setup.fails(&["add", source], "CB206", "is already there");
        assert!(setup.done(&["update", name]).contains("up to date"));
        setup.done(&["remove", name, "--yes"]);
        assert!(!setup.exists(folder) && !setup.read("cuebook.lock").contains(name));
        setup.fails(&["remove", name, "--yes"], "CB244", "has no package");
    }
    setup.done(&["sync", "--frozen"]);
}

#[test]
fn an_added_prompt_and_skill_are_used() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/pack"]);
    setup.done(&["add", "../sources/skill"]);
    assert_eq!(setup.run(&["render", "apology", "--var", "customer=Ada"]).1, "Sorry, Ada.");
    // The text of a skill is literal.
    assert_eq!(setup.run(&["render", "review"]).1.trim_end(), "Look at {{ it }}.");
}

#[test]
fn changed_files_are_replaced_only_with_a_yes() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/skill"]);
    let own = "---\nname: review\ndescription: Mine\n---\n";
    setup.project.write("skills/review/SKILL.md", own);
    setup.project.write("skills/review/notes.md", "mine");
    fs::remove_file(setup.project.path().join("skills/review/scripts/look.sh")).unwrap();
    let (code, _, err) = setup.run(&["sync", "--frozen"]);
    assert_eq!(code, 1);
    for words in
        ["SKILL.md: the file was changed", "notes.md: the file is not in", "look.sh: the file is missing"]
    {
        assert!(err.contains(words), "{err}");
    }
    setup.fails(&["sync"], "CB208", "SKILL.md");
    assert_eq!(setup.read("skills/review/SKILL.md"), own);
    setup.done(&["sync", "--yes"]);
    assert!(!setup.exists("skills/review/notes.md"));
    setup.done(&["sync", "--frozen"]);
}

#[test]
fn a_source_that_changed_is_not_restored() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/pack"]);
    setup.pack("pack", "courtesy", "1.1.0", "Very sorry.\n");
    fs::remove_dir_all(setup.project.path().join("user_data/packs/courtesy")).unwrap();
    setup.fails(&["sync"], "CB242", "now has other files");
    assert!(!setup.exists("user_data/packs/courtesy"));
    setup.done(&["update", "--yes"]);
    setup.done(&["sync", "--frozen"]);
    setup.pack("pack", "other", "1.0.0", "Hi.\n");
    setup.fails(&["update", "--yes"], "CB242", "now holds the pack `other`");
}

#[test]
fn an_update_shows_the_effect_before_it_asks() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/pack"]);
    setup.pack("pack", "courtesy", "2.0.0", "Sorry, {{ customer }}, for {{ mishap }}.\n");
    let before = setup.read("cuebook.lock");
    let (code, _, err) = setup.run(&["update"]);
    assert_eq!(code, 1);
    let effect = err.find("+ mishap").unwrap_or_else(|| panic!("{err}"));
    let text = err.find("for {{ mishap }}").or(err.find("+ Sorry, , for")).unwrap_or_else(|| panic!("{err}"));
    assert!(effect < text && text < err.find("CB208").unwrap(), "{err}");
    assert_eq!(setup.read("cuebook.lock"), before);
    let shown = setup.json(&["update", "courtesy", "--dry-run"]);
    let row = &shown["packages"][0];
    assert_eq!(
        (row["status"].as_str(), row["before"]["version"].as_str()),
        (Some("available"), Some("1.0.0"))
    );
    assert_eq!(row["prompts"][0]["changes"][0]["name"], "mishap");
    assert_eq!(row["files"]["changed"], serde_json::json!(["pack.json", "prompts/apology/template.md"]));
    assert_eq!(setup.read("cuebook.lock"), before);
    assert_eq!(setup.json(&["update", "--yes"])["packages"][0]["status"], "updated");
    assert!(setup.read("cuebook.lock").contains("version = \"2.0.0\""));
    setup.done(&["sync", "--frozen"]);
}

#[test]
fn code_still_needs_an_approval_after_every_change() {
    let setup = Setup::new();
    setup.source("pack/prompts/apology/prompt.py", "def pre_render(context):\n    return {}\n");
    assert!(setup.done(&["add", "../sources/pack"]).contains("cuebook pack approve courtesy"));
    setup.fails(&["render", "apology", "--var", "customer=Ada"], "CB207", "approve");
    setup.done(&["pack", "approve", "courtesy", "--yes"]);
    setup.source(
        "pack/prompts/apology/prompt.py",
        "def pre_render(context):\n    return {'customer': 'Eve'}\n",
    );
    let updated = setup.json(&["update", "--yes"]);
    assert_eq!(updated["packages"][0]["needs_approval"], true);
    setup.fails(&["render", "apology", "--var", "customer=Ada"], "CB207", "approve");
}

#[test]
fn replacements_are_only_proposed_and_need_consent_to_change() {
    let setup = Setup::new();
    setup.project.write("prompts/sorry/template.md", "Mine.\n");
    let manifest = |version: &str| {
        format!(
            "{{\"pack_id\": \"courtesy\", \"version\": \"{version}\", \"prompts\": [\"apology\"], \
             \"replaces\": {{\"prompts\": {{\"sorry\": \"apology\"}}}}}}"
        )
    };
    setup.source("pack/pack.json", &manifest("1.0.0"));
    let added = setup.done(&["add", "../sources/pack"]);
    assert!(added.contains("not replaced: prompt `sorry`"), "{added}");
    assert_eq!(setup.run(&["render", "sorry"]).1, "Mine.");
    // A user who accepts it by installing the pack is asked again by an update.
    setup.done(&["pack", "install", "../sources/pack", "--upgrade", "--yes"]);
    setup.source("pack/prompts/apology/template.md", "Theirs.\n");
    let (code, _, err) = setup.run(&["update"]);
    assert!(code == 1 && err.contains("it changes `apology`, which replaces the prompt `sorry`"), "{err}");
    setup.done(&["update", "--yes"]);
    assert_eq!(setup.run(&["render", "sorry"]).1, "Theirs.");
    // A version of the lockfile is no consent either.
    let locked = setup.read("cuebook.lock");
    setup.source("pack/prompts/apology/template.md", "Other.\n");
    setup.done(&["update", "--yes"]);
    setup.source("pack/prompts/apology/template.md", "Theirs.\n");
    setup.project.write("cuebook.lock", locked);
    setup.fails(&["sync", "--yes"], "CB526", "changes the replacement");
}

#[test]
fn two_packages_of_one_name_are_an_error() {
    let setup = Setup::new();
    setup.pack("twin", "courtesy", "9.0.0", "Twin.\n");
    setup.source("twin-skill/SKILL.md", "---\nname: review\ndescription: Another\n---\nTwin.\n");
    setup.done(&["add", "../sources/pack"]);
    setup.fails(&["add", "../sources/twin"], "CB206", "from ../sources/pack");
    setup.project.write("skills/review/SKILL.md", "---\nname: review\ndescription: Mine\n---\nMine.\n");
    setup.fails(&["add", "../sources/twin-skill"], "CB206", "another skill `review`");
    assert!(setup.read("skills/review/SKILL.md").contains("Mine."));
    // A pack that was installed without the lockfile differs; an equal one is taken over.
    setup.done(&["remove", "courtesy", "--yes"]);
    setup.done(&["pack", "install", "../sources/pack"]);
    setup.fails(&["sync", "--frozen"], "CB242", "is not in cuebook.lock");
    setup.fails(&["add", "../sources/twin"], "CB206", "another pack `courtesy`");
    setup.done(&["add", "../sources/pack"]);
    setup.done(&["sync", "--frozen"]);
    setup.fails(&["add", "user_data/packs/courtesy"], "CB239", "is where added packages go");
}

#[test]
fn a_git_repository_is_pinned_to_its_commit() {
    let setup = Setup::new();
    setup.commit();
    setup.git("", &["tag", "-a", "v1", "-m", "First"]);
    let pinned = setup.json(&["add", &setup.url("@v1#pack")]);
    let commit = pinned["commit"].as_str().unwrap().to_owned();
    assert_eq!(commit.len(), 40);
    setup.done(&["add", &setup.url("@main#skill")]);
    // A tag that moves changes nothing until the user updates.
    setup.pack("pack", "courtesy", "2.0.0", "Moved.\n");
    setup.source("skill/SKILL.md", "---\nname: review\ndescription: Reviews all code\n---\nLook.\n");
    setup.commit();
    setup.git("", &["tag", "-f", "v1"]);
    for folder in ["user_data/packs/courtesy", "skills/review"] {
        fs::remove_dir_all(setup.project.path().join(folder)).unwrap();
    }
    setup.done(&["sync"]);
    setup.done(&["sync", "--frozen"]);
    assert!(setup.read("user_data/packs/courtesy/pack.json").contains("1.0.0"));
    let updated = setup.done(&["update", "--yes"]);
    assert!(updated.contains("description") && updated.contains("Moved."), "{updated}");
    assert!(!setup.read("cuebook.lock").contains(&commit));
    // Back to the first commit, by its hash.
    setup.done(&["update", "courtesy", "--source", &setup.url(&format!("@{commit}#pack")), "--yes"]);
    assert!(setup.read("user_data/packs/courtesy/pack.json").contains("1.0.0"));
    assert!(setup.done(&["update", "courtesy"]).contains("up to date"));
}

#[test]
fn a_hostile_repository_has_no_effect() {
    let setup = Setup::new();
    setup.source(".gitattributes", "*.md filter=evil export-subst\n* text eol=crlf\n");
    let marker = setup.project.path().join("pwned");
    setup.commit();
    // Hooks and settings of the source, and of the project around.
    let evil = format!("#!/bin/sh\ntouch {}\n", marker.display());
    for hook in ["post-checkout", "post-merge", "pre-auto-gc", "reference-transaction", "post-update"] {
        let path = setup.project.path().join("../sources/.git/hooks").join(hook);
        fs::write(&path, &evil).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    setup.git("", &["config", "uploadpack.packObjectsHook", &format!("touch {}; false", marker.display())]);
    setup.project.write(".git/HEAD", "ref: refs/heads/main\n");
    let config = format!(
        "[core]\n\tfsmonitor = touch {0}\n\thooksPath = ../sources/.git/hooks\n[url \"ext::touch {0}\"]\n\tinsteadOf = file://\n",
        marker.display()
    );
    setup.project.write(".git/config", config);
    for folder in ["objects", "refs"] {
        fs::create_dir_all(setup.project.path().join(".git").join(folder)).unwrap();
    }
    setup.done(&["add", &setup.url("#pack")]);
    assert_eq!(
        setup.read("user_data/packs/courtesy/prompts/apology/template.md"),
        "Sorry, {{ customer }}.\n"
    );
    assert!(!marker.exists());
    // Links and submodules.
    std::os::unix::fs::symlink("/etc/hostname", setup.project.path().join("../sources/skill/link")).unwrap();
    setup.commit();
    setup.fails(&["add", &setup.url("#skill")], "CB204", "is a symbolic link");
    fs::remove_file(setup.project.path().join("../sources/skill/link")).unwrap();
    fs::create_dir_all(setup.project.path().join("../other")).unwrap();
    setup.git("../other", &["init", "-q"]);
    setup.git("../other", &["commit", "-q", "--allow-empty", "-m", "Other"]);
    setup.git("", &["submodule", "--quiet", "add", "../other", "skill/module"]);
    setup.commit();
    setup.fails(&["add", &setup.url("#skill")], "CB204", "is a submodule");
    assert!(!setup.exists("skills/review") && !marker.exists());
}

#[test]
fn wrong_sources_leave_nothing_behind() {
    let setup = Setup::new();
    setup.commit();
    for (source, code, words) in [
        ("../sources/pac".to_owned(), "CB110", "did you mean `"),
        ("../sources".into(), "CB201", "has no pack.json"),
        (setup.url(""), "CB239", "#pack, #skill"),
        (setup.url("#pack/prompts"), "CB239", "no package in `pack/prompts`"),
        (setup.url("@mian#pack"), "CB240", "did you mean `main`?"),
        (setup.url("@0123456789012345678901234567890123456789#pack"), "CB240", "0123456789"),
        (setup.url("@0123456#pack"), "CB240", "all 40 digits"),
        ("git+file:///nowhere/at/all".into(), "CB240", "does not appear to be a git repository"),
        ("oci://example.com/Team/prompts:1".into(), "CB239", "name of a repository"),
        ("https://example.com/a.zip".into(), "CB239", "download the archive"),
    ] {
        setup.fails(&["add", &source], code, words);
    }
    setup.source("bad/SKILL.md", "no front matter\n");
    setup.fails(&["add", "../sources/bad"], "CB318", "../sources/bad/SKILL.md");
    setup.source("named/SKILL.md", "---\nname: ../../evil\ndescription: Evil\n---\n");
    setup.fails(&["add", "../sources/named"], "CB239", "../../evil");
    fs::write(setup.project.path().join("../sources/skill/huge"), vec![b'x'; (16 << 20) + 1]).unwrap();
    setup.fails(&["add", "../sources/skill"], "CB204", "larger than");
    assert!(!setup.exists("cuebook.lock") && !setup.exists("skills"));
    let left: Vec<_> =
        fs::read_dir(setup.project.path().join("user_data/packs")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn archives_are_added_like_folders() {
    let setup = Setup::new();
    let tar = setup.project.path().join("../skill.tar.gz");
    let gzip = flate2::write::GzEncoder::new(fs::File::create(&tar).unwrap(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(gzip);
    builder.append_dir_all("review-1.0", setup.project.path().join("../sources/skill")).unwrap();
    builder.into_inner().unwrap().finish().unwrap();
    setup.done(&["add", "../skill.tar.gz"]);
    assert_eq!(setup.read("skills/review/scripts/look.sh"), "echo look\n");
    fs::remove_dir_all(setup.project.path().join("skills")).unwrap();
    setup.done(&["sync"]);
    setup.done(&["sync", "--frozen"]);
    // A path that leads out of the archive.
    let gzip = flate2::write::GzEncoder::new(fs::File::create(&tar).unwrap(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..9].copy_from_slice(b"../escape");
    header.set_size(1);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, &b"x"[..]).unwrap();
    builder.into_inner().unwrap().finish().unwrap();
    setup.fails(&["update", "--yes"], "CB204", "leads out of the pack");
    assert!(!Path::new(&setup.project.path().join("../escape")).exists());
    setup.done(&["sync", "--frozen"]);
}

#[test]
fn a_lock_that_was_edited_by_hand_is_refused() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/skill"]);
    let text = setup.read("cuebook.lock");
    let first = text.find("\"SKILL.md\" = \"").unwrap() + "\"SKILL.md\" = \"".len();
    let mut edited = text.clone();
    edited.replace_range(first..=first, if &text[first..=first] == "0" { "1" } else { "0" });
    for (text, words) in [
        (edited, "edited by hand"),
        (text.replace("source =", "sorce ="), "did you mean `source`?"),
        (text.replace("\"review\"", "\"../../etc\""), "cannot be the name of a package"),
        ("version = 1\n[[package]\n".to_owned(), "cuebook.lock:2"),
    ] {
        setup.project.write("cuebook.lock", text);
        for args in [&["sync"][..], &["sync", "--frozen"], &["update"], &["add", "../sources/pack"]] {
            setup.fails(args, "CB241", words);
        }
    }
    assert!(!setup.exists("user_data/packs/courtesy"));
}

#[test]
fn a_new_key_needs_its_fingerprint_and_a_changed_key_fails() {
    let setup = Setup::new();
    let key = setup.json(&["keys", "generate", "--owner", "Ada"])["fingerprint"].as_str().unwrap().to_owned();
    setup.done(&["pack", "sign", "../sources/pack"]);
    // The publisher trusts their own key; another user does not.
    fs::remove_dir_all(setup.project.home().join(".ai/config/keys/trusted")).unwrap();
    setup.fails(&["add", "../sources/pack"], "CB243", &format!("--key {key}"));
    setup.fails(
        &["add", "../sources/pack", "--key", "0123456789abcdef"],
        "CB243",
        "not with 0123456789abcdef",
    );
    setup.done(&["add", "../sources/pack", "--key", &key]);
    assert!(setup.read("cuebook.lock").contains(&format!("key = \"{key}\"")));
    assert!(!setup.done(&["trust", "list"]).contains(&key), "the key counts for this package only");
    setup.pack("pack", "courtesy", "2.0.0", "New.\n");
    setup.fails(&["update", "--yes"], "CB243", "does not fit the package");
    setup.done(&["keys", "generate", "--owner", "Eve", "--replace"]);
    setup.done(&["pack", "sign", "../sources/pack"]);
    setup.fails(&["update", "--yes"], "CB243", &format!("but its key was {key}"));
    assert!(setup.read("user_data/packs/courtesy/pack.json").contains("1.0.0"));
}

#[test]
fn a_link_in_the_project_does_not_lead_a_package_out() {
    let setup = Setup::new();
    fs::create_dir(setup.project.path().join("../outside")).unwrap();
    setup.project.link("skills", "../outside");
    let (code, _, err) = setup.run(&["add", "../sources/skill"]);
    assert!(code == 1 && err.contains("skills"), "{err}");
    assert!(fs::read_dir(setup.project.path().join("../outside")).unwrap().next().is_none());
    assert!(!setup.exists("cuebook.lock"));
}

#[test]
fn a_locked_pack_is_removed_from_both_or_not_at_all() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/pack"]);
    setup.fails(&["pack", "remove", "courtesy", "--yes"], "CB242", "cuebook remove courtesy");
    assert!(setup.exists("user_data/packs/courtesy"));
    setup.done(&["remove", "courtesy", "--yes"]);
    setup.done(&["pack", "install", "../sources/pack"]);
    setup.done(&["pack", "remove", "courtesy", "--yes"]);
    assert!(!setup.exists("user_data/packs/courtesy"));
}

#[test]
fn a_skill_that_is_not_locked_is_the_projects_own() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/skill"]);
    setup.project.write("skills/own/SKILL.md", "---\nname: own\ndescription: Ours\n---\nDo it.\n");
    setup.done(&["sync", "--frozen"]);
    fs::create_dir_all(setup.project.path().join("user_data/packs")).unwrap();
    setup.project.write("user_data/packs/own/pack.json", "{\"pack_id\": \"own\"}");
    setup.fails(&["sync", "--frozen"], "CB242", "the pack is not in cuebook.lock");
}

#[test]
fn check_and_render_warn_about_a_changed_package() {
    let setup = Setup::new();
    setup.done(&["add", "../sources/skill"]);
    assert!(!setup.done(&["check"]).contains("CB242"));
    setup.project.write("skills/review/notes.md", "mine");
    let found = setup.done(&["check"]);
    assert!(found.contains("the package differs from cuebook.lock: notes.md"), "{found}");
    let rendered = setup.done(&["render", "review"]);
    assert!(rendered.contains("warning[CB242]") && rendered.contains("Look at {{ it }}."), "{rendered}");
}

#[test]
fn files_that_are_no_longer_executable_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let setup = Setup::new();
    let script = setup.project.path().join("../sources/skill/scripts/look.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let added = setup.done(&["add", "../sources/skill"]);
    assert!(added.contains("not executable here: scripts/look.sh"), "{added}");
    let copy = fs::metadata(setup.project.path().join("skills/review/scripts/look.sh")).unwrap();
    assert_eq!(copy.permissions().mode() & 0o111, 0);
}

#[test]
fn a_signed_skill_is_refused_after_any_of_its_files_changed() {
    let setup = Setup::new();
    setup.project.write("skills/own/SKILL.md", "---\nname: own\ndescription: Ours\n---\nDo {{it}}.\n");
    setup.project.write("skills/own/scripts/do.sh", "echo do\n");
    setup.fails(&["verify", "skill", "own"], "CB220", "cuebook sign skill own");
    setup.done(&["keys", "generate", "--owner", "Ada"]);
    assert!(setup.done(&["sign", "skill", "own"]).contains("signed skills/own with"));
    assert!(setup.done(&["verify", "skill", "own"]).contains("verified, signed by"));
    setup.done(&["render", "own"]);
    setup.project.write("prompts/all.prompty", "---\nname: all\n---\n{% include 'prompt:own' %}");
    assert!(setup.done(&["render", "all"]).contains("Do {{it}}."));
    for (path, text) in [
        ("skills/own/scripts/do.sh", "rm -r ~\n"),
        ("skills/own/more.md", "More.\n"),
        ("skills/own/SKILL.md", "---\nname: own\ndescription: Ours\n---\nDo it all.\n"),
    ] {
        setup.project.write(path, text);
        for command in [&["verify", "skill", "own"][..], &["render", "own"], &["render", "all"]] {
            setup.fails(command, "CB221", "was changed after it was signed");
        }
        let (code, out, _) = setup.run(&["check"]);
        assert!(code == 1 && out.contains("CB221"), "{path}: {out}");
        setup.done(&["sign", "skill", "*"]);
        setup.done(&["verify", "skill", "own"]);
    }
    setup.fails(&["sign", "skill", "onw"], "CB116", "no skill has the name `onw`");
}

/// A registry on this machine that gives a token to everybody, with one package.
struct Registry {
    address: String,
    manifest: Arc<Mutex<Vec<u8>>>,
    layer: Arc<Mutex<Vec<u8>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn start(layer: Vec<u8>) -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let registry = Registry {
            address: address.clone(),
            manifest: Arc::default(),
            layer: Arc::new(Mutex::new(layer)),
            asked: Arc::default(),
        };
        registry.publish();
        let (manifest, layer, asked) =
            (registry.manifest.clone(), registry.layer.clone(), registry.asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let has_token = head.to_lowercase().contains("authorization: bearer tok-1");
                asked.lock().unwrap().push(path.clone());
                let (status, extra, body) = if path.starts_with("/token?") {
                    ("200 OK", String::new(), b"{\"token\": \"tok-1\"}".to_vec())
                } else if !has_token {
                    let realm = format!(
                        "WWW-Authenticate: Bearer realm=\"http://{address}/token\",service=\"r\"\r\n"
                    );
                    ("401 Unauthorized", realm, b"{}".to_vec())
                } else if path.starts_with("/v2/team/review/manifests/") {
                    ("200 OK", String::new(), manifest.lock().unwrap().clone())
                } else if path.starts_with("/v2/team/review/blobs/") {
                    ("200 OK", String::new(), layer.lock().unwrap().clone())
                } else {
                    ("404 Not Found", String::new(), b"{}".to_vec())
                };
                let mut stream = stream;
                let head = format!(
                    "HTTP/1.1 {status}\r\n{extra}Content-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        registry
    }

    /// Makes a manifest for the layer.
    fn publish(&self) {
        let layer = self.layer.lock().unwrap();
        let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
        let digest = format!("sha256:{}", sha256(&layer));
        let manifest = serde_json::json!({
            "schemaVersion": 2, "layers": [{"mediaType": kind, "digest": digest, "size": layer.len()}],
        });
        *self.manifest.lock().unwrap() = manifest.to_string().into_bytes();
    }

    fn source(&self, rest: &str) -> String {
        format!("oci://{}/team/review{rest}", self.address)
    }
}

fn sha256(bytes: &[u8]) -> String {
    cuebook::sha256::hex(&cuebook::sha256::Sha256::digest(bytes))
}

fn archive(setup: &Setup, folder: &str) -> Vec<u8> {
    let sources = setup.project.path().join("../sources");
    let done = setup.project.command("tar", &sources).args(["czf", "layer.tar.gz", folder]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::read(sources.join("layer.tar.gz")).unwrap()
}

#[test]
fn a_package_of_a_registry_is_pinned_to_its_digest() {
    let setup = Setup::new();
    let registry = Registry::start(archive(&setup, "skill"));
    let source = registry.source(":1.0");
    let added = setup.json(&["add", &source]);
    let digest = sha256(&registry.manifest.lock().unwrap());
    assert_eq!((added["name"].as_str(), added["source"].as_str()), (Some("review"), Some(source.as_str())));
    assert_eq!(added["commit"].as_str(), Some(digest.as_str()));
    let asked = registry.asked.lock().unwrap().clone();
    assert_eq!(asked[0], "/v2/team/review/manifests/1.0");
    assert!(asked[1].contains("scope=repository") && asked[1].contains("service=r"), "{asked:?}");
    setup.done(&["sync", "--frozen"]);
    fs::remove_dir_all(setup.project.path().join("skills/review")).unwrap();
    setup.done(&["sync"]);
    let last =
        registry.asked.lock().unwrap().iter().rfind(|path| path.contains("manifests")).unwrap().clone();
    assert_eq!(last, format!("/v2/team/review/manifests/sha256:{digest}"));
    setup.done(&["sync", "--frozen"]);
    // The tag moves: an update takes the new version, and what was locked is gone.
    setup.source("skill/SKILL.md", "---\nname: review\ndescription: Reviews code\n---\nLook twice.\n");
    *registry.layer.lock().unwrap() = archive(&setup, "skill");
    registry.publish();
    fs::remove_dir_all(setup.project.path().join("skills/review")).unwrap();
    setup.fails(&["sync"], "CB240", "another manifest");
    setup.done(&["update", "review", "--yes"]);
    assert_eq!(setup.run(&["render", "review"]).1.trim_end(), "Look twice.");
}

#[test]
fn a_registry_that_sends_something_else_is_refused() {
    let setup = Setup::new();
    let registry = Registry::start(archive(&setup, "skill"));
    let pinned = registry.source(&format!("@sha256:{}", "0".repeat(64)));
    setup.fails(&["add", &pinned], "CB240", "another manifest");
    let good = registry.layer.lock().unwrap().clone();
    *registry.layer.lock().unwrap() = archive(&setup, "pack");
    setup.fails(&["add", &registry.source(":1.0")], "CB240", "digest and size");
    *registry.layer.lock().unwrap() = good;
    for (manifest, words) in [
        ("{\"manifests\": []}", "an index of several manifests"),
        ("{\"layers\": []}", "has 0 layers"),
        ("{\"layers\": [{\"mediaType\": \"text/plain\"}]}", "`text/plain`"),
        ("{\"layers\": [{\"mediaType\": \"a.tar+gzip\", \"digest\": \"../x\", \"size\": 1}]}", "no SHA-256"),
        ("nothing", "has 0 layers"),
    ] {
        *registry.manifest.lock().unwrap() = manifest.as_bytes().to_vec();
        setup.fails(&["add", &registry.source(":1.0")], "CB240", words);
    }
    let missing = format!("oci://{}/team/other:1", registry.address);
    setup.fails(&["add", &missing], "CB240", "404");
    assert!(!setup.exists("cuebook.lock") && !setup.exists("skills"));
}
