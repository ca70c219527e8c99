//! `cuebook execute`

use std::path::PathBuf;

use clap::Args;

use super::thread::ThreadOptions;

/// `execute`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook execute directive rye/core/create_directive --param name=deploy_app --param category=workflows
  cuebook execute tool rye/file-system/write --param path=output.txt --param 'content=hello world'
  cuebook execute tool rye/bash/bash --param 'command=echo test' --dry-run
  cuebook execute knowledge rye/core/directive-metadata-reference
  cuebook execute tool my/report --params inputs.json --json
  cuebook execute directive my-project/run_pipeline --param location=Dunedin --thread
  cuebook execute directive my-project/run_pipeline --param location=Dunedin --thread --async

Exit code 1 if the item fails. More: cuebook help tools, cuebook help threads")]
pub struct ExecuteArgs {
    /// What the item is: directive, tool or knowledge
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// Its id: the path of its file in the folder of its type, without the extension
    pub id: String,
    /// A parameter: NAME=TEXT for text, NAME:=JSON for anything else
    #[arg(long = "param", value_name = "NAME=TEXT|NAME:=JSON")]
    pub params: Vec<String>,
    /// Parameters from a JSON or YAML file, or from stdin with -
    #[arg(long = "params", value_name = "FILE|-")]
    pub params_file: Option<PathBuf>,
    /// Verify and check everything, but execute nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run a directive in a new thread
    #[arg(long)]
    pub thread: bool,
    /// Do not wait for the thread
    #[arg(long = "async")]
    pub is_async: bool,
    /// The model of the thread
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// A limit for the thread: turns, tokens, spend, spawns, duration_seconds or depth
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// Run the tool in the sandbox, as if a model called it
    #[arg(long = "sandbox", alias = "fenced", conflicts_with = "unfenced")]
    pub fenced: bool,
    /// Where threads are kept and who answers.
    #[command(flatten)]
    pub threads: ThreadOptions,
}
