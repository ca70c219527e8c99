//! The commands, one file each.

pub mod allow;
mod attack;
mod batch;
mod candidates;
mod check;
mod completions;
mod convert;
mod diff;
mod doctor;
mod execute;
mod explain;
pub mod help;
mod init;
mod keys;
mod list;
mod load;
mod lsp;
mod mcp;
mod mock;
mod overrides;
mod pack;
mod packages;
mod providers;
mod render;
mod resolve;
mod run;
mod schema;
mod search;
mod show;
mod sign;
mod skills;
mod stubs;
mod studio;
mod test;
mod thread;
mod tokens;
mod trust;
mod verify;
mod watch;
mod worker;

use cuebook::{Book, ErrorKind, Result};

use crate::args::{Command, Options};
use crate::output::Outcome;
use crate::{output, terminal};

/// Runs a command.
pub fn run(command: Command, options: &Options) -> Outcome {
    match command {
        Command::Render(args) => render::run(&args, options),
        Command::Check(args) => check::run(&args, options),
        Command::List(args) => list::run(&args, options),
        Command::Show(args) => show::run(&args, options),
        Command::Explain(args) => explain::run(&args, options),
        Command::Tokens(args) => tokens::run(&args, options),
        Command::Diff(args) => diff::run(&args, options),
        Command::Attack(args) => attack::run(&args, options),
        Command::Test(args) => test::run(&args, options),
        Command::Convert(args) => convert::run(&args, options),
        Command::Stubs(args) => stubs::run(&args, options),
        Command::Watch(args) => watch::run(&args, options),
        Command::Candidates(args) => candidates::run(&args, options),
        Command::Resolve(args) => resolve::run(&args, options),
        Command::Overrides(command) => overrides::run(&command, options),
        Command::Add(args) => packages::add(&args, options),
        Command::Pull(args) => packages::pull(&args, options),
        Command::Push(args) => packages::push(&args, options),
        Command::Sync(args) => packages::sync(&args, options),
        Command::Update(args) => packages::update(&args, options),
        Command::Remove(args) => packages::remove(&args, options),
        Command::Pack(command) => pack::run(&command, options),
        Command::Keys(command) => keys::run(&command, options),
        Command::Trust(command) => trust::run(&command, options),
        Command::Allow(args) => allow::run(&args, options),
        Command::Sign(args) => sign::run(&args, options),
        Command::Verify(args) => verify::run(&args, options),
        Command::Search(args) => search::run(&args, options),
        Command::Execute(args) => execute::run(&args, options),
        Command::Run(args) => run::run(&args, options),
        Command::Batch(args) => batch::run(&args, options),
        Command::Thread(command) => thread::run(&command, options),
        Command::Worker(args) => worker::run(&args, options),
        Command::Providers => providers::run(options),
        Command::Mock(args) => mock::run(&args, options),
        Command::Load(args) => load::run(&args, options),
        Command::Mcp(args) => mcp::run(&args, options),
        Command::Lsp => lsp::run(options),
        Command::Studio(args) => studio::run(&args, options),
        Command::Schema(args) => schema::run(&args),
        Command::Doctor => doctor::run(options),
        Command::Init(args) => init::run(&args, options),
        Command::Completions(args) => completions::run(&args),
        Command::Help(args) => help::run(&args, options),
    }
}

/// Does something with a prompt; if it turns out that several places offer it and a person is there, lets them choose,
/// records the choice and tries again.
fn with_choice<T>(book: &Book, options: &Options, mut action: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match action() {
            Err(error)
                if error.kind() == ErrorKind::PromptConflict
                    && !options.json
                    && terminal::is_interactive() =>
            {
                let Some(id) = error.field("prompt_id").and_then(|id| id.as_str()) else { return Err(error) };
                output::say(format_args!("{}.", error.diagnostic().message));
                if !resolve::ask(book, id)? {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}
