//! The arguments of `mock`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cuebook_mock::Api;

/// `mock`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook mock --at localhost:8080      then, in another terminal:
  OPENAI_BASE_URL=http://localhost:8080 OPENAI_API_KEY=mock cuebook run greeting --provider openai

  cuebook mock --script replies.json --at localhost:8080
  cuebook mock > ~/.ai/config/providers/mock.yaml &      a provider file; set MOCK_KEY to any value to use it

A script is JSON: [{\"text\": \"Hello.\", \"usage\": {\"input\": 10, \"output\": 3}}]. Each reply answers one request. \
  Without a script, every request gets a greeting.")]
pub struct MockArgs {
    /// The interface in the printed provider file; the server itself supports all of them
    #[arg(long, value_name = "API", default_value = "openai-chat", value_parser = api())]
    pub api: Api,
    /// A JSON file with the replies, in order
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// The address to listen on; with port 0, the system picks a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub at: String,
}

fn api() -> impl TypedValueParser<Value = Api> {
    let names = PossibleValuesParser::new(Api::ALL.map(Api::as_str));
    names.try_map(|name| Api::ALL.into_iter().find(|api| api.as_str() == name).ok_or("unknown interface"))
}
