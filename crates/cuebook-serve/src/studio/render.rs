//! Renders a prompt with the unsaved texts of the page.

use std::path::Path;
use std::sync::Arc;

use cuebook::chat::wire::Wire;
use cuebook::files::Buffers;
use cuebook::prepared::Mode;
use cuebook::prompt::Visibility;
use cuebook::variables::{Scope, UnknownVariables};
use cuebook::{Book, Context, Message, Prepared, Result, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::explain::{Explanation, page};
use cuebook_lab::ledger::{CachePlan, Ledger, Provider, Stability};
use cuebook_lab::service::with_placeholders;
use cuebook_run::provider::{Prices, ReadingCost};
use serde_json::{Map, Value as Json, json};

use super::{files, invalid, text};

/// Renders a prompt. The answer has the prompt's definition, and the explanation as `render --json --explain` prints it or the error,
/// and what `want` names: `messages`, `wire`, `tokens`, `page`. Variables without a value get a placeholder.
pub(super) fn render(book: &Book, arguments: &Json) -> Result<Json> {
    let id = text(arguments, "id")?;
    let empty = Map::new();
    let values = Variables::from_json(arguments["values"].as_object().unwrap_or(&empty));
    let context = book.complete(&context(arguments)?)?;
    buffers(book, arguments)?.during(|| {
        let prepared = Arc::new(prepare(book, id, &context)?);
        let (values, placeholders) = with_placeholders(&prepared, &values, &context);
        let mut answer = json!({
            "definition": prepared.to_json(),
            "has_hooks": prepared.has_code(),
            "placeholders": placeholders,
        });
        match prepared.render(&values, &context) {
            Err(error) => answer["error"] = error.to_json()["error"].take(),
            Ok(rendered) => {
                let explanation = Explanation::new(prepared, rendered);
                let notes = explanation.rendered().notes().iter().map(|note| Json::Object(note.to_json()));
                answer["notes"] = notes.collect();
                answer["explanation"] = explanation.to_json();
                for want in arguments["want"].as_array().into_iter().flatten().filter_map(Json::as_str) {
                    answer[want] = projection(book, &explanation, want, arguments)?;
                }
            }
        }
        Ok(answer)
    })
}

/// The messages, the request body or the tokens of a render. One that fails does not take the others with it.
fn projection(book: &Book, explanation: &Explanation, want: &str, arguments: &Json) -> Result<Json> {
    let rendered = explanation.rendered();
    let made = match want {
        "messages" => rendered.messages().map(|all| all.iter().map(Message::to_json).collect()),
        "wire" => match arguments["wire"].as_str().filter(|api| !api.is_empty()) {
            Some(api) => rendered.wire_as(api).map(wire),
            None => rendered.wire().map(wire),
        },
        "tokens" => tokens(book, explanation),
        "page" => Ok(Json::from(page(explanation))),
        other => return Err(invalid(format!("`want` has the unknown name `{other}`"))),
    };
    Ok(made.unwrap_or_else(|error| error.to_json()))
}

/// The tokens by their writers, what they cost to read, and what a cache can keep of them.
fn tokens(book: &Book, explanation: &Explanation) -> Result<Json> {
    let (ledger, stability) =
        (Ledger::of(explanation.rendered())?, Stability::assumed(explanation.rendered())?);
    let model = ledger.model.as_deref();
    let owners = ledger.provider.map_or_else(|| Provider::ALL.to_vec(), |provider| vec![provider]);
    let caches = owners.into_iter().map(|owner| CachePlan::new(owner, model, &stability).to_json());
    let mut object = ledger.to_json();
    object["stability"] = stability.to_json();
    object["caches"] = caches.collect();
    object["cost"] = ReadingCost::json(Prices::known(book).of(model, ledger.total()));
    Ok(object)
}

/// What `check` finds in a prompt with the unsaved texts of the page.
pub(super) fn check(book: &Book, arguments: &Json) -> Result<Json> {
    let id = text(arguments, "id")?.to_owned();
    let report = buffers(book, arguments)?.during(|| book.check(&[id], |_| {}))?;
    Ok(report.findings.iter().map(|finding| Json::Object(finding.to_json())).collect())
}

fn wire(wire: Wire) -> Json {
    let notes: Vec<Json> = wire.notes.iter().map(|note| Json::Object(note.to_json())).collect();
    json!({"path": wire.path, "body": wire.body, "notes": notes})
}

/// Without a cache: the cache of a book knows files and no unsaved texts.
fn prepare(book: &Book, id: &str, context: &Context) -> Result<Prepared> {
    let config = book.library().config()?;
    let language = Scope::language(context);
    book.prepare_found(book.find(id)?, language, Mode::Lenient, &config, None)
}

fn context(arguments: &Json) -> Result<Context> {
    let string = |name: &str| arguments[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut context = Context {
        language: string("language"),
        model: string("model"),
        message: string("message"),
        without_hooks: arguments["hooks"] != true,
        unknown: UnknownVariables::Ignore,
        ..Context::default()
    };
    if let Some(fit) = arguments["fit"].as_u64() {
        context.fit = Some(usize::try_from(fit).map_err(|_| invalid("`fit` is too large"))?);
    }
    for (path, visibility) in arguments["visibility"].as_object().into_iter().flatten() {
        let visibility = match visibility.as_str() {
            Some("full") => Visibility::Full,
            Some("summary") => Visibility::Summary,
            _ => return Err(invalid(format!("the visibility of `{path}` is `full` or `summary`"))),
        };
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        context.visibility.set(&path, visibility);
    }
    Ok(context)
}

/// The unsaved texts of the page, by their file.
fn buffers(book: &Book, arguments: &Json) -> Result<Buffers> {
    let mut buffers = Buffers::default();
    for (file, text) in arguments["texts"].as_object().into_iter().flatten() {
        let Some(text) = text.as_str() else {
            return Err(invalid(format!("the text of `{file}` is not a text")));
        };
        buffers.set(files::inside(book, Path::new(file))?, text);
    }
    Ok(buffers)
}
