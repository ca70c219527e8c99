//! `cuebook mcp`

use std::process::ExitCode;
use std::sync::Arc;

use cuebook::items::Spaces;
use cuebook_run::{Engine, Settings};
use cuebook_serve::{Http, LocalItems, Server, Token, serve_http, serve_stdio};

use crate::args::{McpArgs, Options};
use crate::output::{Outcome, say};
use crate::terminal;

pub fn run(args: &McpArgs, options: &Options) -> Outcome {
    let book = Arc::new(options.book()?);
    let spaces = Spaces::of_project(book.library().root());
    let settings =
        Settings { store: args.store.clone(), program: std::env::current_exe().ok(), ..Settings::default() };
    let engine = Engine::new(spaces.clone()).with_settings(settings);
    let items = Arc::new(LocalItems::of_engine(engine, &spaces));
    let server = Server::new(book, spaces, Some(items));
    match &args.http {
        Some(address) => {
            let token = args.token_env.as_deref().map(Token::from_env).transpose()?;
            let http = Http { address: address.clone(), token, origins: args.allow_origin.clone() };
            serve_http(server, http, |url| say(format_args!("listening at {url}; Ctrl-C ends it")))?;
        }
        None => {
            if terminal::is_interactive() {
                say(
                    "speaking the Model Context Protocol over stdin and stdout, for a client that starts this: cuebook help mcp",
                );
            }
            serve_stdio(server)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
