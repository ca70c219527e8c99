//! `cuebook studio`

use clap::Args;

use super::StoreOptions;

/// `studio`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook studio                     the whole library, in the browser
  cuebook studio greeting            begin with this prompt
  cuebook studio --port 8400         at a fixed port

The page is for you alone: its address has a token that is new at every start. Ctrl-C stops the server.")]
pub struct StudioArgs {
    /// The prompt to begin with
    pub prompt: Option<String>,
    /// The port on this machine [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print the address, and do not open a browser
    #[arg(long)]
    pub no_open: bool,
    /// Where threads are.
    #[command(flatten)]
    pub store: StoreOptions,
}
