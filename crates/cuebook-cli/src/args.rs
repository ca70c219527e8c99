//! The command line.

mod check;
mod convert;
mod diff;
mod execute;
mod explain;
mod groups;
mod layout;
mod mock;
mod prove;
mod thread;
mod trust;

use std::path::PathBuf;
use std::sync::{Arc, Once};

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::Spaces;
use cuebook::library::Config;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_hooks::model::CommandModel;
use cuebook_hooks::sandbox::Launcher;
use cuebook_trace::Tracing;

use crate::{commands, output};
pub use check::{CheckArgs, CheckOutput};
pub use convert::{ConvertArgs, To};
pub use diff::DiffArgs;
pub use execute::ExecuteArgs;
pub use explain::{ExplainArgs, TokensArgs};
pub use layout::Layout;
pub use mock::MockArgs;
pub use prove::{AttackArgs, TestArgs, WatchArgs};
pub use thread::{
    RunArgs, StoreOptions, ThreadArgs, ThreadCommand, ThreadListArgs, ThreadOptions, ThreadResumeArgs,
    ThreadShowArgs, ThreadTailArgs,
};
pub use trust::{AllowArgs, KeysCommand, LoadArgs, SearchArgs, SignArgs, Sort, TrustCommand, VerifyArgs};

/// Finds, checks, renders and runs prompts, and shows where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "cuebook", version, disable_help_subcommand = true, max_term_width = 110)]
#[command(after_help = "Examples:
  cuebook render general_system --var agent_name=Rumi
  cuebook init my-prompts
  cuebook check
  cuebook help CB101        what an error code means, and what to do
  cuebook help convert      a prompt in another notation
  cuebook help diff         two versions of a prompt, by what they do
  cuebook help directives   directives, their inputs and signatures
  cuebook help explain      where everything in a prompt came from
  cuebook help hooks        Python that takes part in renders
  cuebook help includes     prompts, sections and directives in each other
  cuebook help mcp          the project as a server for other programs
  cuebook help prompty      .prompty files
  cuebook help sections     trees of sections
  cuebook help testing      test cases beside prompts, and attacks on them
  cuebook help threads      directives and prompts that a model carries out
  cuebook help tokens       what a prompt costs, and what a cache can keep
  cuebook help tools        tools, and how they are run
  cuebook help trust        keys, signatures and whom to trust")]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// The options of every command.
    #[command(flatten)]
    pub options: Options,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The project's folder; without it, the nearest one above that has a cuebook.toml, a user_data or an .ai folder
    #[arg(
        long,
        alias = "project",
        global = true,
        value_name = "DIR",
        env = "CUEBOOK_ROOT",
        help_heading = "General"
    )]
    pub root: Option<PathBuf>,
    /// Answer, and fail, in JSON
    #[arg(long, global = true, help_heading = "General")]
    pub json: bool,
    /// Show on stderr what hooks print
    #[arg(long, short, global = true, help_heading = "General")]
    pub verbose: bool,
    /// The program that answers the llm_call of hooks: the prompt comes on stdin, the answer on stdout
    #[arg(
        long,
        global = true,
        value_name = "COMMAND",
        env = "CUEBOOK_LLM_COMMAND",
        help_heading = "General"
    )]
    pub llm_command: Option<String>,
    /// Record what happens: in `.tracy` files in a folder, on stderr with `console`, or to a collector with `otel` (builds
    /// with that feature). Secrets are left out
    #[arg(
        long,
        global = true,
        value_name = "DIR|console|otel",
        env = "CUEBOOK_TRACE",
        help_heading = "General"
    )]
    pub trace: Option<String>,
    /// When to use colours
    #[arg(
        long = "color",
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "General"
    )]
    pub colour: Colour,
    /// The options that say where threads are, for commands that messages suggest.
    #[arg(skip)]
    pub place: String,
}

impl Options {
    /// The book of the project. Settings that need a grant are asked for on a terminal; elsewhere one warning names them.
    pub fn book(&self) -> Result<Book> {
        static REVIEWED: Once = Once::new();
        let book = self.book_unreviewed()?;
        // A command reports invalid settings itself.
        REVIEWED.call_once(|| drop(commands::allow::review(book.library(), self)));
        Ok(book)
    }

    /// The same without asking for grants. A folder that was named and does not exist is an error, because it is probably a typo.
    pub fn book_unreviewed(&self) -> Result<Book> {
        match &self.root {
            Some(root) if !root.is_dir() => {
                let message = match root.symlink_metadata() {
                    Ok(_) => "the project must be a folder, and this is none",
                    Err(_) => "the project's folder does not exist",
                };
                let diagnostic = Diagnostic::new(Code::Unreadable, message)
                    .file(root.to_string_lossy())
                    .hint("name another folder with --root, or make this one: cuebook init DIR");
                Err(Error::new(ErrorKind::Io, diagnostic))
            }
            Some(root) => Ok(self.with_hooks(Book::open(root).with_paths(true))),
            None => {
                let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
                Ok(self.with_hooks(Book::open(Config::find_root(&here)).with_paths(true)))
            }
        }
    }

    /// The spaces of items: of the project, of the user, and of the program.
    pub fn spaces(&self) -> Result<Spaces> {
        Ok(Spaces::of_project(self.book()?.library().root()))
    }

    /// Records what happens from here on, if that is wanted, until what is returned goes.
    pub fn start_trace(&self) -> Result<Option<cuebook_trace::Guard>> {
        let tracing = match self.trace.as_deref() {
            None | Some("") => return Ok(None),
            Some("console") => Tracing { console: true, ..Tracing::default() },
            Some("otel") => Tracing { otel: true, ..Tracing::default() },
            Some(folder) => Tracing { tracy: Some(PathBuf::from(folder)), ..Tracing::default() },
        };
        tracing.install().map(Some).map_err(|error| {
            let diagnostic = Diagnostic::new(Code::BadInput, format!("--trace: {error}"))
                .hint("name a folder, or write --trace console");
            Error::new(ErrorKind::Usage, diagnostic)
        })
    }

    /// Nothing of this starts anything: a render that needs Python does.
    fn with_hooks(&self, book: Book) -> Book {
        let mut hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
        if let Some(command) = &self.llm_command {
            let words = command.split_whitespace().map(str::to_owned).collect();
            hooks = hooks.model(Arc::new(CommandModel::new(words)));
        }
        if self.verbose {
            hooks = hooks.listener(Arc::new(output::hear));
        }
        book.with_hooks(hooks)
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Makes the choice hold for everything that is printed.
    pub fn apply(self) {
        let choice = match self {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fill a prompt and print it
    Render(RenderArgs),
    /// Report errors in prompts without running anything
    Check(CheckArgs),
    /// List the library's prompts
    List(ListArgs),
    /// Show a prompt's definition
    Show(PromptArgs),
    /// Show where each part of a rendered prompt came from
    Explain(ExplainArgs),
    /// Count a prompt's tokens, and show what a cache can keep
    Tokens(TokensArgs),
    /// Compare what two versions of a prompt do
    Diff(DiffArgs),
    /// Try injection strings in every input of a prompt
    Attack(AttackArgs),
    /// Run the test cases that lie beside prompts
    Test(TestArgs),
    /// Write a prompt in another format, and report what is lost
    Convert(ConvertArgs),
    /// Render a prompt again whenever one of its files changes
    Watch(WatchArgs),
    /// List every place that offers a prompt
    Candidates(PromptArgs),
    /// Choose the place that a prompt comes from
    Resolve(ResolveArgs),
    /// Replace the text of sections without changing their file
    #[command(subcommand)]
    Overrides(OverridesCommand),
    /// Install, inspect, approve and remove packs
    #[command(subcommand)]
    Pack(PackCommand),
    /// Create and show your signing key
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage the keys that you trust
    #[command(subcommand)]
    Trust(TrustCommand),
    /// Show the powers that the project asks for, and grant them
    Allow(AllowArgs),
    /// Check items and sign them
    Sign(SignArgs),
    /// Check the signatures of items
    Verify(VerifyArgs),
    /// Search items by their metadata
    Search(SearchArgs),
    /// Execute a directive, a tool or a piece of knowledge
    Execute(ExecuteArgs),
    /// Run a prompt with a model
    Run(RunArgs),
    /// List, show, follow, cancel and resume threads
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// List the model providers, and whether their keys are set
    #[command(
        after_help = "Examples:\n  cuebook providers\n  cuebook providers --json\n\ncuebook help threads says how to add one."
    )]
    Providers,
    /// Play a model that answers from a script, without a key
    Mock(MockArgs),
    /// Print an item, or copy it to another space
    Load(LoadArgs),
    /// Serve the project over the Model Context Protocol
    Mcp(McpArgs),
    /// Report this machine's Python, and what its sandbox can do
    Doctor,
    /// Create a project with a prompt, tests and a CI workflow
    Init(InitArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Explain a command, an error code or a topic
    Help(HelpArgs),
}

/// A prompt.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// An id, or a path to a file or folder
    pub prompt: String,
}

/// The values for a render.
#[derive(Debug, Clone, Args)]
pub struct Inputs {
    /// A variable: NAME=TEXT for text, NAME:=JSON for anything else
    #[arg(long = "var", value_name = "NAME=TEXT|NAME:=JSON", help_heading = "Values")]
    pub vars: Vec<String>,
    /// Variables from a JSON or YAML file, or from stdin with -
    #[arg(long = "vars", value_name = "FILE|-", help_heading = "Values")]
    pub vars_file: Option<PathBuf>,
    /// A variable from a file: the text of it, or the picture, sound or document that it is
    #[arg(long = "file", value_name = "NAME=PATH", help_heading = "Values")]
    pub files: Vec<String>,
    /// An agent.json, whose prompt_variables are used
    #[arg(long, value_name = "FILE", help_heading = "Values")]
    pub agent: Option<PathBuf>,
    /// A fact about the circumstances: agent_id, agent_name, model, session_id, workspace_path or language; session and
    /// session_state as JSON; returns=call or returns=block for how a directive returns its outputs
    #[arg(long, value_name = "NAME=TEXT|NAME:=JSON", help_heading = "Values")]
    pub context: Vec<String>,
    /// Show this section of a tree in full, by its path with dots; may be given several times
    #[arg(long, value_name = "SECTION", help_heading = "Sections")]
    pub expand: Vec<String>,
    /// A file that remembers which sections were opened; with --expand it is written
    #[arg(long, value_name = "FILE", help_heading = "Sections")]
    pub session: Option<PathBuf>,
    /// The overrides of this tag, instead of `latest`
    #[arg(long, value_name = "TAG", help_heading = "Sections")]
    pub tag: Option<String>,
    /// Drop the least important sections until the request (text, tools and output schema) has at most so many tokens, as
    /// --model or the prompt's own model counts them; stderr lists what was dropped
    #[arg(long, value_name = "TOKENS", value_parser = tokens, help_heading = "Sections")]
    pub fit: Option<usize>,
    /// Refuse to print a variable that is not there, instead of printing nothing
    #[arg(long, help_heading = "Values")]
    pub strict: bool,
    /// Render without the hooks and variable providers that the prompt asks for
    #[arg(long, help_heading = "Values")]
    pub no_hooks: bool,
}

/// A number of tokens.
fn tokens(text: &str) -> std::result::Result<usize, String> {
    text.parse().map_err(|_| "write a whole number of tokens, as in 4000".to_owned())
}

/// `render`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook render general_system --var agent_name=Rumi
  cuebook render coding_system --agent agent.json --vars inputs.json
  cuebook render ./prompts/greeting --var 'tools:=[{\"name\": \"grep\"}]'
  cuebook render general_system --var agent_name=Rumi --context language=ja
  cuebook render general_system --var agent_name=Rumi --as segments
  cuebook render support.prompty --vars inputs.json --as wire:openai
  cuebook render handbook --expand reference.style --session session.json
  cuebook render handbook --fit 4000 --model gpt-4o")]
pub struct RenderArgs {
    /// An id, or a path to a file or folder; may be left out if --agent names one
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The form of the result: text, segments (who wrote what), messages (roles and parts), wire (the body of a request to
    /// the prompt's own provider) or wire:NAME (openai, openai-responses, openai-embeddings, openai-images, anthropic, gemini)
    #[arg(long = "as", value_name = "FORM", default_value = "text", value_parser = Form::read)]
    pub form: Form,
    /// The model that will read the prompt
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Say on stderr where everything came from
    #[arg(long)]
    pub explain: bool,
}

/// The form of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The text and nothing else.
    Text,
    /// Literals and values, as JSON.
    Segments,
    /// Messages, as JSON.
    Messages,
    /// The body of a request, as JSON: in the format of this name, or in that of the prompt's own provider.
    Wire(Option<String>),
}

impl Form {
    /// The forms, by name.
    const NAMES: [&str; 4] = ["text", "segments", "messages", "wire"];

    fn read(text: &str) -> std::result::Result<Form, String> {
        match (text, text.strip_prefix("wire:")) {
            ("text", _) => Ok(Form::Text),
            ("segments", _) => Ok(Form::Segments),
            ("messages", _) => Ok(Form::Messages),
            ("wire", _) => Ok(Form::Wire(None)),
            (_, Some(name)) if !name.is_empty() => Ok(Form::Wire(Some(name.to_owned()))),
            _ => {
                let near = did_you_mean(&nearest(text, Form::NAMES));
                let hint =
                    near.unwrap_or_else(|| "write text, segments, messages, wire or wire:NAME".to_owned());
                Err(format!("there is no such form: {hint}"))
            }
        }
    }
}

/// `list`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook list --type system
  cuebook list --tag coding --json")]
pub struct ListArgs {
    /// Only prompts of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only prompts with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
}

/// `resolve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook resolve coding_system user_data/packs/coding_pro/prompts/coding_system
  cuebook resolve coding_system coding_pro      the same, by the pack's id
  cuebook resolve coding_system                 asks, on a terminal")]
pub struct ResolveArgs {
    /// The prompt's id
    pub prompt: String,
    /// The place to use: a source as `cuebook candidates` prints it, or a pack's id
    pub source: Option<String>,
}

/// `mcp`
#[derive(Debug, Args)]
#[command(after_help = "What clients may do:
  --read-only      use prompts and resources; no tools are listed
  (default)        also search and read items, and get directives and knowledge
  --allow PATTERN  also run the tools that fit, as in desk/order or 'desk/*'
  A shell, a tool that writes files, signing and copying need their whole name:
  --allow rye/bash/bash, --allow rye/file-system/write, --allow rye_sign, --allow rye_load

Examples:
  cuebook mcp --root /path/to/project                   over stdin and stdout, for the client that starts it
  cuebook mcp --read-only                               prompts and resources only
  cuebook mcp --allow 'desk/*'                          and the tools of one folder
  cuebook mcp --http 8321                               at http://127.0.0.1:8321/mcp; prints a new token
  cuebook mcp --http 8321 --token-env CUEBOOK_TOKEN     with a token of yours

How to configure clients: cuebook help mcp")]
pub struct McpArgs {
    /// Serve prompts and resources only
    #[arg(long, conflicts_with = "allow")]
    pub read_only: bool,
    /// Let clients run tools of this id or pattern, or use `rye_sign` or `rye_load`; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// Listen at an address, or at a port of this machine, instead of speaking over stdin and stdout
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// The environment variable that holds the token which every request must carry; without it, a new token is printed
    #[arg(long, value_name = "NAME", requires = "http")]
    pub token_env: Option<String>,
    /// Answer web pages of this origin; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
    /// Where threads are kept: postgres://…, or the path of a SQLite file; without it, .ai/state/threads.db of the project
    #[arg(long, value_name = "URL|FILE", env = "CUEBOOK_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Run tools without the sandbox: they can do everything that you can
    #[arg(long)]
    pub unfenced: bool,
}

/// `overrides`
#[derive(Debug, Subcommand)]
pub enum OverridesCommand {
    /// Write what the author wrote into a new file, to be changed there
    #[command(after_help = "Examples:
  cuebook overrides seed handbook
  cuebook overrides seed handbook --tag friendly")]
    Seed(OverridesArgs),
    /// List the files with overrides
    List,
    /// Show the overrides of a prompt, and which of them no longer fit
    Show(OverridesArgs),
    /// Delete the overrides of a prompt
    Delete(OverridesArgs),
}

/// The overrides of a prompt.
#[derive(Debug, Args)]
pub struct OverridesArgs {
    /// An id, or a path to a file
    pub prompt: String,
    /// The tag
    #[arg(long, value_name = "TAG", default_value = cuebook::overrides::DEFAULT_TAG)]
    pub tag: String,
}

/// `pack`
#[derive(Debug, Subcommand)]
pub enum PackCommand {
    /// Install a pack from a folder, a .tar.gz or a .zip
    #[command(after_help = "Examples:
  cuebook pack install ./coding_pro
  cuebook pack install coding_pro-2.0.0.tar.gz --yes")]
    Install {
        /// The folder or archive
        path: PathBuf,
        /// Accept what the pack proposes to replace
        #[arg(long, short)]
        yes: bool,
        /// Replace an installed pack of the same id
        #[arg(long)]
        upgrade: bool,
    },
    /// List the installed packs
    List,
    /// Show a pack: its manifest, what is odd about it, and whether its code is approved
    Show {
        /// The pack's id
        pack: String,
    },
    /// Show the code of a pack and approve it
    Approve {
        /// The pack's id
        pack: String,
        /// Approve without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Remove an installed pack
    Remove {
        /// The pack's id
        pack: String,
        /// Remove without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// `init`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook init                in this folder
  cuebook init my-prompts     in a new one")]
pub struct InitArgs {
    /// The folder; without it, --root or the current one
    pub dir: Option<PathBuf>,
}

/// `completions`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook completions bash > ~/.local/share/bash-completion/completions/cuebook
  cuebook completions zsh > ~/.zfunc/_cuebook       ~/.zfunc must be in fpath
  cuebook completions fish > ~/.config/fish/completions/cuebook.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `help`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook help render
  cuebook help CB402
  cuebook help codes          every code in one line
  cuebook help convert        a prompt in another notation
  cuebook help diff           two versions of a prompt, by what they do
  cuebook help directives     directives, their inputs and signatures
  cuebook help explain        where everything in a prompt came from
  cuebook help hooks          Python that takes part in renders
  cuebook help includes       prompts, sections and directives in each other
  cuebook help mcp            the project as a server for other programs
  cuebook help prompty        .prompty files
  cuebook help sections       trees of sections
  cuebook help testing        test cases beside prompts, and attacks on them
  cuebook help threads        directives and prompts that a model carries out
  cuebook help tokens         what a prompt costs, and what a cache can keep
  cuebook help tools          tools, and how they are run
  cuebook help trust          keys, signatures and whom to trust

A command that is also a topic says of its options: cuebook explain --help")]
pub struct HelpArgs {
    /// Print the page at once, instead of through $PAGER
    #[arg(long)]
    pub no_pager: bool,
    /// A command, an error code such as CB101 or its name, `codes`, or one of the topics below
    pub topic: Vec<String>,
}
