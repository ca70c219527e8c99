//! What provider files say, and what is said of mistakes in them.

use super::*;

fn read(text: &str) -> Result<ProviderFile> {
    ProviderFile::read(&Source::new("p.yaml", text), "p")
}

const HEAD: &str = "name: p\napi: openai-chat\nbase_url: https://x.example/v1\n";

fn wrong(more: &str) -> (String, Option<String>, usize) {
    let error = read(&format!("{HEAD}{more}")).unwrap_err();
    assert_eq!(error.code(), Code::BadProviderFile);
    let diagnostic = error.diagnostic();
    let line = diagnostic.place.as_ref().map_or(0, |place| place.line());
    (diagnostic.message.clone(), diagnostic.hint.as_deref().map(str::to_owned), line)
}

#[test]
fn a_file_that_says_little_has_defaults() {
    let file = read(HEAD).unwrap();
    assert_eq!((file.key.clone(), file.stream, file.tool_mode), (None, true, ToolMode::Native));
    assert_eq!((file.timeouts, file.retry), (Timeouts::default(), Retry::default()));
    let profile = file.profile("anything");
    assert_eq!((profile.context_window, profile.max_output, profile.price), (200_000, 16_384, None));
}

#[test]
fn the_narrowest_pattern_decides_each_detail() {
    let models = "options: {a: 1}\nmodels:\n  'm-*': {context_window: 10, max_output: 5, options: {a: 2, b: 1}}\n  \
                  m-big: {price: {input: 3, output: 15}}\n  'm-b*': {context_window: 20, tool_mode: text}\n";
    let file = read(&format!("{HEAD}{models}")).unwrap();
    let big = file.profile("m-big");
    assert_eq!((big.context_window, big.max_output, big.tool_mode), (20, 5, ToolMode::Text));
    assert_eq!(big.price.unwrap().output, Money::from_units(15.0));
    assert_eq!(Json::Object(big.options), serde_json::json!({"a": 2, "b": 1}));
    assert_eq!(file.profile("m-small").price, None);
    assert_eq!(Json::Object(file.profile("x").options), serde_json::json!({"a": 1}));
}

#[test]
fn mistakes_are_reported_at_their_places() {
    let (message, hint, line) = wrong("retry: {attempt: 3}\n");
    assert_eq!((message.as_str(), line), ("unknown key `attempt` in `retry`", 4));
    assert_eq!(hint.as_deref(), Some("did you mean `attempts`?"));
    assert_eq!(wrong("models:\n  m: {price: {input: 3}}\n").0, "`models.m.price` needs `input` and `output`");
    assert_eq!(wrong("timeouts: {idle: 0}\n").2, 4);
    assert_eq!(wrong("options: {stream: true}\n").0, "`options.stream` is not an option");
    assert_eq!(wrong("headers: {Host: x}\n").0, "`headers.Host` is a header that Cuebook sets itself");
    assert_eq!(wrong("models: {'[': {}}\n").2, 4);
    let other = ProviderFile::read(&Source::new("q.yaml", HEAD), "q").unwrap_err();
    assert_eq!(other.diagnostic().message, "`name` is not the name of the file (`q`)");
    let api = read("name: p\napi: openai_chat\nbase_url: https://x.example\n").unwrap_err();
    assert_eq!(api.diagnostic().hint.as_deref(), Some("did you mean `openai-chat`?"));
}

#[test]
fn prices_are_amounts_in_a_currency() {
    let (message, _, line) = wrong("models:\n  m: {price: {input: -1, output: 2}}\n");
    assert_eq!(message, "`models.m.price.input` must be a number of at least 0, but is -1");
    assert_eq!(line, HEAD.lines().count() + 2);
    assert_eq!(read(HEAD).unwrap().currency, "USD");
    assert_eq!(read(&format!("{HEAD}currency: EUR\n")).unwrap().currency, "EUR");
    assert!(wrong("currency: 'U S D'\n").0.contains("must be the name of a currency"));
}

#[test]
fn a_key_in_the_place_of_its_name_is_not_repeated() {
    for key in ["sk-live-0123456789", "violet-42"] {
        let error = read(&format!("{HEAD}key: {key}\nretires: 3\n")).unwrap_err();
        let shown = cuebook::error::report(error.diagnostics(), false);
        assert!(shown.contains("must be the name of an environment variable"), "{shown}");
        for reported in [shown, error.to_string(), error.to_json().to_string()] {
            assert!(!reported.contains(key), "{reported}");
        }
    }
}

#[test]
fn keys_do_not_travel_in_the_open() {
    let with = |url: &str| read(&format!("name: p\napi: anthropic\nbase_url: {url}\nkey: K\n"));
    assert!(with("http://api.example.com/v1").is_err());
    for url in [
        "https://a.example",
        "http://localhost:8080",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://10.0.0.7:8000",
    ] {
        assert!(with(url).is_ok(), "{url}");
    }
    for url in ["ftp://x", "https://u:p@x.example", "https://x.example/v1?key=1", "https://", "x"] {
        assert!(with(url).is_err(), "{url}");
    }
}

#[test]
fn secrets_of_headers_do_not_travel_in_the_open_either() {
    let with = |url: &str, headers: &str| {
        read(&format!("name: p\napi: openai-chat\nbase_url: {url}\nheaders: {headers}\n"))
    };
    for headers in ["{Authorization: 'Bearer ${env:TOKEN}'}", "{X-Team: '${env:TEAM}'}", "{X-Api-Key: abc}"] {
        let error = with("http://api.example.com/v1", headers).unwrap_err();
        let diagnostic = error.diagnostic();
        assert!(
            diagnostic
                .message
                .contains("is not encrypted, so others on the network could read a secret header"),
            "{error}"
        );
        assert!(diagnostic.hint.as_deref().is_some_and(|hint| hint.contains("`headers.")), "{error}");
        assert!(with("https://api.example.com/v1", headers).is_ok());
        assert!(with("http://localhost:8080", headers).is_ok());
    }
    assert!(with("http://api.example.com/v1", "{X-Team: blue}").is_ok());
}

#[test]
fn every_variable_that_a_file_names_is_known() {
    let file =
        read(&format!("{HEAD}key: K\nheaders: {{A: 'x ${{env:ONE}}-${{env:TWO}}', B: plain}}\n")).unwrap();
    assert_eq!(file.variables().collect::<Vec<_>>(), ["K", "ONE", "TWO"]);
    for value in ["${env:ONE", "${env:}", "${env:A B}", "${env:A}${env:", "${env:${env:A}}"] {
        let (message, hint, _) = wrong(&format!("headers: {{A: '{value}'}}\n"));
        assert!(message.contains("has a `${env:` without a name"), "{message}");
        assert!(hint.is_some_and(|hint| hint.contains("${env:GATEWAY_TOKEN}")));
    }
}

#[test]
fn secrets_among_options_are_known_wherever_they_stand() {
    let more = "options: {service_tier: flex, api_key: violet-42, max_tokens: 5}\nmodels:\n  m:\n    options:\n      \
                extra: {Authorization: Bearer green-4242}\n      user: '${env:TEAM}'\n      prompt_cache_key: project-1\n";
    let file = read(&format!("{HEAD}{more}")).unwrap();
    assert_eq!(file.variables().collect::<Vec<_>>(), ["TEAM"]);
    assert_eq!(file.written_secrets().collect::<Vec<_>>(), ["Bearer green-4242", "green-4242", "violet-42"]);
    let reported: Vec<&str> = file.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        reported,
        [
            "`options.api_key` is a secret in the file (line 4)",
            "`models.m.options.extra` holds a secret in the file (line 8)",
        ]
    );
    let shown = format!("{file:?} {:?} {:?} {reported:?}", file.models, file.profile("m"));
    assert!(!shown.contains("violet") && !shown.contains("green"), "{shown}");
    let (message, ..) = wrong("options: {billing_key: acct-7f3e9b, stream: true}\n");
    assert_eq!(message, "`options.stream` is not an option (line 4)");
    assert!(wrong("options: {a: [{b: '${env:'}]}\n").0.contains("has a `${env:` without a name"));
    // They do not travel in the open.
    for option in ["api_key: violet-42", "user: '${env:TEAM}'"] {
        let text = format!(
            "name: p\napi: openai-chat\nbase_url: http://api.example.com/v1\nmodels: {{m: {{options: {{{option}}}}}}}\n"
        );
        let error = read(&text).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is not encrypted, so others on the network could read a secret option"),
            "{error}"
        );
        assert!(!error.to_json().to_string().contains("violet"), "{error}");
    }
}
