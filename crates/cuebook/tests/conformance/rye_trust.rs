//! What the real Rye code signed, loaded and found.
//!
//! The cases name items of a project that is not with them, so it is made here: from what the cases themselves say of its
//! items, signed with the key of the cases by the rule of decision 24 (the whole file). What Rye signed more narrowly is
//! recognised as such, and refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cuebook::actions::load;
use cuebook::actions::search::{Query, Scope, SearchRequest, Searcher};
use cuebook::actions::sign;
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{PublicKey, SigningKey, Trust, sign_as_rye};
use cuebook::{Code, ErrorKind};
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use crate::board::{Board, read, table};

/// Runs the groups around trust and search.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("rye", &[]);
    let file = read(&folder.join("cases.json"));
    let meta = &file["meta"];
    let cases: Vec<&Json> = table(&file, "cases").iter().collect();
    let group =
        |name: &str| -> Vec<&Json> { cases.iter().copied().filter(|case| case["group"] == name).collect() };
    for case in group("signature") {
        let (table, outcome) = signature(case);
        board.note(table, id(case), outcome);
    }
    for case in group("search_scope") {
        board.note("search_scope", id(case), scope(case));
    }
    for case in group("search_query") {
        let found = Query::new(text(&case["input"]["query"])).finds(text(&case["input"]["text"]));
        board.note("search_query", id(case), same(&json!(found), &case["expect"]));
    }
    let searches = group("search");
    if !searches.is_empty() {
        let world = Fixture::new(meta, &searches);
        searches.iter().for_each(|case| board.note("search", id(case), world.search(case)));
    }
    for case in group("load") {
        match Fixture::new(meta, &[]).load(case) {
            Some(outcome) => board.note("load", id(case), outcome),
            None => board.later("load", "the item is one of Rye's bundles"),
        }
    }
    for case in group("sign") {
        match Fixture::new(meta, &[]).sign(case) {
            Some(outcome) => board.note("sign", id(case), outcome),
            None => board.later("sign", "the file is not with the case, and cannot be told from it"),
        }
    }
    board
}

fn id(case: &Json) -> &str {
    text(&case["id"])
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

fn same(found: &Json, wanted: &Json) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  found  {found}")) }
}

fn now() -> Timestamp {
    "2026-02-26T00:00:00Z".parse().unwrap()
}

fn key() -> SigningKey {
    let mut seed = [0; 32];
    for (index, byte) in seed.iter_mut().enumerate() {
        *byte = u8::try_from(index).unwrap();
    }
    SigningKey::from_seed(&seed).unwrap()
}

/// Bytes that Rye signs. Where it signs the whole file, ours must be the same; where it signs less, ours must say so.
fn signature(case: &Json) -> (&'static str, Result<(), String>) {
    let (input, expect) = (&case["input"], &case["expect"]);
    let seed = text(&input["ed25519_seed_hex"]);
    let seed: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&seed[2 * at..2 * at + 2], 16).unwrap()).collect();
    let key = SigningKey::from_seed(&seed.try_into().unwrap()).unwrap();
    let extension = text(&input["extension"]).trim_start_matches('.');
    let at: Timestamp = text(&input["timestamp"]).parse().unwrap();
    if expect["hashed_text"] == input["text"] {
        let signed = sign_as_rye(extension, text(&input["text"]).as_bytes(), &key, at).unwrap();
        return ("signature", same(&json!(String::from_utf8(signed).unwrap()), &expect["signed_text"]));
    }
    let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spaces = Spaces::new(project.path(), Some(user.path()));
    let trust = Trust::new(&spaces);
    trust.add(SpaceKind::User, key.public(), "golden", None, at).unwrap();
    let kind = ItemType::named(text(&input["item_type"])).unwrap();
    let path = project.path().join(format!(".ai/{}/x.{extension}", kind.folder()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text(&expect["signed_text"])).unwrap();
    let item = spaces.find(kind, &ItemId::new("x").unwrap()).unwrap().unwrap().read(1 << 20).unwrap();
    let outcome = match trust.verify(&item) {
        Err(error) if error.code() == Code::NarrowSignature => Ok(()),
        other => Err(format!("a signature of a part is to be recognised: {other:?}")),
    };
    ("signature of a part (decision 24)", outcome)
}

fn scope(case: &Json) -> Result<(), String> {
    let found = match Scope::new(text(&case["input"]["scope"])) {
        Some(scope) => json!({"item_type": scope.kind.as_str(), "namespace_filter": scope.namespace}),
        None => json!({"item_type": "", "namespace_filter": null}),
    };
    // Of a scope without a type nothing is used, so nothing else is compared.
    if found["item_type"] == "" && ItemType::named(text(&case["expect"]["item_type"])).is_none() {
        return Ok(());
    }
    same(&found, &case["expect"])
}

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
    spaces: Spaces,
    trust: Trust,
    directive: String,
}

impl Fixture {
    /// A project with the items that answers show.
    fn new(meta: &Json, answers: &[&Json]) -> Fixture {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let trust = Trust::new(&spaces);
        let fixtures = &meta["fixtures"];
        let public = PublicKey::from_pem(text(&fixtures["public_key_pem"])).unwrap();
        assert_eq!(public.fingerprint(), text(&fixtures["fingerprint"]));
        let private = SigningKey::from_pem(text(&fixtures["private_key_pem"])).unwrap();
        assert_eq!(private.public(), &public);
        private.save(&spaces, false).unwrap();
        // The trust file is the one that Rye wrote, with Rye's signature.
        let store = user.path().join(".ai/config/keys/trusted");
        fs::create_dir_all(&store).unwrap();
        let toml = text(&fixtures["trusted_key_toml"]);
        fs::write(store.join(format!("{}.toml", public.fingerprint())), toml).unwrap();
        let ours = trust.add(SpaceKind::Project, &public, "golden", Some(&private), now()).unwrap();
        let written = fs::read_to_string(project.path().join(&ours.file)).unwrap();
        assert_eq!(written, toml, "our file of a trusted key is not the one that Rye writes");
        fs::remove_file(project.path().join(&ours.file)).unwrap();
        let world =
            Fixture { project, user, spaces, trust, directive: text(&fixtures["directive_ok"]).to_owned() };
        let mut items: BTreeMap<String, &Json> = BTreeMap::new();
        for answer in answers {
            for result in answer["expect"]["results"].as_array().into_iter().flatten() {
                items.insert(text(&result["path"]).to_owned(), result);
            }
        }
        for (path, result) in items {
            if !path.contains("{{SYSTEM") {
                world.write(&path, world.item(result));
            }
        }
        world
    }

    /// A path of the cases as it is here.
    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(self.here(path))
    }

    fn here(&self, text: &str) -> String {
        let text = text.replace("{{PROJECT}}", &self.project.path().display().to_string());
        text.replace("{{USER}}", &self.user.path().display().to_string())
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The file of an item that an answer shows, signed if the answer says so.
    fn item(&self, result: &Json) -> Vec<u8> {
        let (name, title) = (text(&result["name"]), text(&result["title"]));
        let (category, description) = (text(&result["category"]), text(&result["description"]));
        let extension = text(&result["path"]).rsplit('.').next().unwrap_or_default();
        let content = match text(&result["type"]) {
            "directive" => self
                .directive
                .replace("\"greet\"", &format!("\"{name}\""))
                .replace("<description>Greet a user by name", &format!("<description>{description}"))
                .replace("<category>demo", &format!("<category>{category}")),
            "knowledge" => {
                let described = if description.is_empty() {
                    String::new()
                } else {
                    format!("description: {description}\n")
                };
                format!(
                    "```yaml\nname: {name}\ntitle: {title}\n{described}category: {category}\n```\n\nText.\n"
                )
            }
            _ => format!("__category__ = \"{category}\"\n__tool_description__ = \"{description}\"\n"),
        };
        match result["signed"] == true {
            true => sign_as_rye(extension, content.as_bytes(), &key(), now()).unwrap(),
            false => content.into_bytes(),
        }
    }

    /// Compares what can be known: the results that the answer shows, in their order, and not the hashes, which cover more.
    fn search(&self, case: &Json) -> Result<(), String> {
        let mut request = case["input"]["call"].clone();
        request["project_path"] = Json::Null;
        let searcher = Searcher::new(self.spaces.clone());
        let found = searcher.answer(&SearchRequest::from_json(&request), &self.trust);
        let expect = &case["expect"];
        if expect.get("error").is_some() {
            return same(&found, expect);
        }
        for key in ["query", "scope", "space", "limit", "offset", "search_type"] {
            same(&found[key], &expect[key]).map_err(|why| format!("{key}: {why}"))?;
        }
        let results = |answer: &Json| -> Vec<Json> {
            let one = |result: &Json| -> Option<Json> {
                // What lies in Rye's own bundles is not here.
                if text(&result["source"]).starts_with("system") {
                    return None;
                }
                let keys =
                    ["id", "name", "title", "description", "source", "path", "score", "category", "type"];
                let kept: Map<String, Json> =
                    keys.iter().map(|key| ((*key).to_owned(), json!(result.get(*key)))).collect();
                Some(Json::Object(kept))
            };
            answer["results"].as_array().into_iter().flatten().filter_map(one).collect()
        };
        let wanted: Json = serde_json::from_str(&self.here(&json!(results(expect)).to_string())).unwrap();
        same(&json!(results(&found)), &wanted)?;
        // A file that lies elsewhere than it says is signed to Rye, and moved to us (decision 24).
        for (ours, theirs) in
            found["results"].as_array().unwrap().iter().zip(expect["results"].as_array().unwrap())
        {
            let moved = text(&ours["id"]).rsplit('/').next() != ours["name"].as_str()
                && ours["type"] != "tool"
                || !text(&ours["id"]).starts_with(text(&ours["category"]));
            let signed = theirs["signed"] == true && !moved;
            same(&ours["signed"], &json!(signed)).map_err(|why| format!("signed, {}: {why}", ours["id"]))?;
            let hash = ours["integrity"].as_str().map(str::len);
            same(&json!(hash), &if signed { json!(64) } else { Json::Null })?;
        }
        let all_known = expect["total"] == expect["results"].as_array().map_or(0, Vec::len);
        if all_known && !results(expect).is_empty() {
            same(&found["total"], &expect["total"])
        } else {
            Ok(())
        }
    }

    fn load(&self, case: &Json) -> Option<Result<(), String>> {
        let (call, expect) = (&case["input"]["call"], &case["expect"]);
        let kind = ItemType::named(text(&call["item_type"]));
        let path = text(&expect["path"]);
        if path.contains("{{SYSTEM") || text(&expect["source"]).starts_with("system") {
            return None;
        }
        let in_error = text(&expect["error"])
            .split_whitespace()
            .last()
            .filter(|word| word.contains("{{"))
            .map(str::to_owned);
        match (path.is_empty(), in_error) {
            (false, _) => self.write(path, text(&expect["content"])),
            (true, Some(path)) => self.write(path.trim_end_matches('.'), &self.directive),
            (true, None) => {
                let name = text(&call["item_id"]).rsplit('/').next().unwrap_or_default();
                let content = self.directive.replace("\"greet\"", &format!("\"{name}\""));
                let signed = sign_as_rye("md", content.as_bytes(), &key(), now()).unwrap();
                if kind == Some(ItemType::Directive) {
                    let path = format!("{{{{PROJECT}}}}/.ai/directives/{}.md", text(&call["item_id"]));
                    self.write(&path, signed);
                }
            }
        }
        let found = load::answer(&self.spaces, &self.trust, call);
        let wanted: Json = serde_json::from_str(&self.here(&expect.to_string())).unwrap();
        // A directive that Rye signed is signed narrowly, which is reported instead of being loaded.
        if kind == Some(ItemType::Directive) && expect["status"] == "success" {
            let reported = text(&found["error"]);
            return Some(if reported.contains("covers only a part") {
                Ok(())
            } else {
                same(&found, &wanted)
            });
        }
        // A tool that Rye signed must declare its place (decision 31), and the one of the case gives its category only.
        if kind == Some(ItemType::Tool) && text(&found["error"]).contains("does not say what it is for") {
            return Some(Ok(()));
        }
        Some(same(&found, &wanted))
    }

    /// The file that a signed answer or a refusal speaks of.
    fn sign(&self, case: &Json) -> Option<Result<(), String>> {
        let (call, expect) = (&case["input"]["call"], &case["expect"]);
        let id = text(&call["item_id"]);
        let name = id.rsplit('/').next().unwrap_or_default();
        let path = text(&expect["path"]).to_owned();
        let kind = ItemType::named(text(&call["item_type"]));
        let has = |word: &str| case["id"].as_str().is_some_and(|id| id.contains(word));
        let content = match (kind, path.rsplit('.').next().unwrap_or_default()) {
            (Some(ItemType::Directive), "md") if expect["status"] == "signed" => {
                Some(self.directive.replace("\"greet\"", &format!("\"{name}\"")))
            }
            (Some(ItemType::Directive), "md") if has("validation_failures") => Some(
                self.directive
                    .replace("version=\"1.0.0\"", "version=\"1.0\"")
                    .replace("<category>demo", "<category>wrong")
                    .replace("    <author>golden</author>\n", "")
                    .replace("turns=\"4\"", "turns=\"4.5\""),
            ),
            (Some(ItemType::Tool), "py") if expect["status"] == "signed" => {
                let shebang = if has("shebang") { "#!/usr/bin/env python3\n" } else { "" };
                Some(format!(
                    "{shebang}__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__category__ = \"demo\"\n__tool_description__ = \"d\"\n"
                ))
            }
            (Some(ItemType::Tool), "ts" | "js") if expect["status"] == "signed" => Some(
                "export const __version__ = \"1.0.0\";\nexport const __tool_type__ = \"javascript\";\nexport const __category__ = \"demo\";\nexport const __tool_description__ = \"d\";\n".to_owned(),
            ),
            (Some(ItemType::Tool), "py") if has("missing_metadata") => Some("x = 1\n".to_owned()),
            (Some(ItemType::Tool), "sh") => Some("#!/bin/sh\necho hi\n".to_owned()),
            (Some(ItemType::Knowledge), "md") if has("no_metadata") => Some("# Plain\n\nText.\n".to_owned()),
            (Some(ItemType::Knowledge), "md") if expect["status"] == "signed" => Some(format!(
                "```yaml\nname: {name}\ntitle: T\nversion: \"1.0.0\"\nentry_type: reference\ncategory: demo\n```\n\nText.\n"
            )),
            _ => None,
        };
        match content {
            Some(content) => self.write(&path, content),
            None if !path.is_empty() => return None,
            None => {}
        }
        let found = sign::answer(&self.spaces, &self.trust, call, now(), &mut |_, _| {});
        let mut wanted: Json = serde_json::from_str(&self.here(&expect.to_string())).unwrap();
        let mut found = found;
        if expect["status"] == "signed" {
            // Hash and signature cover what the file is here; that they are right is for `verify` to say.
            for answer in [&mut found, &mut wanted] {
                answer["signature"]["hash"] = Json::Null;
                answer["signature"]["ed25519_sig"] = Json::Null;
            }
            let located = self.spaces.find(kind.unwrap(), &ItemId::new(id).unwrap()).unwrap().unwrap();
            if let Err(error) = self.trust.verify(&located.read(1 << 20).unwrap()) {
                assert_eq!(error.kind(), ErrorKind::Integrity);
                return Some(Err(error.to_string()));
            }
        }
        if wanted.get("hint").is_none() {
            // Ours may have a way out where Rye's answer has none.
            found.as_object_mut().unwrap().remove("hint");
        }
        Some(same(&found, &wanted))
    }
}
