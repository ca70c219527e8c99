//! Provider files: who answers for which model, and how it is asked, as data.
//!
//! A file is read strictly: an unknown key is an error, and what it would do with a key (send it somewhere) is checked here once.
//! Nothing here looks into the environment; a file names variables.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cuebook::chat::wire::Api;
use cuebook::redact;
use cuebook::settings::Setting;
use cuebook::source::Source;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use globset::{GlobBuilder, GlobMatcher};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::Price;
use super::address::{Address, BaseUrl};
use super::budget::Rate;
use super::secret;
use crate::money::Money;

/// Tokens that a model reads at most where its file does not say.
const USUAL_WINDOW: u64 = 200_000;
/// Tokens that it writes at most where its file does not say.
const USUAL_OUTPUT: u64 = 16_384;

/// The interfaces that talk, by their names in files.
const APIS: [(&str, Api); 4] = [
    ("openai-chat", Api::OpenAiChat),
    ("openai-responses", Api::OpenAiResponses),
    ("anthropic", Api::Anthropic),
    ("gemini", Api::Gemini),
];

/// How a model gets tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolMode {
    /// As tools of the interface.
    #[default]
    Native,
    /// In the text of the prompt, for models that know no tools; they call them in text.
    Text,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of a reply.
    pub first_byte: Duration,
    /// For the next piece of a reply.
    pub idle: Duration,
    /// For one request, from its beginning to its end.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let seconds = Duration::from_secs;
        Timeouts { connect: seconds(10), first_byte: seconds(300), idle: seconds(120), total: seconds(1800) }
    }
}

/// How often, and after which pauses, a request that failed by accident is sent again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// How often it is sent, all in all.
    pub attempts: u32,
    /// The first pause in seconds; else it depends on the failure.
    pub base: Option<f64>,
    /// The longest pause in seconds, also of one that the server asks for.
    pub max: Option<f64>,
    /// Whether it is sent again although a part of the answer came already. The provider charges for both.
    pub after_text: bool,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 4, base: None, max: None, after_text: false }
    }
}

/// What a file says about models whose names fit a pattern.
#[derive(Clone)]
pub struct ModelEntry {
    /// The pattern as it is written: a name, or one with `*` and `?`.
    pub pattern: String,
    matcher: GlobMatcher,
    context_window: Option<u64>,
    max_output: Option<u64>,
    price: Option<Price>,
    api: Option<Api>,
    stream: Option<bool>,
    tool_mode: Option<ToolMode>,
    options: Map<String, Json>,
}

/// Without values of options: they may be secrets.
impl fmt::Debug for ModelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<&String> = self.options.keys().collect();
        f.debug_struct("ModelEntry")
            .field("pattern", &self.pattern)
            .field("options", &options)
            .finish_non_exhaustive()
    }
}

impl ModelEntry {
    /// Whether it is the name of one model.
    pub fn is_exact(&self) -> bool {
        !self.pattern.contains(['*', '?', '[', '{'])
    }

    /// The more of a pattern is no wildcard, the more it means.
    fn weight(&self) -> (bool, usize) {
        (self.is_exact(), self.pattern.chars().filter(|letter| !matches!(letter, '*' | '?')).count())
    }
}

/// What is known of one model, from all entries that fit its name.
#[derive(Clone)]
pub struct Profile {
    /// Its interface.
    pub api: Api,
    /// Tokens that it reads at most.
    pub context_window: u64,
    /// Tokens that it writes at most.
    pub max_output: u64,
    /// What it costs; `None` if unknown.
    pub price: Option<Price>,
    /// Whether its answers come bit by bit.
    pub stream: bool,
    /// How it gets tools.
    pub tool_mode: ToolMode,
    /// Further fields of a request's body.
    pub options: Map<String, Json>,
}

/// Without values of options: they may be secrets.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("api", &self.api)
            .field("context_window", &self.context_window)
            .field("max_output", &self.max_output)
            .field("price", &self.price)
            .field("options", &self.options.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A provider file.
#[derive(Clone)]
pub struct ProviderFile {
    /// Its name, which is also that of the file.
    pub name: String,
    /// Which interface it speaks.
    pub api: Api,
    /// Where it is.
    pub base_url: String,
    /// What the file holds as its address.
    base: BaseUrl,
    /// Whether `base_url` comes from the environment variable that the file names.
    is_redirected: bool,
    /// Whether a key or another secret is sent.
    sends_secrets: bool,
    /// The environment variable that holds the key; `None` for a server without keys.
    pub key: Option<String>,
    /// Further headers. `${env:NAME}` stands for a variable of the environment.
    pub headers: IndexMap<String, String>,
    /// Which model stands for which tier.
    pub tiers: IndexMap<String, String>,
    /// What is known of models, in the order of the file.
    pub models: Vec<ModelEntry>,
    /// The currency of the prices.
    pub currency: String,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How often to ask.
    pub retry: Retry,
    /// How much it may be asked in a minute; what it says itself counts too.
    pub rate: Rate,
    /// Further fields of every body. `${env:NAME}` in a text stands for a variable of the environment.
    pub options: Map<String, Json>,
    /// Whether answers come bit by bit.
    pub stream: bool,
    /// How models get tools.
    pub tool_mode: ToolMode,
    /// The name of the file, for messages.
    pub file: String,
    /// Problems that do not prevent its use.
    pub warnings: Vec<Diagnostic>,
}

/// Without values of headers: they may be secrets.
impl fmt::Debug for ProviderFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderFile")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("tiers", &self.tiers)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl ProviderFile {
    /// Reads a file. `stem` is its name without its extension, and must be the provider's.
    pub fn read(source: &Arc<Source>, stem: &str) -> Result<ProviderFile> {
        let root = Setting::parse(source, Code::BadProviderFile, ErrorKind::Config)?;
        // First, because the excerpt of any other mistake could show a key that stands in the place of its name, or in an address.
        let entries = root.entries()?;
        let key = entries.get("key").filter(|key| !key.is_null()).map(read_variable).transpose()?;
        entries.get("base_url").map_or(Ok(()), refuse_secret_address)?;
        let fields = root.fields(&[
            "name",
            "api",
            "base_url",
            "key",
            "headers",
            "tiers",
            "models",
            "currency",
            "timeouts",
            "retry",
            "rate",
            "options",
            "stream",
            "tool_mode",
        ])?;
        let need = |name: &str| {
            fields.get(name).ok_or_else(|| {
                let hint = "a provider file needs at least name, api and base_url";
                root.wrong(format!("has no key `{name}`"), Some(hint.to_owned()))
            })
        };
        let name = need("name")?;
        if name.text()? != stem {
            let hint = format!("write `name: {stem}`, or call the file {}.yaml", name.text()?);
            return Err(name.wrong(format!("is not the name of the file (`{stem}`)"), Some(hint)));
        }
        let api = read_api(need("api")?)?;
        let address = need("base_url")?;
        let base = BaseUrl::parse(address.text()?)
            .map_err(|why| address.wrong(why, Some("such as https://api.example.com/v1".to_owned())))?;
        let mut warnings = Vec::new();
        let headers = match fields.get("headers") {
            Some(headers) => read_headers(headers, &mut warnings)?,
            None => IndexMap::new(),
        };
        let options = match fields.get("options") {
            Some(options) => read_options(options, &mut warnings)?,
            None => Map::new(),
        };
        let models: Vec<ModelEntry> = match fields.get("models") {
            Some(models) => models
                .entries()?
                .into_iter()
                .map(|(pattern, entry)| read_model(pattern, &entry, &mut warnings))
                .collect::<Result<_>>()?,
            None => Vec::new(),
        };
        let secret_header = headers.iter().find(|(name, value)| ProviderFile::is_secret_header(name, value));
        let mut all_options = options.iter().chain(models.iter().flat_map(|entry| &entry.options));
        let secret_option = all_options
            .find(|(name, value)| !secret::variables_in(value).is_empty() || secret::is_written(name, value));
        let secret = match (&key, secret_header, secret_option) {
            (Some(_), ..) => Some(("a key", "`key`".to_owned())),
            (None, Some((name, _)), _) => Some(("a secret header", format!("`headers.{name}`"))),
            (None, None, Some((name, _))) => Some(("a secret option", format!("`options.{name}`"))),
            (None, None, None) => None,
        };
        if let Some((secret, field)) = secret.as_ref().filter(|_| !base.default.may_receive_secrets()) {
            let what = format!("is not encrypted, so others on the network could read {secret}");
            let hint = format!("write https://, or leave out {field} if the server needs none");
            return Err(address.wrong(what, Some(hint)));
        }
        let tiers = match fields.get("tiers") {
            Some(tiers) => tiers
                .entries()?
                .into_iter()
                .map(|(tier, model)| Ok((tier, model.text()?.to_owned())))
                .collect::<Result<_>>()?,
            None => IndexMap::new(),
        };
        Ok(ProviderFile {
            name: stem.to_owned(),
            api,
            base_url: base.default.text().to_owned(),
            base,
            is_redirected: false,
            sends_secrets: secret.is_some(),
            key,
            headers,
            tiers,
            models,
            currency: fields.get("currency").map(read_currency).transpose()?.unwrap_or_else(|| "USD".into()),
            timeouts: fields.get("timeouts").map(read_timeouts).transpose()?.unwrap_or_default(),
            retry: fields.get("retry").map(read_retry).transpose()?.unwrap_or_default(),
            rate: fields.get("rate").map(read_rate).transpose()?.unwrap_or_default(),
            options,
            stream: fields.get("stream").map(Setting::boolean).transpose()?.unwrap_or(true),
            tool_mode: fields.get("tool_mode").map(read_tool_mode).transpose()?.unwrap_or_default(),
            file: source.name().to_owned(),
            warnings,
        })
    }

    /// The same file with the address that the environment gives it, if the file names a variable for it and the variable is set.
    ///
    /// # Errors
    ///
    /// `CB719` if the variable holds no address that requests can be sent to. The value is not part of the error.
    pub(super) fn in_environment(
        &self,
        environment: fn(&str) -> Option<String>,
    ) -> Result<Option<ProviderFile>> {
        let Some(name) = &self.base.variable else { return Ok(None) };
        let Some(value) = environment(name) else { return Ok(None) };
        let wrong = |why: &str, hint: &str| {
            let message = format!("the environment variable {name} {why}");
            let diagnostic = Diagnostic::new(Code::BadProviderFile, message).hint(hint);
            Error::new(ErrorKind::Config, diagnostic).with("variable", name).with("provider", &self.name)
        };
        let address =
            self.base.with(&value).map_err(|why| wrong(&why, "set it as in https://api.example.com/v1"))?;
        if self.sends_secrets && !address.may_receive_secrets() {
            let why = "is not encrypted, and a key would be sent there";
            return Err(wrong(why, "set it to an address with https://, or to one on this machine"));
        }
        Ok(Some(ProviderFile { base_url: address.text().to_owned(), is_redirected: true, ..self.clone() }))
    }

    /// The environment variable that the address comes from.
    pub fn redirected_by(&self) -> Option<&str> {
        self.base.variable.as_deref().filter(|_| self.is_redirected)
    }

    /// What decides the address, for messages: the file, or a variable.
    pub fn address_source(&self) -> String {
        match self.redirected_by() {
            Some(variable) => format!("the environment variable {variable}"),
            None => format!("`base_url` in {}", self.file),
        }
    }

    /// Whether an address that a prompt names is this provider's, with or without the version at its end.
    pub(crate) fn is_at(&self, endpoint: &str) -> bool {
        let Ok(endpoint) = Address::parse(endpoint.trim()) else { return false };
        let rest = self.base_url.strip_prefix(endpoint.text());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// What is known of a model: of every detail, what the entry with the narrowest pattern says that says something.
    pub fn profile(&self, model: &str) -> Profile {
        let mut fitting: Vec<&ModelEntry> =
            self.models.iter().filter(|entry| entry.matcher.is_match(model)).collect();
        fitting.sort_by_key(|entry| std::cmp::Reverse(entry.weight()));
        let mut options = self.options.clone();
        for entry in fitting.iter().rev() {
            options.extend(entry.options.clone());
        }
        Profile {
            api: fitting.iter().find_map(|entry| entry.api).unwrap_or(self.api),
            context_window: fitting.iter().find_map(|entry| entry.context_window).unwrap_or(USUAL_WINDOW),
            max_output: fitting.iter().find_map(|entry| entry.max_output).unwrap_or(USUAL_OUTPUT),
            price: fitting.iter().find_map(|entry| entry.price),
            stream: fitting.iter().find_map(|entry| entry.stream).unwrap_or(self.stream),
            tool_mode: fitting.iter().find_map(|entry| entry.tool_mode).unwrap_or(self.tool_mode),
            options,
        }
    }

    /// Whether a pattern of the file fits a model.
    pub(super) fn knows(&self, model: &str) -> bool {
        self.models.iter().any(|entry| entry.matcher.is_match(model))
    }

    /// The models that the file names.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let named = self.models.iter().filter(|entry| entry.is_exact()).map(|entry| entry.pattern.as_str());
        self.tiers.values().map(String::as_str).chain(named)
    }

    /// The variables of the environment that the file names, for its key, in headers and in options. What they hold is secret.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.values().flat_map(|value| variables_of(value));
        let options = self.all_options().flat_map(|options| options.values().flat_map(secret::variables_in));
        self.key.as_deref().into_iter().chain(headers).chain(options)
    }

    /// The options of every request, and those of some models.
    fn all_options(&self) -> impl Iterator<Item = &Map<String, Json>> {
        std::iter::once(&self.options).chain(self.models.iter().map(|entry| &entry.options))
    }

    /// Whether the value of a header is a secret: by its name, by its look, or because it comes from the environment.
    pub(super) fn is_secret_header(name: &str, value: &str) -> bool {
        variables_of(value).next().is_some() || is_written_secret(name, value)
    }

    /// Secrets that stand in the file itself, each as it stands there and without the word before it, as in `Bearer`.
    pub(crate) fn written_secrets(&self) -> impl Iterator<Item = String> {
        let mut options = redact::Secrets::new();
        self.all_options().for_each(|some| secret::note(some, &mut options));
        let options: Vec<String> = options.values().map(str::to_owned).collect();
        let written = self.headers.iter().filter(|(name, value)| is_written_secret(name, value));
        let headers = written.flat_map(|(_, value)| {
            let value = value.trim();
            let last = value.rsplit_once([' ', ':']).map(|(_, last)| last.to_owned());
            std::iter::once(value.to_owned()).chain(last)
        });
        headers.chain(options)
    }
}

/// Whether a header holds a secret that stands in the file, and not in the environment.
fn is_written_secret(name: &str, value: &str) -> bool {
    let mut variables = variables_of(value).peekable();
    if variables.peek().is_some() && variables.all(is_variable) {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let mut reported = Json::from(value);
    redact::field(name, &mut reported);
    reported != value || lower.ends_with("key") || lower.ends_with("token")
}

fn read_api(setting: &Setting) -> Result<Api> {
    setting.word(&APIS.map(|(name, _)| name)).map(|index| APIS[index].1)
}

fn read_tool_mode(setting: &Setting) -> Result<ToolMode> {
    Ok([ToolMode::Native, ToolMode::Text][setting.word(&["native", "text"])?])
}

/// What stands for a variable of the environment begins like this, and ends with `}`.
pub(super) const VARIABLE: &str = "${env:";

/// The names of the variables that stand in a value.
pub(super) fn variables_of(value: &str) -> impl Iterator<Item = &str> {
    value.split(VARIABLE).skip(1).filter_map(|behind| Some(behind.split_once('}')?.0))
}

pub(super) fn is_variable(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(letters) && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Refuses an address that may hold a password or a key.
fn refuse_secret_address(address: &Setting) -> Result<()> {
    let json = address.json();
    let text = json.as_str().filter(|text| text.contains(['@', '?', '#'])).unwrap_or_default();
    match BaseUrl::parse(text) {
        Err(why) if !text.is_empty() => {
            Err(address.wrong_unseen(why, Some("such as https://api.example.com/v1".to_owned())))
        }
        _ => Ok(()),
    }
}

fn read_variable(setting: &Setting) -> Result<String> {
    match setting.json().as_str().filter(|name| is_variable(name)) {
        Some(name) => Ok(name.to_owned()),
        None => {
            let hint =
                "write the variable's name, such as OPENAI_API_KEY, and set the key in the environment";
            Err(setting.wrong_unseen("must be the name of an environment variable", Some(hint.to_owned())))
        }
    }
}

/// Reads headers. No message shows their lines where a secret stands among them.
fn read_headers(setting: &Setting, warnings: &mut Vec<Diagnostic>) -> Result<IndexMap<String, String>> {
    const OURS: [&str; 6] =
        ["host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"];
    let mut headers = IndexMap::new();
    let entries = setting.entries()?;
    let is_secret = |(name, value): (&String, &Setting)| {
        let json = value.json();
        is_written_secret(name, json.as_str().unwrap_or(&json.to_string()))
    };
    let hidden = entries.iter().any(is_secret);
    let wrong = |value: &Setting, what: &str, hint: Option<&str>| match hidden {
        true => value.wrong_unseen(what, hint.map(str::to_owned)),
        false => value.wrong(what, hint.map(str::to_owned)),
    };
    for (name, value) in entries {
        if ureq::http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(wrong(&value, "is not the name of a header", None));
        }
        if OURS.iter().any(|ours| ours.eq_ignore_ascii_case(&name)) {
            return Err(wrong(&value, "is a header that Cuebook sets itself", Some("leave it out")));
        }
        let Ok(text) = value.text() else {
            return Err(wrong(&value, "must be a non-empty string", Some("write it in quotes")));
        };
        if ureq::http::HeaderValue::from_str(text).is_err() {
            return Err(wrong(&value, "has a character that headers do not allow", None));
        }
        refuse_broken(&value, text)?;
        if is_written_secret(&name, text) {
            warnings.extend(stands_here(&value, "is"));
        }
        headers.insert(name, text.to_owned());
    }
    Ok(headers)
}

/// Refuses a text that begins to name a variable, and does not end.
fn refuse_broken(setting: &Setting, text: &str) -> Result<()> {
    if !secret::is_broken(text) {
        return Ok(());
    }
    let hint = "write the name of a variable, such as ${env:GATEWAY_TOKEN}";
    let what = "has a `${env:` without a name and `}`";
    Err(setting.wrong_unseen(what, Some(hint.to_owned())))
}

/// That something is a secret that stands in the file, or holds one.
fn stands_here(setting: &Setting, is: &str) -> impl Iterator<Item = Diagnostic> + use<> {
    let hint = "put it into an environment variable and write ${env:NAME} instead, because anyone who can read the file can read the secret";
    let error = setting.wrong_unseen(format!("{is} a secret in the file"), Some(hint.to_owned()));
    error.into_diagnostics().into_iter().map(|finding| finding.severity(Severity::Warning))
}

fn read_model(pattern: String, setting: &Setting, warnings: &mut Vec<Diagnostic>) -> Result<ModelEntry> {
    let fields = setting.fields(&[
        "context_window",
        "max_output",
        "price",
        "api",
        "stream",
        "tool_mode",
        "options",
    ])?;
    let glob = GlobBuilder::new(&pattern).literal_separator(false).build();
    let matcher = glob
        .map_err(|error| setting.wrong(format!("is not a valid pattern: {}", error.kind()), None))?
        .compile_matcher();
    Ok(ModelEntry {
        pattern,
        matcher,
        context_window: fields.get("context_window").map(Setting::whole).transpose()?,
        max_output: fields.get("max_output").map(Setting::whole).transpose()?,
        price: fields.get("price").map(read_price).transpose()?,
        api: fields.get("api").map(read_api).transpose()?,
        stream: fields.get("stream").map(Setting::boolean).transpose()?,
        tool_mode: fields.get("tool_mode").map(read_tool_mode).transpose()?,
        options: match fields.get("options") {
            Some(options) => read_options(options, warnings)?,
            None => Map::new(),
        },
    })
}

fn read_price(setting: &Setting) -> Result<Price> {
    let fields = setting.fields(&["input", "cached", "output"])?;
    let money =
        |name: &str| fields.get(name).map(|amount| amount.amount().map(Money::from_units)).transpose();
    match (money("input")?, money("output")?) {
        (Some(input), Some(output)) => Ok(Price { input, cached: money("cached")?, output }),
        _ => {
            let hint = "as in {input: 3, cached: 0.3, output: 15}, for a million tokens";
            Err(setting.wrong("needs `input` and `output`", Some(hint.to_owned())))
        }
    }
}

fn read_currency(setting: &Setting) -> Result<String> {
    let text = setting.text()?;
    match !text.is_empty() && text.chars().all(char::is_alphanumeric) {
        true => Ok(text.to_owned()),
        false => Err(setting.wrong("must be the name of a currency", Some("as in USD".to_owned()))),
    }
}

fn read_timeouts(setting: &Setting) -> Result<Timeouts> {
    let fields = setting.fields(&["connect", "first_byte", "idle", "total"])?;
    let usual = Timeouts::default();
    let time = |name: &str, usual: Duration| match fields.get(name) {
        None => Ok(usual),
        Some(field) => match Duration::try_from_secs_f64(field.amount()?) {
            // A week: longer waits are a slip of the pen, and far from what clocks can count.
            Ok(time) if !time.is_zero() && time <= Duration::from_secs(604_800) => Ok(time),
            _ => Err(field.wrong("must be more than 0 and at most 604800 seconds", None)),
        },
    };
    Ok(Timeouts {
        connect: time("connect", usual.connect)?,
        first_byte: time("first_byte", usual.first_byte)?,
        idle: time("idle", usual.idle)?,
        total: time("total", usual.total)?,
    })
}

fn read_retry(setting: &Setting) -> Result<Retry> {
    let fields = setting.fields(&["attempts", "base", "max", "after_text"])?;
    let usual = Retry::default();
    let attempts = match fields.get("attempts") {
        None => usual.attempts,
        Some(field) => match field.whole()? {
            attempts @ 1..=100 => attempts as u32,
            _ => return Err(field.wrong("must be from 1 to 100", None)),
        },
    };
    let pause = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(field) => match field.amount()? {
            pause if pause <= 86_400.0 => Ok(Some(pause)),
            _ => Err(field.wrong("must be at most 86400 seconds (one day)", None)),
        },
    };
    Ok(Retry {
        attempts,
        base: pause("base")?,
        max: pause("max")?,
        after_text: fields.get("after_text").map(Setting::boolean).transpose()?.unwrap_or(false),
    })
}

fn read_rate(setting: &Setting) -> Result<Rate> {
    let fields = setting.fields(&["requests", "tokens"])?;
    let amount = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(field) => match field.amount()? {
            amount if amount > 0.0 => Ok(Some(amount)),
            _ => Err(field.wrong("must be more than 0", Some("leave it out for no limit".to_owned()))),
        },
    };
    Ok(Rate { requests: amount("requests")?, tokens: amount("tokens")? })
}

fn read_options(setting: &Setting, warnings: &mut Vec<Diagnostic>) -> Result<Map<String, Json>> {
    let entries = setting.entries()?;
    // What decides how an answer is read is said elsewhere in the file.
    if let Some(stream) = entries.get("stream") {
        let (what, hint) = ("is not an option", Some("write `stream` beside `options`".to_owned()));
        return Err(match entries.iter().any(|(name, option)| secret::is_written(name, &option.json())) {
            true => stream.wrong_unseen(what, hint),
            false => stream.wrong(what, hint),
        });
    }
    for (name, option) in &entries {
        let mut json = option.json();
        if secret::is_written(name, &json) {
            warnings.extend(stands_here(option, if json.is_string() { "is" } else { "holds" }));
        }
        secret::each_text(&mut json, &mut |text| refuse_broken(option, text))?;
    }
    match setting.json() {
        Json::Object(options) => Ok(options),
        _ => Ok(Map::new()),
    }
}

#[cfg(test)]
mod tests;
