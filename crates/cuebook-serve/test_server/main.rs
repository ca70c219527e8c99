//! The server that the tests speak with: `cuebook-serve-test-server PROJECT [ADDRESS TOKEN-VARIABLE]`.
//!
//! Its tools do just what a test has to see: `execute` echoes, counts slowly, waits for a file, or panics.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuebook::Book;
use cuebook::items::Spaces;
use cuebook_serve::{
    Arguments, Failed, Http, Items, LocalItems, Question, Server, Token, Watch, serve_http, serve_stdio,
};
use serde_json::{Value as Json, json};

/// Items that are none.
#[derive(Default)]
struct TestItems {
    /// Counts that were given up before they were done.
    given_up: AtomicU32,
}

impl Items for TestItems {
    fn execute(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        match arguments.get("item_id").and_then(Json::as_str).unwrap_or_default() {
            "count" => {
                let steps = arguments["parameters"]["steps"].as_f64().unwrap_or(3.0);
                let mut done = 0.0;
                while done < steps {
                    if watch.is_cancelled() {
                        self.given_up.fetch_add(1, Ordering::SeqCst);
                        return json!({"status": "error", "error": "cancelled"});
                    }
                    std::thread::sleep(Duration::from_millis(30));
                    done += 1.0;
                    watch.progress(done, Some(steps), &format!("step {done}"));
                }
                json!({"status": "success", "data": {"steps": steps}})
            }
            "gate" => {
                let file = arguments["parameters"]["file"].as_str().unwrap_or_default();
                while !Path::new(file).exists() && !watch.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                json!({"status": "success", "data": "open"})
            }
            "given_up" => json!({"status": "success", "data": self.given_up.load(Ordering::SeqCst)}),
            "panic" => panic!("as asked"),
            "list" => json!([1, 2]),
            // A limit that the user can raise.
            "limited" => json!({"status": "error", "error": "3 of 3 turns"}),
            "missing" => json!({"status": "error", "error": "Tool not found: missing", "item_id": "missing"}),
            _ => json!({"status": "success", "type": "tool", "data": arguments}),
        }
    }

    fn question(&self, answer: &Json) -> Option<Question> {
        let limit = json!({"type": "integer", "title": "Turns", "default": 6});
        let form = json!({"type": "object", "properties": {"limit": limit}, "required": ["limit"]});
        let message = format!("{}. Continue?", answer["error"].as_str()?);
        (answer["error"] == "3 of 3 turns").then_some(Question { message, form })
    }

    fn go_on(&self, call: Failed<'_>, form: &Arguments, _: &dyn Watch) -> Json {
        json!({"status": "success", "item_id": call.arguments["item_id"], "data": form})
    }

    fn search(&self, arguments: &Arguments, _: &dyn Watch) -> Json {
        match arguments["scope"].as_str() {
            Some("tool") => json!({"results": [], "total": 0, "query": arguments["query"]}),
            _ => json!({"error": "scope must specify an item_type"}),
        }
    }

    fn load(&self, arguments: &Arguments, _: &dyn Watch) -> Json {
        json!({"status": "success", "content": "a file", "source": arguments.get("source")})
    }

    fn sign(&self, arguments: &Arguments, _: &dyn Watch) -> Json {
        json!({"status": "signed", "item_id": arguments["item_id"], "location": "project"})
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuebook_run::launch_if_asked();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let project = Path::new(words.first().ok_or("name a project")?);
    // With a user's folder, the tools are the real ones.
    let user = std::env::var_os("DESK_USER").map(PathBuf::from);
    let spaces = Spaces::new(project, user.as_deref());
    let items: Arc<dyn Items> = match user {
        Some(_) => Arc::new(LocalItems::new(spaces.clone())),
        None => Arc::new(TestItems::default()),
    };
    let server = Server::new(Arc::new(Book::open(project)), spaces, Some(items));
    match words.get(1) {
        None => serve_stdio(server)?,
        Some(address) => {
            let token = Token::from_env(words.get(2).ok_or("name the variable of a token")?)?;
            let http =
                Http { address: address.clone(), token, origins: vec!["https://app.example.com".into()] };
            serve_http(server, http, |url| println!("{url}"))?;
        }
    }
    Ok(())
}
