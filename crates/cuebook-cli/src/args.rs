//! The command line.

mod batch;
mod check;
mod convert;
mod diff;
mod execute;
mod explain;
mod groups;
mod layout;
mod mock;
mod packages;
mod prove;
mod schema;
mod stubs;
mod studio;
mod thread;
mod trust;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuebook::error::{did_you_mean, nearest};

pub use batch::{BatchArgs, BatchCommand, DiffOutputsArgs, Order, ReportArgs, Via};
pub use check::{CheckArgs, CheckOutput};
pub use convert::{ConvertArgs, To, Written};
pub use diff::DiffArgs;
pub use execute::ExecuteArgs;
pub use explain::{ExplainArgs, TokensArgs};
pub use layout::Layout;
pub use mock::MockArgs;
pub use packages::{AddArgs, PullArgs, PushArgs, RemoveArgs, SyncArgs, UpdateArgs};
pub use prove::{AttackArgs, TestArgs, WatchArgs};
pub use schema::SchemaArgs;
pub use stubs::{StubsArgs, StubsLanguage};
pub use studio::StudioArgs;
pub use thread::{
    RequestArgs, RunArgs, StoreOptions, ThreadArgs, ThreadCommand, ThreadForkArgs, ThreadListArgs,
    ThreadOptions, ThreadResumeArgs, ThreadShowArgs, ThreadTailArgs,
};
pub use trust::{
    AllowArgs, KeysCommand, LoadArgs, SearchArgs, SignArgs, Signable, Sort, TrustCommand, VerifyArgs,
};
pub use worker::{QueueArgs, ThreadStartArgs, WorkerArgs, WorkerCommand, WorkerStatusArgs};

/// Finds, checks, renders and runs prompts, and shows where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "cuebook", version, disable_help_subcommand = true, max_term_width = 110)]
#[command(after_help = "Examples:
  cuebook init my-prompts                                create a project
  cuebook render general_system --var agent_name=Rumi    print a built-in prompt
  cuebook check                                          find mistakes in your prompts
  cuebook help CB101                                     explain an error code

Topics:
  cuebook help batch        render, run and judge the rows of a data file
  cuebook help convert      convert a prompt to another dialect
  cuebook help diff         compare two versions of a prompt
  cuebook help directives   directives, their inputs and signatures
  cuebook help editors      set up an editor
  cuebook help explain      find where each part of a prompt came from
  cuebook help hooks        Python code that runs during a render
  cuebook help includes     include other prompts, sections and directives
  cuebook help mcp          serve a project to MCP clients
  cuebook help prompty      .prompty files
  cuebook help sections     section trees
  cuebook help testing      write test cases, and try injection strings
  cuebook help threads      run directives and prompts with a model
  cuebook help tokens       count tokens, and see what a cache can reuse
  cuebook help tools        write and run tools
  cuebook help trust        sign items, and trust keys")]
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
    /// The project's directory [default: the nearest parent with a cuebook.toml, a user_data or an .ai directory]
    #[arg(
        long,
        alias = "project",
        global = true,
        value_name = "DIR",
        env = "CUEBOOK_ROOT",
        help_heading = "General"
    )]
    pub root: Option<PathBuf>,
    /// Print results and errors as JSON
    #[arg(long, global = true, help_heading = "General")]
    pub json: bool,
    /// Show the output of hooks on stderr
    #[arg(long, short, global = true, help_heading = "General")]
    pub verbose: bool,
    /// The program that answers `llm_call` in hooks: it reads the prompt from stdin and prints the answer
    #[arg(
        long,
        global = true,
        value_name = "COMMAND",
        env = "CUEBOOK_LLM_COMMAND",
        help_heading = "General"
    )]
    pub llm_command: Option<String>,
    /// Write a trace: `.tracy` files in a directory, stderr with `console`, or a collector with `otel` (builds
    /// with that feature). Secrets are removed
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
    /// Applies the choice to everything that is printed.
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
    #[command(
        after_help = "Examples:\n  cuebook show general_system\n  cuebook show ./prompts/greeting --json     for scripts"
    )]
    Show(PromptArgs),
    /// Show where each part of a rendered prompt came from
    Explain(ExplainArgs),
    /// Count a prompt's tokens, and show what a cache can reuse
    Tokens(TokensArgs),
    /// Compare what two versions of a prompt do
    Diff(DiffArgs),
    /// Try injection strings in every input of a prompt
    Attack(AttackArgs),
    /// Run the test cases of prompts
    Test(TestArgs),
    /// Convert a prompt to another dialect, and report what is lost
    Convert(ConvertArgs),
    /// Write a Python module with the types of the prompts
    Stubs(StubsArgs),
    /// Render a prompt again when one of its files changes
    Watch(WatchArgs),
    /// List the candidates for a prompt's id
    #[command(
        after_help = "Examples:\n  cuebook candidates coding_system\n\nTo choose one: cuebook resolve PROMPT SOURCE"
    )]
    Candidates(PromptArgs),
    /// Choose one of several candidates, and record it
    Resolve(ResolveArgs),
    /// Override a section's text without editing its file
    #[command(
        subcommand,
        after_help = "Examples:
  cuebook overrides seed handbook      copy the author's text, to edit it
  cuebook overrides show handbook      show your text, and what is stale
  cuebook overrides delete handbook    return to the author's text

More: cuebook help sections"
    )]
    Overrides(OverridesCommand),
    /// Add a pack or a skill, and record it in cuebook.lock
    Add(AddArgs),
    /// Fetch a prompt from Langfuse, and record it in cuebook.lock
    Pull(PullArgs),
    /// Store a prompt in Langfuse as a new version
    Push(PushArgs),
    /// Restore the packages that cuebook.lock records
    Sync(SyncArgs),
    /// Show what new versions of packages change, and install them
    Update(UpdateArgs),
    /// Remove a package and its entry in cuebook.lock
    Remove(RemoveArgs),
    /// Install, inspect, approve and remove packs
    #[command(
        subcommand,
        after_help = "Examples:
  cuebook pack install ./coding_pro
  cuebook pack list
  cuebook pack approve coding_pro      review its code, and let it run
  cuebook pack remove coding_pro"
    )]
    Pack(PackCommand),
    /// Create and show your signing key
    #[command(
        subcommand,
        after_help = "Examples:
  cuebook keys generate --owner Ada    create your key, once
  cuebook keys list
  cuebook keys export > ada.pem        the public half, for others

More: cuebook help trust"
    )]
    Keys(KeysCommand),
    /// Manage the keys that you trust
    #[command(
        subcommand,
        after_help = "Examples:
  cuebook trust add ada.pem --owner Ada
  cuebook trust list
  cuebook trust remove 4b98

More: cuebook help trust"
    )]
    Trust(TrustCommand),
    /// Show the powers that the project requests, and grant them
    Allow(AllowArgs),
    /// Check and sign items
    Sign(SignArgs),
    /// Check the signatures of items
    Verify(VerifyArgs),
    /// Search items by name, title, description and text
    Search(SearchArgs),
    /// Execute a directive, a tool or a knowledge item
    Execute(ExecuteArgs),
    /// Run a prompt with a model
    Run(RunArgs),
    /// Render or run a prompt for each row of a data file
    Batch(BatchArgs),
    /// Queue, list, show, follow, cancel and resume threads
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Run the threads of a queue
    Worker(WorkerArgs),
    /// List the model providers, and whether their keys are set
    #[command(
        after_help = "Examples:\n  cuebook providers\n  cuebook providers --json\n\nTo add one, see: cuebook help threads"
    )]
    Providers,
    /// Start a mock model that answers from a script; it needs no key
    Mock(MockArgs),
    /// Print an item, or copy it to another space
    Load(LoadArgs),
    /// Serve the project over the Model Context Protocol
    Mcp(McpArgs),
    /// Serve an editor: findings, completion, hover, definitions, rename
    #[command(after_help = "\
An editor starts this command and speaks the Language Server Protocol with it over stdin and stdout.
It never runs hooks, tools or other code of the project.

Examples:
  cuebook lsp                                for the folder that the editor opens
  cuebook lsp --root /path/to/project        for this project

To set up an editor, see: cuebook help editors")]
    Lsp,
    /// Open the library in the browser
    Studio(StudioArgs),
    /// Print the JSON Schema of a kind of file
    Schema(SchemaArgs),
    /// Show which Python and which sandbox protections this machine has
    #[command(after_help = "Examples:\n  cuebook doctor\n  cuebook doctor --json      for scripts")]
    Doctor,
    /// Create a project with a prompt, tests and a CI workflow
    Init(InitArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Explain a command, an error code or a topic
    Help(HelpArgs),
}

impl Command {
    /// Whether all that it does is one call, and so one trace.
    pub fn is_one_call(&self) -> bool {
        matches!(
            self,
            Command::Render(_)
                | Command::Explain(_)
                | Command::Tokens(_)
                | Command::Run(_)
                | Command::Execute(_)
        )
    }
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
    /// A variable from a file: text, an image, audio or a document
    #[arg(long = "file", value_name = "NAME=PATH", help_heading = "Values")]
    pub files: Vec<String>,
    /// An agent.json; its prompt_variables become values
    #[arg(long, value_name = "FILE", help_heading = "Values")]
    pub agent: Option<PathBuf>,
    /// A fact about the render: agent_id, agent_name, model, session_id, workspace_path or language; session and
    /// session_state as JSON; returns=call or returns=block for how a directive returns its outputs
    #[arg(long, value_name = "NAME=TEXT|NAME:=JSON", help_heading = "Values")]
    pub context: Vec<String>,
    /// The language of the templates, such as ja; short for --context language=LANG
    #[arg(long, value_name = "LANG", help_heading = "Values")]
    pub language: Option<String>,
    /// The user's message; it follows the messages of the prompt
    #[arg(long, value_name = "TEXT", help_heading = "Values")]
    pub message: Option<String>,
    /// Show this section in full; its path has dots, as in reference.style; repeatable
    #[arg(long, value_name = "SECTION", help_heading = "Sections")]
    pub expand: Vec<String>,
    /// A file that stores which sections are open; --expand updates it
    #[arg(long, value_name = "FILE", help_heading = "Sections")]
    pub session: Option<PathBuf>,
    /// Use the overrides with this tag [default: latest]
    #[arg(long, value_name = "TAG", help_heading = "Sections")]
    pub tag: Option<String>,
    /// Drop the least important sections until the request (text, tools and output schema) has at most this many tokens,
    /// counted for --model or the prompt's model; stderr lists what was dropped
    #[arg(long, value_name = "TOKENS", value_parser = tokens, help_heading = "Sections")]
    pub fit: Option<usize>,
    /// Fail if the template prints a variable without a value
    #[arg(long, help_heading = "Values")]
    pub strict: bool,
    /// Do not run the prompt's hooks and variable providers
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
  cuebook render general_system --var agent_name=Rumi --language ja
  cuebook render general_system --var agent_name=Rumi --as segments
  cuebook render support.prompty --vars inputs.json --as wire:openai
  cuebook render handbook --expand reference.style --session session.json
  cuebook render handbook --fit 4000 --model gpt-4o
  cuebook render model.jinja --style chat --vars conversation.json")]
pub struct RenderArgs {
    /// An id, or a path to a file or folder; optional with --agent
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The output: text, segments (with origins), messages (roles and parts), wire (the request body for
    /// the prompt's provider) or wire:NAME (openai, openai-responses, openai-embeddings, openai-images, anthropic, gemini)
    #[arg(long = "as", value_name = "FORMAT", default_value = "text", value_parser = Format::read)]
    pub format: Format,
    /// The model that will read the prompt
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Report origins on stderr
    #[arg(long)]
    pub explain: bool,
    /// Render the file as a model's chat template, as the library `transformers` does; pass what the template uses, such as
    /// messages, tools, add_generation_prompt and bos_token
    #[arg(long, value_name = "STYLE", value_enum)]
    pub style: Option<FileStyle>,
}

/// What the file of `render --style` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileStyle {
    /// A model's own chat template
    Chat,
}

/// The output format of `render`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// The text and nothing else.
    Text,
    /// Literals and values, as JSON.
    Segments,
    /// Messages, as JSON.
    Messages,
    /// The body of a request, as JSON: in the format of this name, or in that of the prompt's own provider.
    Wire(Option<String>),
}

impl Format {
    /// The formats, by name.
    const NAMES: [&str; 4] = ["text", "segments", "messages", "wire"];

    pub(super) fn read(text: &str) -> std::result::Result<Format, String> {
        match (text, text.strip_prefix("wire:")) {
            ("text", _) => Ok(Format::Text),
            ("segments", _) => Ok(Format::Segments),
            ("messages", _) => Ok(Format::Messages),
            ("wire", _) => Ok(Format::Wire(None)),
            (_, Some(name)) if !name.is_empty() => Ok(Format::Wire(Some(name.to_owned()))),
            _ => {
                let near = did_you_mean(&nearest(text, Format::NAMES));
                let hint =
                    near.unwrap_or_else(|| "use text, segments, messages, wire or wire:NAME".to_owned());
                Err(format!("unknown format: {hint}"))
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
  cuebook resolve coding_system coding_pro      the same, by pack id
  cuebook resolve coding_system                 asks on a terminal")]
pub struct ResolveArgs {
    /// The prompt's id
    pub prompt: String,
    /// The candidate to use: a source from `cuebook candidates`, or a pack's id
    pub source: Option<String>,
}

/// `mcp`
#[derive(Debug, Args)]
#[command(after_help = "Client permissions:
  --read-only      use prompts and resources; no tools are listed
  (default)        also search and read items, and get directives and knowledge
  --allow PATTERN  also run matching tools, such as desk/order or 'desk/*'
  A shell, a tool that writes files, signing and copying need their full name:
  --allow rye/bash/bash, --allow rye/file-system/write, --allow rye_sign, --allow rye_load

Examples:
  cuebook mcp --root /path/to/project                   over stdin and stdout, for the client that starts this
  cuebook mcp --read-only                               prompts and resources only
  cuebook mcp --allow 'desk/*'                          and the tools of one folder
  cuebook mcp --http 8321                               at http://127.0.0.1:8321/mcp; prints a new token
  cuebook mcp --http 8321 --token-env CUEBOOK_TOKEN     with your token

To configure clients, see: cuebook help mcp")]
pub struct McpArgs {
    /// Serve prompts and resources only
    #[arg(long, conflicts_with = "allow")]
    pub read_only: bool,
    /// Let clients run tools that match this id or pattern, or use `rye_sign` or `rye_load`; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// Listen on an address or a local port instead of stdin and stdout
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// The environment variable with the token that every request must send [default: print a new token]
    #[arg(long, value_name = "NAME", requires = "http")]
    pub token_env: Option<String>,
    /// Answer requests from web pages of this origin; repeatable
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
    /// The store of threads: postgres://… or the path of a SQLite file [default: .ai/state/threads.db in the project]
    #[arg(long, value_name = "URL|FILE", env = "CUEBOOK_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Run tools without the sandbox: they can do everything you can
    #[arg(long = "no-sandbox", alias = "unfenced")]
    pub unfenced: bool,
}

/// `overrides`
#[derive(Debug, Subcommand)]
pub enum OverridesCommand {
    /// Copy the author's text into a new file for you to edit
    #[command(after_help = "Examples:
  cuebook overrides seed handbook
  cuebook overrides seed handbook --tag friendly")]
    Seed(OverridesArgs),
    /// List the files with overrides
    #[command(after_help = "Examples:\n  cuebook overrides list")]
    List,
    /// Show a prompt's overrides, and which of them are stale
    #[command(
        after_help = "Examples:\n  cuebook overrides show handbook\n  cuebook overrides show handbook --tag friendly"
    )]
    Show(OverridesArgs),
    /// Delete the overrides of a prompt
    #[command(
        after_help = "Examples:\n  cuebook overrides delete handbook\n  cuebook overrides delete handbook --tag friendly"
    )]
    Delete(OverridesArgs),
}

/// The overrides of a prompt.
#[derive(Debug, Args)]
pub struct OverridesArgs {
    /// An id, or a path to a file
    pub prompt: String,
    /// The set of overrides, by its tag
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
        /// Accept the replacements that the pack proposes
        #[arg(long, short)]
        yes: bool,
        /// Replace an installed pack of the same id
        #[arg(long)]
        upgrade: bool,
    },
    /// List the installed packs
    #[command(after_help = "Examples:\n  cuebook pack list")]
    List,
    /// Show a pack: its manifest, warnings, and whether its code is approved
    #[command(after_help = "Examples:\n  cuebook pack show coding_pro")]
    Show {
        /// The pack's id
        pack: String,
    },
    /// Show the code of a pack and approve it
    #[command(
        after_help = "Examples:\n  cuebook pack approve coding_pro         shows the code, and asks\n  cuebook pack approve coding_pro --yes   does not ask"
    )]
    Approve {
        /// The pack's id
        pack: String,
        /// Approve without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Sign a pack or a skill as its publisher
    #[command(after_help = "\
The signature covers all files. Others accept your key once, when they add the package.

Examples:
  cuebook keys generate --owner Ada     once
  cuebook pack sign ./coding_pro        writes coding_pro/publisher.toml")]
    Sign {
        /// The folder with pack.json or SKILL.md
        path: PathBuf,
    },
    /// Remove an installed pack
    #[command(after_help = "Examples:\n  cuebook pack remove coding_pro")]
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
  cuebook init                in this directory
  cuebook init my-prompts     in a new one")]
pub struct InitArgs {
    /// The project's directory [default: --root, or the current directory]
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
  cuebook help batch          render, run and judge the rows of a data file
  cuebook help convert        convert a prompt to another dialect
  cuebook help diff           compare two versions of a prompt
  cuebook help directives     directives, their inputs and signatures
  cuebook help editors        set up an editor
  cuebook help explain        find where each part of a prompt came from
  cuebook help hooks          Python code that runs during a render
  cuebook help includes       include other prompts, sections and directives
  cuebook help mcp            serve a project to MCP clients
  cuebook help prompty        .prompty files
  cuebook help sections       section trees
  cuebook help testing        write test cases, and try injection strings
  cuebook help threads        run directives and prompts with a model
  cuebook help tokens         count tokens, and see what a cache can reuse
  cuebook help tools          write and run tools
  cuebook help trust          sign items, and trust keys

For the options of a command that is also a topic: cuebook explain --help")]
pub struct HelpArgs {
    /// Print the page directly, without $PAGER
    #[arg(long)]
    pub no_pager: bool,
    /// A command, an error code such as CB101 or its name, `codes`, or one of the topics below
    pub topic: Vec<String>,
}
