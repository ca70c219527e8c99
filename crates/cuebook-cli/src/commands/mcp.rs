//! `cuebook mcp`

use std::process::ExitCode;
use std::sync::Arc;

use cuebook::Result;
use cuebook::items::Spaces;
use cuebook::library::UserConfig;
use cuebook_run::policy::allowance::Allowance;
use cuebook_run::{Engine, Fence, Launcher, Settings};
use cuebook_serve::{Http, LocalItems, Server, Token, serve_http, serve_stdio};

use crate::args::{McpArgs, Options};
use crate::output::{Outcome, say};
use crate::terminal;

pub fn run(args: &McpArgs, options: &Options) -> Outcome {
    let server = server(args, options)?;
    match &args.http {
        Some(address) => listen(server, address, args)?,
        None => {
            if terminal::is_interactive() {
                say("serving MCP over stdin and stdout; an MCP client starts this command: cuebook help mcp");
            }
            serve_stdio(server)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn server(args: &McpArgs, options: &Options) -> Result<Server> {
    // What a client names is an id, and never a path.
    let book = Arc::new(options.book()?.with_paths(false));
    let spaces = Spaces::of_project(book.library().root());
    let user = UserConfig::read(&spaces)?.mcp;
    let settings = Settings {
        store: args.store.clone(),
        program: std::env::current_exe().ok(),
        fence: if args.unfenced { Fence::Off } else { Fence::All },
        launcher: Some(Launcher::this_program()),
        secret_variables: args.token_env.iter().cloned().collect(),
        allowance: Some(Allowance::new(user.allow.iter().chain(&args.allow))?),
        ..Settings::default()
    };
    let engine = Engine::new(spaces.clone()).with_settings(settings);
    let items = Arc::new(LocalItems::of_engine(engine, &spaces));
    if user.read_only && !args.allow.is_empty() {
        say("--allow has no effect: your settings say `read_only = true` under `[mcp]`");
    }
    Ok(match args.read_only || user.read_only {
        true => Server::read_only(book, spaces, items),
        false => Server::new(book, spaces, Some(items)),
    })
}

fn listen(server: Server, address: &str, args: &McpArgs) -> Result<()> {
    let (token, generated) = match &args.token_env {
        Some(name) => (Token::from_env(name)?, None),
        None => Token::generate().map(|(token, text)| (token, Some(text)))?,
    };
    let http = Http { address: address.to_owned(), token, origins: args.allow_origin.clone() };
    serve_http(server, http, |url| {
        say(format_args!("listening at {url}; Ctrl-C stops"));
        if let Some(token) = generated {
            say(format_args!("clients need this header: Authorization: Bearer {token}"));
            say(format_args!(
                "for a client's settings: {{\"type\": \"http\", \"url\": \"{url}\", \"headers\": {{\"Authorization\": \"Bearer {token}\"}}}}"
            ));
            say("the token is new at every start; keep one with --token-env NAME");
        }
    })
}
