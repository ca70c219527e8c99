//! `cuebook check`

use clap::{Args, ValueEnum};
use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Severity};

/// `check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook check                       the whole library
  cuebook check greeting support      two prompts
  cuebook check user_data/packs/mine  everything below a folder
  cuebook check --deny warnings       warnings fail as well
  cuebook check --output github       annotations in a workflow of GitHub
  cuebook check --json | jq '.[].code'

Exit code 1 if there are errors. Warnings and notes count only with --deny.")]
pub struct CheckArgs {
    /// Prompts or folders; the whole library if none is given
    #[arg(value_name = "PROMPT|PATH")]
    pub targets: Vec<String>,
    /// Count these findings as errors: warnings, notes (which includes warnings), a code such as CB402, or its name;
    /// repeatable, or separated by commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = Denied::read)]
    pub deny: Vec<Denied>,
    /// The output format: text for people, github for annotations of a workflow, sarif for code scanning (SARIF 2.1.0), or
    /// json
    #[arg(long, value_name = "FORMAT")]
    pub output: Option<CheckOutput>,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckOutput {
    /// For people.
    Text,
    /// Workflow commands of GitHub, one per line.
    Github,
    /// SARIF 2.1.0.
    Sarif,
    /// A JSON array.
    Json,
}

/// Findings that count as errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// All that are at least as bad.
    From(Severity),
    /// Those of one code.
    Code(Code),
}

impl Denied {
    fn read(text: &str) -> Result<Denied, String> {
        match text {
            "warning" | "warnings" => return Ok(Denied::From(Severity::Warning)),
            "note" | "notes" => return Ok(Denied::From(Severity::Note)),
            _ => {}
        }
        Code::find(text).map(Denied::Code).ok_or_else(|| {
            let codes = Code::ALL.iter().flat_map(|code| [code.as_str(), code.name()]);
            let near = did_you_mean(&nearest(text, codes.chain(["warnings", "notes"])));
            near.unwrap_or_else(|| {
                "write warnings, notes or a code; `cuebook help codes` lists them".to_owned()
            })
        })
    }

    /// Whether a finding is one of them.
    pub fn covers(self, finding: &Diagnostic) -> bool {
        match self {
            Denied::From(severity) => finding.severity >= severity,
            Denied::Code(code) => finding.code == code,
        }
    }
}
