//! Calls of `rye_execute`. The cases name items of a project that is not with them, so it is made here from what the cases say
//! of their items, signed with the key of the cases.

use serde_json::{Map, Value as Json, json};

use cuebook_run::{Ignore, Settings};

use crate::compare;
use crate::support::Fixture;

const SCRIPT: &str = "__executor_id__ = \"rye/core/runtimes/python/script\"\n";
const FUNCTION: &str = "__executor_id__ = \"rye/core/runtimes/python/function\"\n";
const INSTRUCTION: &str = "{{DIRECTIVE_INSTRUCTION_B}}";

fn python(executor: &str, code: &str) -> String {
    format!("__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n{executor}__category__ = \"demo\"\n{code}")
}

fn yaml(executor: &str, config: &str) -> String {
    format!(
        "version: \"1.0.0\"\ntool_type: bash\nexecutor_id: {executor}\ncategory: demo\nconfig: {config}\n"
    )
}

/// The project of the cases.
fn world(meta: &Json) -> Fixture {
    let world = Fixture::with(Settings::default());
    world.plain("cuebook.toml", &format!("[directives]\ninstruction = \"{INSTRUCTION}\"\n"));
    let ok = meta["fixtures"]["directive_ok"].as_str().unwrap();
    let named = |name: &str| ok.replace("greet", name).replace(&format!("{name}ing"), "greeting");
    world.signed("directives/demo/greet.md", ok);
    let users = ok.replace(">Greet {input", ">USER-SPACE {input");
    world.signed_in(&world.user(), "directives/demo/greet.md", &users);
    world.signed_in(
        &world.user(),
        "directives/demo/useronly.md",
        &users.replace("name=\"greet\" v", "name=\"useronly\" v"),
    );
    let without = named("noinputs");
    let (before, rest) = without.split_once("  <inputs>").unwrap();
    let after = rest.split_once("</inputs>\n").unwrap().1;
    world.signed("directives/demo/noinputs.md", &format!("{before}{after}"));
    world.plain(".ai/directives/demo/unsigned.md", &named("unsigned"));
    let changed = |name: &str, from: &str, to: &str| {
        let path = format!("directives/demo/{name}.md");
        world.signed(&path, &named(name));
        let file = world.project().join(".ai").join(&path);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{name}");
        std::fs::write(file, text.replacen(from, to, 1)).unwrap();
    };
    changed("tampered", "Tone of voice", "Tone of voices");
    changed("bodytamper", "in a {input:tone}", "in any {input:tone}");
    changed("preambletamper", "Greets a user", "Insults a user");
    world.signed("directives/demo/badsig.md", &named("badsig"));
    let file = world.project().join(".ai/directives/demo/badsig.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let signature = text.split(':').nth(6).unwrap().to_owned();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    std::fs::write(&file, text.replacen(&signature, &format!("{other}{}", &signature[1..]), 1)).unwrap();
    world.signed("directives/demo/untrusted.md", &named("untrusted"));
    let file = world.project().join(".ai/directives/demo/untrusted.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("f0ff50dacf109dea", "0123456789abcdef", 1)).unwrap();
    world.signed(
        "directives/demo/noxmlfence.md",
        "# Title\n\n<directive name=\"noxmlfence\" version=\"1.0.0\"></directive>\n",
    );
    let legacy =
        format!("<!-- rye:validated:2026-01-01T00:00:00Z:{} -->\n{}", "0".repeat(64), named("legacysig"));
    world.plain(".ai/directives/demo/legacysig.md", &legacy);
    let bytes = std::fs::read_to_string(world.project().join(".ai/directives/demo/greet.md")).unwrap();
    world.plain(".ai/directives/moved/renamed.md", &bytes);
    world.signed("knowledge/demo/ktamper_meta.md", "```yaml\nname: ktamper_meta\ntitle: T\n```\n\nbody\n");
    let file = world.project().join(".ai/knowledge/demo/ktamper_meta.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("title: T", "title: U")).unwrap();
    tools(&world);
    world
}

fn tools(world: &Fixture) {
    let echo = "import argparse, json\np = argparse.ArgumentParser()\np.add_argument('--params')\np.add_argument('--project-path')\n\
                print(json.dumps({'success': True, 'echo': json.loads(p.parse_args().params)}))\n";
    world.signed("tools/demo/echo.py", &python(SCRIPT, echo));
    world.signed("tools/demo/tam.py", &python(SCRIPT, echo));
    let file = world.project().join(".ai/tools/demo/tam.py");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "\n").unwrap();
    world.plain(".ai/tools/demo/uns.py", &python(SCRIPT, echo));
    world.signed(
        "tools/demo/fnnone.py",
        &python(FUNCTION, "def execute(params, project_path):\n    return None\n"),
    );
    world.signed(
        "tools/demo/text.py",
        &python(SCRIPT, "import sys\nprint('plain text')\nprint('warn', file=sys.stderr)\n"),
    );
    world.signed(
        "tools/demo/exit3.py",
        &python(
            SCRIPT,
            "import sys\nprint('{\"partial\": 1}')\nprint('bad thing', file=sys.stderr)\nsys.exit(3)\n",
        ),
    );
    let script = "{command: bash, args: ['-c', 'echo hello {who}; pwd; echo err >&2']}";
    world.signed("tools/demo/sh_yaml.yaml", &yaml("rye/core/primitives/subprocess", script));
    world.signed(
        "tools/demo/viabash.yaml",
        &yaml("rye/core/runtimes/bash/bash", "{command: 'echo hello {who}'}"),
    );
    world.signed("tools/demo/bashrt.yaml", &yaml("rye/core/runtimes/bash/bash", "{}"));
    world.signed("tools/demo/shell.sh", "echo hi\n");
    world.signed("tools/demo/noexec.yaml", &yaml("demo/missing_runtime", "{}"));
    let main =
        python(FUNCTION, "from helper import V\ndef execute(params, project_path):\n    return {'v': V}\n");
    world.signed("tools/demo/pkg/main.py", &main.replace("\"demo\"", "\"demo/pkg\""));
    world.signed("tools/demo/pkg/__init__.py", "");
    world.signed("tools/demo/pkg/helper.py", "V = 42\n");
}

/// Runs a case; none if its item is not among those that are made here.
pub fn run(meta: &Json, case: &Json, name: &str) -> Option<Result<(), String>> {
    let world = world(meta);
    let mut call = case["input"]["call"].clone();
    call["project_path"] = json!(world.project());
    let (kind, id) = (call["item_type"].as_str()?.to_owned(), call["item_id"].as_str()?.to_owned());
    let wanted = &case["expect"];
    let error = wanted["error"].as_str().unwrap_or_default();
    // What is expected to be missing need not be there.
    let missing = error.contains("not found") || error.starts_with("Unknown item type") || id.contains("..");
    let is_known = ["directives", "tools", "knowledge"].iter().any(|folder| {
        ["md", "py", "yaml", "sh"].iter().any(|extension| {
            let below = format!(".ai/{folder}/{id}.{extension}");
            world.project().join(&below).exists() || world.user().join(&below).exists()
        })
    });
    if !missing && !is_known && !id.starts_with("rye/core/primitives") && id != "rye/bash/bash" {
        return None;
    }
    let execute = |call: &Json| world.engine.execute_json(call, &Ignore);
    // The cases were run one after the other, and some need what came before them.
    if wanted["metadata"]["lockfile_used"] == true || error.starts_with("Lockfile") {
        execute(&call);
    }
    let signed_again = format!("{}# changed\n", python(SCRIPT, "print('{}')\n"));
    match name {
        "tool_resigned_but_stale_lockfile" => {
            world.signed("tools/demo/echo.py", &signed_again);
        }
        "tool_anchor_dependency_tampered" => {
            let file = world.project().join(".ai/tools/demo/pkg/helper.py");
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(file, text.replace("42", "43")).unwrap();
        }
        "tool_anchor_dependency_unsigned" => {
            world.plain(".ai/tools/demo/pkg/helper.py", "V = 42\n");
        }
        _ if name.contains("shadow") && kind == "tool" => {
            let files = cuebook::items::system_files();
            let path = "tools/rye/core/runtimes/python/script.yaml";
            let (_, bytes) = files.iter().find(|(file, _)| *file == path)?;
            world.signed(path, std::str::from_utf8(bytes).unwrap());
        }
        _ => {}
    }
    let found = execute(&call);
    Some(compare_answers(wanted, found, &world))
}

/// Compares an answer with that of the reference, as far as decisions did not change its shape: `chain` is the ids, what else
/// is known of them is under `chain_details` (23); a failed call says how far its chain came; and hashes are others (24).
fn compare_answers(wanted: &Json, found: Json, world: &Fixture) -> Result<(), String> {
    let mut wanted = plain(wanted, world);
    let mut found = plain(&found, world);
    let Json::Object(expected) = &mut wanted else { return Err("no object is expected".into()) };
    if expected.len() == 2 && expected.contains_key("your_directions") {
        // The shape of variant C: the body under another name.
        let body = expected["your_directions"].clone();
        return compare::includes(&json!({"status": "success", "body": body}), &found);
    }
    match expected.shift_remove("chain") {
        Some(Json::Array(chain)) if !chain.is_empty() => {
            let ids: Vec<Json> = chain.iter().map(|element| element["item_id"].clone()).collect();
            expected.insert("chain".into(), json!(ids));
            if let Some(details) = found.get_mut("chain_details").and_then(Json::as_array_mut) {
                let part = |element: &Json| {
                    let system = element["space"].as_str().unwrap_or_default().starts_with("system");
                    let space = if system { json!("system") } else { element["space"].clone() };
                    json!([element["item_id"], space, element["tool_type"], element["executor_id"]])
                };
                let wanted: Vec<Json> = chain.iter().map(part).collect();
                compare::equals(&json!(wanted), &json!(details.iter().map(part).collect::<Vec<_>>()))?;
            }
        }
        _ => {
            found.as_object_mut().map(|found| found.shift_remove("chain"));
        }
    }
    if let Some(pairs) = expected.get("validated_pairs").and_then(Json::as_u64) {
        let count = found["validated_pairs"].as_array().map_or(0, Vec::len) as u64;
        found["validated_pairs"] = json!(count);
        compare::includes(&json!({"validated_pairs": pairs}), &found)?;
    }
    compare::includes(&wanted, &found)?;
    // No key that the reference does not have, but for those that decisions add.
    let more = |key: &&String| {
        wanted.get(key.as_str()).is_none()
            && !["chain", "chain_details", "interpreter", "metadata"].contains(&key.as_str())
    };
    let more: Map<String, Json> = found
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| more(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if more.is_empty() { Ok(()) } else { Err(format!("more than expected: {}", Json::Object(more))) }
}

/// Without what differs from run to run and from machine to machine.
fn plain(value: &Json, world: &Fixture) -> Json {
    match value {
        Json::String(text) => {
            let mut text = text
                .replace(&world.project().display().to_string(), "{{PROJECT}}")
                .replace(&world.user().display().to_string(), "{{USER}}")
                // Advice that does not lead anywhere here; the hint has the commands.
                .replace(". Add the key to the trust store via the sign tool.", "")
                .replace(". Re-sign and delete stale lockfile.", "");
            while let Some(start) = text.find("rye:signed:") {
                let end = text[start..].find(" -->").map_or(text.len(), |end| start + end);
                text.replace_range(start..end, "SIGNATURE");
            }
            // The beginnings of hashes.
            while let Some(at) = text.find('…').filter(|at| *at >= 16) {
                text.replace_range(at - 16..at + '…'.len_utf8(), "HASH");
            }
            Json::String(text)
        }
        Json::Array(items) => items.iter().map(|item| plain(item, world)).collect(),
        Json::Object(map) => {
            let kept = map.iter().filter(|(_, value)| *value != "<<VOLATILE>>");
            kept.map(|(key, value)| (key.clone(), plain(value, world))).collect()
        }
        other => other.clone(),
    }
}

/// A lockfile as it is written.
pub fn lockfile(case: &Json) -> Option<Result<(), String>> {
    let wanted = case["expect"].get("lockfile").unwrap_or(&case["expect"]);
    wanted.get("lockfile_version")?;
    let world = Fixture::new();
    tools(&world);
    let id = wanted["root"]["tool_id"].as_str()?;
    if !world.project().join(format!(".ai/tools/{id}.py")).exists() {
        return None;
    }
    world.tool(id, json!({}));
    let path = world.project().join(format!(".ai/lockfiles/{id}@1.0.0.lock.json"));
    let found: Json = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let shape = |json: &Json| {
        let ids: Vec<&Json> =
            json["resolved_chain"].as_array().into_iter().flatten().map(|e| &e["item_id"]).collect();
        let keys: Vec<&String> = json.as_object().into_iter().flatten().map(|(key, _)| key).collect();
        json!({"keys": keys, "version": json["lockfile_version"], "root": json["root"]["tool_id"], "ids": ids})
    };
    Some(compare::equals(&shape(wanted), &shape(&found)))
}
