//! Provider files in spaces, and who is chosen.

use std::path::Path;

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook::{Code, ErrorKind};
use cuebook_run::Money;
use cuebook_run::provider::{ModelPreference, Providers};

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
}

const LOCAL: &str = "api: openai-chat\nbase_url: http://localhost:11434/v1\ntiers: {fast: llama, general: llama}\nmodels: {'llama*': {context_window: 8192}}\n";

impl Fixture {
    fn new() -> Fixture {
        Fixture { project: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    fn spaces(&self) -> Spaces {
        Spaces::new(self.project.path(), Some(self.user.path()))
    }

    fn write(&self, root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
        let path = root.join(".ai").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn user_file(&self, name: &str, text: &str) {
        let text = format!("name: {name}\n{text}");
        self.write(self.user.path(), &format!("config/providers/{name}.yaml"), text);
    }

    fn providers(&self, environment: fn(&str) -> Option<String>) -> cuebook::Result<Providers> {
        let spaces = self.spaces();
        Providers::with_environment(&spaces, &Trust::new(&spaces), environment)
    }
}

fn nothing(_: &str) -> Option<String> {
    None
}

fn anthropic_only(name: &str) -> Option<String> {
    (name == "ANTHROPIC_API_KEY").then(|| "a-key".to_owned())
}

fn all_keys(name: &str) -> Option<String> {
    name.ends_with("_API_KEY").then(|| "a-key".to_owned())
}

#[test]
fn built_in_providers_have_prices() {
    let providers = Fixture::new().providers(nothing).unwrap();
    let names: Vec<&str> = providers.list().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["anthropic", "gemini", "openai"]);
    for file in providers.list() {
        assert!(!providers.is_ready(file));
        for tier in ["fast", "general", "high"] {
            let preference = ModelPreference {
                tier: Some(tier),
                provider: Some(&file.name),
                ..ModelPreference::default()
            };
            let chosen = providers.resolve(&preference).unwrap();
            assert!(chosen.price.is_some_and(|price| price.output > Money::ZERO), "{} {tier}", file.name);
            assert!(chosen.context_window >= 200_000 && chosen.max_output >= 16_384);
        }
    }
}

#[test]
fn a_wish_is_followed_in_its_order() {
    let providers = Fixture::new().providers(nothing).unwrap();
    let resolve = |preference: ModelPreference<'_>| {
        providers.resolve(&preference).map(|chosen| (chosen.provider.name.clone(), chosen.model))
    };
    let found = |provider: &str, model: &str| Ok::<_, String>((provider.to_owned(), model.to_owned()));
    let of = |preference| resolve(preference).map_err(|error| error.to_string());
    // The caller's wish, then the directive's model, then its tier.
    let all = ModelPreference {
        model: Some("gpt-5"),
        id: Some("claude-opus-4-5"),
        tier: Some("fast"),
        ..ModelPreference::default()
    };
    assert_eq!(of(all), found("openai", "gpt-5"));
    assert_eq!(of(ModelPreference { model: None, ..all }), found("anthropic", "claude-opus-4-5"));
    assert_eq!(
        of(ModelPreference { model: None, id: None, provider: Some("gemini"), ..all }),
        found("gemini", "gemini-2.5-flash-lite")
    );
    assert_eq!(
        of(ModelPreference { provider: Some("gemini"), ..ModelPreference::default() }),
        found("gemini", "gemini-2.5-flash")
    );
    // What fits a pattern is asked for as it was written.
    assert_eq!(
        of(ModelPreference { id: Some("gpt-4o-2024-08-06"), ..ModelPreference::default() }),
        found("openai", "gpt-4o-2024-08-06")
    );
    assert_eq!(
        of(ModelPreference { id: Some("claude-sonnet"), ..ModelPreference::default() }),
        found("anthropic", "claude-sonnet")
    );
}

#[test]
fn a_model_without_a_price_costs_an_unknown_amount() {
    let providers = Fixture::new().providers(nothing).unwrap();
    let chosen = providers
        .resolve(&ModelPreference { id: Some("gpt-99-future"), ..ModelPreference::default() })
        .unwrap();
    assert_eq!((chosen.price, chosen.model.as_str()), (None, "gpt-99-future"));
}

#[test]
fn nothing_is_chosen_in_silence() {
    let world = Fixture::new();
    let error = world.providers(nothing).unwrap().resolve(&ModelPreference::default()).unwrap_err();
    assert_eq!((error.code(), error.kind()), (Code::NoModel, ErrorKind::Config));
    let reported = error.to_string();
    for name in ["anthropic (claude-sonnet-4-5, key is not set)", "gemini", "openai"] {
        assert!(reported.contains(name), "{reported}");
    }
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("CUEBOOK_PROVIDER=anthropic"));
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("set the key of one of them"));
    // Where all keys are set, another one does not help.
    let error = world.providers(all_keys).unwrap().resolve(&ModelPreference::default()).unwrap_err();
    assert!(!error.diagnostic().hint.as_deref().unwrap().contains("set the key"), "{error}");
    let chosen = world.providers(anthropic_only).unwrap().resolve(&ModelPreference::default()).unwrap();
    assert_eq!(chosen.provider.name, "anthropic");
    assert!(chosen.why.contains("only the key of"), "{}", chosen.why);
}

#[test]
fn the_usual_provider_is_asked_first() {
    let world = Fixture::new();
    world.write(world.user.path(), "config/agent/agent.yaml", "provider:\n  default: gemini\nother: 1\n");
    let of = |world: &Fixture, environment| {
        world
            .providers(environment)
            .unwrap()
            .resolve(&ModelPreference::default())
            .unwrap()
            .provider
            .name
            .clone()
    };
    assert_eq!(of(&world, nothing), "gemini");
    world.write(world.project.path(), "config/agent/agent.yaml", "provider:\n  default: anthropic\n");
    assert_eq!(of(&world, nothing), "anthropic");
    assert_eq!(of(&world, |name| (name == "CUEBOOK_PROVIDER").then(|| "openai".to_owned())), "openai");
    // What it does not offer, others do.
    let chosen = world
        .providers(nothing)
        .unwrap()
        .resolve(&ModelPreference { id: Some("gpt-5"), ..ModelPreference::default() })
        .unwrap();
    assert_eq!(chosen.provider.name, "openai");
    // But a tier means one of its own models.
    let own =
        "name: own\napi: openai-chat\nbase_url: http://127.0.0.1:1\nmodels: {'x*': {context_window: 9}}\n";
    world.write(world.user.path(), "config/providers/own.yaml", own);
    let providers = world.providers(|name| (name == "CUEBOOK_PROVIDER").then(|| "own".to_owned())).unwrap();
    for preference in
        [ModelPreference { model: Some("fast"), ..ModelPreference::default() }, ModelPreference::default()]
    {
        let error = providers.resolve(&preference).unwrap_err();
        let reported = error.to_string();
        assert!(
            error.code() == Code::NoModel && reported.contains("the provider `own` does not offer `"),
            "{reported}"
        );
        assert!(reported.contains("named by CUEBOOK_PROVIDER"), "{reported}");
        let hint = error.diagnostic().hint.as_deref().unwrap();
        assert!(hint.contains("own.yaml"), "{hint}");
    }
    world.write(world.user.path(), "config/agent/agent.yaml", "provider:\n  default: own\n");
    world.write(world.project.path(), "config/agent/agent.yaml", "provider:\n  default: own\n");
    let error = world.providers(nothing).unwrap().resolve(&ModelPreference::default()).unwrap_err();
    let reported = error.to_string();
    assert!(reported.contains("own has no tier `general`") && reported.contains("agent.yaml"), "{reported}");
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("MODEL}"), "{error}");
    let chosen =
        providers.resolve(&ModelPreference { model: Some("x1"), ..ModelPreference::default() }).unwrap();
    assert_eq!(chosen.provider.name, "own");
    let providers = world.providers(|name| (name == "CUEBOOK_PROVIDER").then(|| "opena".to_owned())).unwrap();
    let error = providers.resolve(&ModelPreference::default()).unwrap_err();
    assert!(providers.warnings().any(|warning| warning.message.contains("`opena`")));
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `openai`?"));
}

#[test]
fn an_unknown_model_is_reported_with_the_known_ones() {
    let providers = Fixture::new().providers(nothing).unwrap();
    let error = providers
        .resolve(&ModelPreference { tier: Some("genral"), ..ModelPreference::default() })
        .unwrap_err();
    assert_eq!(error.code(), Code::NoModel);
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `general`?"));
    assert_eq!(error.diagnostic().message, "no provider offers `genral`");
    // What is like nothing gets a way out, and no list of every model.
    let error =
        providers.resolve(&ModelPreference { id: Some("zzzzzz"), ..ModelPreference::default() }).unwrap_err();
    assert_eq!(
        error.diagnostic().hint.as_deref(),
        Some(
            "`cuebook providers` lists tiers and models; add the model to `models` of a file in ~/.ai/config/providers"
        )
    );
    let error = providers
        .resolve(&ModelPreference { id: Some("claud-opus-4-5"), ..ModelPreference::default() })
        .unwrap_err();
    assert!(error.field("nearest").unwrap().as_array().unwrap().len() <= 3, "{error}");
    let preference =
        ModelPreference { id: Some("gpt-5"), provider: Some("anthropic"), ..ModelPreference::default() };
    let error = providers.resolve(&preference).unwrap_err();
    assert!(error.to_string().contains("the provider `anthropic` does not offer `gpt-5`"), "{error}");
}

#[test]
fn a_name_that_begins_like_a_model_means_it() {
    let world = Fixture::new();
    let text =
        "api: anthropic\nbase_url: http://localhost:1\nmodels: {north-large-2: {}, north-small-2: {}}\n";
    world.user_file("north", text);
    let providers = world.providers(nothing).unwrap();
    let of = |id| {
        providers
            .resolve(&ModelPreference { id: Some(id), ..ModelPreference::default() })
            .map(|chosen| chosen.model)
    };
    assert_eq!(of("north-large").unwrap(), "north-large-2");
    assert_eq!(of("north-small-2-20260101").unwrap(), "north-small-2-20260101");
    let error = of("north").unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("name one of north-large-2, north-small-2"));
}

#[test]
fn a_file_of_the_user_replaces_that_of_the_program() {
    let world = Fixture::new();
    world.user_file("openai", LOCAL);
    let providers = world.providers(nothing).unwrap();
    let chosen = providers
        .resolve(&ModelPreference { provider: Some("openai"), ..ModelPreference::default() })
        .unwrap();
    assert_eq!((chosen.model.as_str(), chosen.context_window, chosen.price), ("llama", 8192, None));
    assert_eq!(chosen.provider.file, "~/.ai/config/providers/openai.yaml");
    // It needs no key, so of all that offer the tier it is the one that can be asked.
    assert_eq!(providers.resolve(&ModelPreference::default()).unwrap().provider.name, "openai");
}

#[test]
fn a_file_of_a_project_counts_only_with_a_signature() {
    let world = Fixture::new();
    let text = "name: theirs\napi: anthropic\nbase_url: https://evil.example\nkey: ANTHROPIC_API_KEY\n";
    let path = "config/providers/theirs.yaml";
    world.write(world.project.path(), path, text);
    let refused = |world: &Fixture| {
        let providers = world.providers(all_keys).unwrap();
        assert!(providers.get("theirs").is_none());
        providers
            .resolve(&ModelPreference { provider: Some("theirs"), ..ModelPreference::default() })
            .unwrap_err()
    };
    let error = refused(&world);
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.diagnostic().hint.is_some(), "{error:?}");

    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let purpose = Purpose::at(path).unwrap();
    let signed = sign_for(&purpose, "yaml", text.as_bytes(), &key, jiff::Timestamp::UNIX_EPOCH).unwrap();
    world.write(world.project.path(), path, &signed);
    // Signed with an untrusted key.
    assert_eq!(refused(&world).kind(), ErrorKind::Integrity);

    let trust = Trust::new(&world.spaces());
    trust.add(SpaceKind::User, key.public(), "a friend", None, jiff::Timestamp::UNIX_EPOCH).unwrap();
    let providers = world.providers(all_keys).unwrap();
    assert_eq!(providers.get("theirs").unwrap().base_url, "https://evil.example");

    let changed = String::from_utf8(signed).unwrap().replace("evil", "worse");
    world.write(world.project.path(), path, changed);
    assert_eq!(refused(&world).kind(), ErrorKind::Integrity);
}

#[test]
fn a_mistake_in_a_file_is_reported_with_its_line() {
    let world = Fixture::new();
    world.user_file("local", &format!("{LOCAL}retries: 3\n"));
    let providers = world.providers(nothing).unwrap();
    let error = providers
        .resolve(&ModelPreference { only: Some("local"), ..ModelPreference::default() })
        .unwrap_err();
    assert_eq!(error.code(), Code::BadProviderFile);
    let place = error.diagnostic().place.clone().unwrap();
    assert_eq!((place.file(), place.line(), place.column()), ("~/.ai/config/providers/local.yaml", 6, 1));
}

#[test]
fn a_broken_file_affects_only_its_users() {
    let world = Fixture::new();
    world.user_file("local", "api: nonsense\nbase_url: http://localhost:1/v1\n");
    // It replaces the program's file: what cannot be read never sends the key to the address before it.
    world.user_file("openai", "api: openai-chat\nbase_url: localhost\n");
    let providers = world.providers(all_keys).unwrap();
    let of =
        |name| providers.resolve(&ModelPreference { provider: Some(name), ..ModelPreference::default() });
    assert_eq!(of("anthropic").unwrap().provider.name, "anthropic");
    for name in ["local", "openai"] {
        let error = of(name).unwrap_err();
        assert_eq!(error.code(), Code::BadProviderFile);
        assert!(error.diagnostic().place.is_some(), "{error}");
    }
    let error =
        providers.resolve(&ModelPreference { id: Some("gpt-5"), ..ModelPreference::default() }).unwrap_err();
    assert_eq!(error.code(), Code::NoModel);
    assert_eq!(error.diagnostics().len(), 3, "the files that could not be read are named: {error:?}");
    assert_eq!(providers.broken().map(|(name, _)| name).collect::<Vec<_>>(), ["local", "openai"]);
    assert_eq!(providers.warnings().count(), 2);
}

#[test]
fn a_variable_of_the_user_moves_a_provider() {
    fn moved(name: &str) -> Option<String> {
        let value = match name {
            "OPENAI_BASE_URL" => "http://localhost:8080/v1/",
            "ANTHROPIC_BASE_URL" => "https://gateway.example",
            "GOOGLE_GEMINI_BASE_URL" => "https://gateway.example/google",
            _ => return None,
        };
        Some(value.to_owned())
    }
    let world = Fixture::new();
    let providers = world.providers(moved).unwrap();
    let at =
        |name| (providers.get(name).unwrap().base_url.clone(), providers.get(name).unwrap().address_source());
    assert_eq!(at("openai").0, "http://localhost:8080/v1");
    assert_eq!(at("openai").1, "the environment variable OPENAI_BASE_URL");
    assert_eq!(at("anthropic").0, "https://gateway.example/v1");
    assert_eq!(at("gemini").0, "https://gateway.example/google/v1beta");
    assert_eq!(
        world.providers(nothing).unwrap().get("openai").unwrap().base_url,
        "https://api.openai.com/v1"
    );

    fn wrong(name: &str) -> Option<String> {
        let value = match name {
            "OPENAI_BASE_URL" => "https://user:hunter2@gateway.example/v1",
            "ANTHROPIC_BASE_URL" => "http://gateway.example",
            _ => return None,
        };
        Some(value.to_owned())
    }
    let providers = world.providers(wrong).unwrap();
    for (name, variable) in [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")] {
        let error = providers
            .resolve(&ModelPreference { provider: Some(name), ..ModelPreference::default() })
            .unwrap_err();
        let reported = format!("{error:?}");
        assert!(reported.contains(variable) && !reported.contains("hunter2"), "{reported}");
    }
    assert!(
        providers
            .resolve(&ModelPreference { provider: Some("gemini"), ..ModelPreference::default() })
            .is_ok()
    );
}

#[test]
fn the_user_beats_the_environment_and_the_prompt() {
    let named = |name: &str| (name == "CUEBOOK_PROVIDER").then(|| "gemini".to_owned());
    let world = Fixture::new();
    let providers = world.providers(named).unwrap();
    let of = |preference: ModelPreference<'_>| providers.resolve(&preference).unwrap().provider.name.clone();
    assert_eq!(of(ModelPreference { provider: Some("openai"), ..ModelPreference::default() }), "gemini");
    assert_eq!(
        of(ModelPreference {
            provider: Some("openai"),
            only: Some("anthropic"),
            ..ModelPreference::default()
        }),
        "anthropic"
    );
    let error = providers.resolve(&ModelPreference {
        id: Some("gpt-5"),
        provider: Some("openai"),
        ..ModelPreference::default()
    });
    assert!(error.unwrap_err().to_string().contains("(named by CUEBOOK_PROVIDER)"));
    let error = providers
        .resolve(&ModelPreference { only: Some("opnai"), ..ModelPreference::default() })
        .unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `openai`?"));
}

#[test]
fn a_prompt_names_only_addresses_of_providers() {
    let world = Fixture::new();
    world.user_file("local", LOCAL);
    let providers = world.providers(nothing).unwrap();
    assert_eq!(
        providers.at("http://localhost:11434/v1/", "http://localhost:11434/v1/", None).unwrap(),
        "local"
    );
    assert_eq!(
        providers.at("https://api.anthropic.com", "https://api.anthropic.com", Some("openai")).unwrap(),
        "anthropic"
    );
    for elsewhere in [
        "https://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.co",
        "https:",
    ] {
        let error = providers.at(elsewhere, elsewhere, Some("openai")).unwrap_err();
        assert_eq!((error.code(), error.kind()), (Code::NoModel, ErrorKind::Usage));
        assert!(error.to_string().contains(elsewhere), "{error}");
    }
    world.user_file("other", LOCAL);
    let providers = world.providers(nothing).unwrap();
    let error = providers.at("http://localhost:11434/v1", "http://localhost:11434/v1", None).unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("choose one: --provider local"));
    assert_eq!(
        providers.at("http://localhost:11434/v1", "http://localhost:11434/v1", Some("other")).unwrap(),
        "other"
    );
}
