//! The page in Chromium, driven by `crates/cuebook-serve/studio/test/studio.mjs`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuebook_mock::{Mock, Script};

use crate::server::Studio;
use crate::skip;

const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-serve/studio")
}

/// Whether a program runs.
fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Chromium; as root on Debian it is installed.
fn chromium() -> Option<&'static str> {
    let found = || ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| runs(name));
    found().or_else(|| {
        let install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium";
        let is_done =
            Command::new("sh").args(["-c", install]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        is_done.is_ok_and(|status| status.success()).then(found)?
    })
}

/// The packages that drive the browser, installed below the target folder.
fn packages() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("studio");
    std::fs::create_dir_all(&place).ok()?;
    std::fs::copy(folder().join("package.json"), place.join("package.json")).ok()?;
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"])
        .current_dir(&place)
        .stdout(Stdio::null())
        .status();
    npm.is_ok_and(|status| status.success()).then_some(place)
}

#[test]
fn every_task_works_in_a_browser() {
    if !runs("node") {
        return skip::missing_peer("the studio is tested with node");
    }
    let Some(chromium) = chromium() else { return skip::missing_peer("the studio is tested in chromium") };
    let Some(packages) = packages() else { return skip::missing_peer("the packages of the studio's test") };
    let mock = Mock::start(Script::new().text(HOSTILE).text("Hello again.")).unwrap();
    let hostile = format!(
        "Hello {{{{ name }}}} {{% if loud %}}!{{% endif %}} {HOSTILE}\n{{% include \"partials/tone.md\" %}}\n"
    );
    let studio = Studio::of(
        &[
            (
                "prompts/greeting/template.md",
                "Hello {{ name }}, ünïcode 🎉.\n{% include \"partials/tone.md\" %}\n",
            ),
            (
                "prompts/greeting/tests.md",
                "```yaml inputs\nname: Ada\n```\n\n## greets\n\n```text contains\nAda\n```\n",
            ),
            ("prompts/partials/tone.md", "Be kind.\n"),
            ("prompts/hostile/template.md", &hostile),
            (
                "prompts/letter.prompty",
                "---\nmodel: gpt-5\ninputs:\n  mood: {kind: string, enumValues: [calm, angry], default: calm}\n  past: {kind: thread}\n---\nsystem:\nBe {{ mood }}.\n{{ past }}\nuser:\nHello\n",
            ),
            (
                "prompts/guide.sections.md",
                "---\nname: Guide\n---\n# Task\nDo it.\n\n# Handbook\n```yaml section\nsummary: The rules.\nvisibility: summary\n```\nFollow the rules.\n",
            ),
            (
                "user_data/packs/pk/pack.json",
                r#"{"pack_id": "pk", "name": "Pk", "version": "1.0.0", "prompts": ["greeting"], "variable_providers": [{"file": "variables/g.py", "namespace": "g"}]}"#,
            ),
            ("user_data/packs/pk/prompts/greeting/template.md", "Theirs."),
            ("user_data/packs/pk/variables/g.py", "async def provide(context):\n    return {\"x\": 1}\n"),
        ],
        &[("OPENAI_BASE_URL", &mock.url()), ("OPENAI_API_KEY", "mock"), ("CUEBOOK_PROVIDER", "openai")],
    );
    let pictures = std::env::var_os("CUEBOOK_PICTURES").map(PathBuf::from);
    let output = Command::new("node")
        .arg(folder().join("test/studio.mjs"))
        .arg(&studio.url)
        .arg(studio.project.path())
        .env("STUDIO_PACKAGES", packages)
        .env("STUDIO_CHROMIUM", chromium)
        .env("STUDIO_PICTURES", pictures.unwrap_or_default())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("all tasks passed"), "{said}");
}
