//! A web service: `POST /greet` with the variables as JSON answers with the text, or with the error and status 422.
//!
//! `PORT=8080 cargo run --example service`, then `curl localhost:8080/greet -d '{"name": "Ada"}'`.

use std::fs;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use cuebook::{Book, Context, Variables};

async fn render(
    State(book): State<Arc<Book>>,
    Path(id): Path<String>,
    body: String,
) -> Result<String, (StatusCode, String)> {
    let variables: serde_json::Map<_, _> =
        serde_json::from_str(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    // An id is never a path: `/etc/passwd` is refused.
    let rendered = book.render_async(&id, &Variables::from(variables), &Context::default()).await;
    match rendered {
        Ok(rendered) => Ok(rendered.into_text()),
        Err(error) => Err((StatusCode::UNPROCESSABLE_ENTITY, error.to_json().to_string())),
    }
}

/// Runs the example.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::create_dir_all(folder.path().join("prompts/greet"))?;
    fs::write(folder.path().join("prompts/greet/template.md"), "Hello {{ name }}!\n")?;

    let book = Arc::new(Book::open(folder.path()));
    let service = Router::new().route("/{*id}", post(render)).with_state(book);
    let port = std::env::var("PORT").unwrap_or_default().parse().unwrap_or(0);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
