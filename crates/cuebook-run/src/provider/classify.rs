//! What kind of failure it is, and whether asking again may help.
//!
//! Rules are data: the first that fits decides. A failure that no rule knows will not go away by itself. Two rules differ from Rye:
//! 529 is what Anthropic answers when it has too much to do, and 408 and the gateways' own 520 to 524 pass too.

use serde_json::{Value as Json, json};

use super::Category;

/// What is known of a failure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fault<'a> {
    /// The status of the reply; 0 if there was no reply.
    pub status: Option<u16>,
    /// What kind of error it is, in the provider's words, as in `overloaded_error`.
    pub kind: Option<&'a str>,
    /// The provider's code for it, as in `insufficient_quota`.
    pub code: Option<&'a str>,
    /// What the provider says.
    pub message: Option<&'a str>,
}

/// When to ask again. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// After a pause that doubles every time.
    Exponential {
        /// The first pause.
        base: f64,
        /// The longest one.
        max: f64,
    },
    /// When the server says, and as above where it says nothing.
    Header {
        /// The header.
        name: &'static str,
        /// The first pause.
        base: f64,
        /// The longest one.
        max: f64,
    },
}

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// What kind of reason it is.
    pub category: Category,
    /// The name of the rule; `None` if no rule fits.
    pub code: Option<&'static str>,
    /// When to ask again; `None` if that does not help.
    pub policy: Option<Policy>,
}

/// What a rule looks at.
enum Sign {
    Status(&'static [u16]),
    /// The kind or the code, in any case.
    Named(&'static [&'static str]),
    /// Words of the message, as they are written.
    Says(&'static [&'static str]),
}

struct Rule {
    sign: Sign,
    code: &'static str,
    category: Category,
    policy: Option<Policy>,
}

const BY_HEADER: Option<Policy> = Some(Policy::Header { name: "retry-after", base: 2.0, max: 60.0 });
const SOON: Option<Policy> = Some(Policy::Exponential { base: 2.0, max: 30.0 });
const NO_REPLY: Option<Policy> = Some(Policy::Exponential { base: 3.0, max: 30.0 });
const LINK: Option<Policy> = Some(Policy::Exponential { base: 2.0, max: 60.0 });
const SERVER: Option<Policy> = Some(Policy::Exponential { base: 2.0, max: 120.0 });

const fn rule(sign: Sign, code: &'static str, category: Category, policy: Option<Policy>) -> Rule {
    Rule { sign, code, category, policy }
}

const RULES: &[Rule] = &[
    // It comes with 429, and waiting does not fill an account.
    rule(
        Sign::Named(&["insufficient_quota", "billing_hard_limit_reached", "billing_error"]),
        "quota_exhausted",
        Category::Permanent,
        None,
    ),
    rule(Sign::Status(&[429]), "http_429", Category::RateLimited, BY_HEADER),
    rule(Sign::Status(&[0]), "http_0_connection", Category::Transient, NO_REPLY),
    rule(Sign::Status(&[401, 403]), "auth_failure", Category::Permanent, None),
    rule(Sign::Status(&[422]), "validation_error", Category::Permanent, None),
    rule(Sign::Status(&[500, 502, 503, 504]), "http_5xx", Category::Transient, SERVER),
    rule(Sign::Status(&[408]), "network_timeout", Category::Transient, SOON),
    rule(Sign::Status(&[529, 520, 521, 522, 523, 524]), "http_overloaded", Category::Transient, SOON),
    rule(Sign::Named(&["cancellederror", "cancelled"]), "cancelled", Category::Cancelled, None),
    rule(
        Sign::Named(&[
            "rate_limit_error",
            "ratelimiterror",
            "rate_limit_exceeded",
            "resource_exhausted",
            "too_many_requests",
        ]),
        "http_429",
        Category::RateLimited,
        BY_HEADER,
    ),
    rule(
        Sign::Named(&["timeouterror", "readtimeout", "connecttimeout", "timeout", "timeout_error"]),
        "network_timeout",
        Category::Transient,
        SOON,
    ),
    rule(
        Sign::Named(&["connectionerror", "connectionreseterror", "connecterror"]),
        "network_connection",
        Category::Transient,
        LINK,
    ),
    rule(
        Sign::Named(&["authentication_error", "authorization_error"]),
        "auth_failure",
        Category::Permanent,
        None,
    ),
    rule(Sign::Named(&["validationerror"]), "validation_error", Category::Permanent, None),
    rule(
        Sign::Named(&[
            "overloaded_error",
            "api_error",
            "server_error",
            "internal_error",
            "internal_server_error",
            "service_unavailable",
            "unavailable",
            "internal",
            "deadline_exceeded",
        ]),
        "provider_transient",
        Category::Transient,
        SOON,
    ),
    rule(
        Sign::Says(&["rate limit", "too many requests", "throttled"]),
        "http_429",
        Category::RateLimited,
        BY_HEADER,
    ),
    rule(Sign::Says(&["timed out", "timeout"]), "network_timeout", Category::Transient, SOON),
    rule(
        Sign::Says(&["connection refused", "connection reset", "network"]),
        "network_connection",
        Category::Transient,
        LINK,
    ),
];

/// Says what kind of failure it is.
///
/// ```
/// use cuebook_run::provider::{Category, Fault, classify};
///
/// let overloaded = classify(&Fault { status: Some(529), ..Fault::default() });
/// assert_eq!(overloaded.category, Category::Transient);
/// ```
pub fn classify(fault: &Fault<'_>) -> Class {
    let fits = |rule: &&Rule| match &rule.sign {
        Sign::Status(all) => fault.status.is_some_and(|status| all.contains(&status)),
        Sign::Named(names) => [fault.kind, fault.code]
            .into_iter()
            .flatten()
            .any(|said| names.iter().any(|name| name.eq_ignore_ascii_case(said))),
        // A status that no rule knows is not explained away by words.
        Sign::Says(words) => {
            let plain = fault.status.is_none_or(|status| status < 400);
            plain && fault.message.is_some_and(|said| words.iter().any(|word| said.contains(word)))
        }
    };
    match RULES.iter().find(fits) {
        Some(rule) => Class { category: rule.category, code: Some(rule.code), policy: rule.policy },
        None => Class { category: Category::Permanent, code: None, policy: None },
    }
}

impl Policy {
    /// The pause before asking again for the time after `attempt`, which counts from zero.
    pub fn delay(&self, attempt: u32) -> f64 {
        let (Policy::Exponential { base, max } | Policy::Header { base, max, .. }) = *self;
        (base * 2f64.powi(i32::try_from(attempt).unwrap_or(i32::MAX))).min(max)
    }

    fn to_json(self) -> Json {
        match self {
            Policy::Exponential { base, max } => json!({"type": "exponential", "base": base, "max": max}),
            Policy::Header { name, base, max } => json!({"type": "use_header", "header": name,
                "fallback": {"type": "exponential", "base": base, "max": max}}),
        }
    }
}

impl Class {
    /// Whether asking again may help.
    pub fn retryable(&self) -> bool {
        self.policy.is_some()
    }

    /// The class as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut class = json!({"category": self.category.as_str(), "retryable": self.retryable()});
        if let Some(code) = self.code {
            class["retry_policy"] = self.policy.map_or(Json::Null, Policy::to_json);
            class["code"] = json!(code);
        }
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn category(status: Option<u16>, kind: Option<&str>, message: Option<&str>) -> Category {
        classify(&Fault { status, kind, code: None, message }).category
    }

    #[test]
    fn an_empty_account_is_not_a_rate_limit() {
        let fault = Fault { status: Some(429), code: Some("insufficient_quota"), ..Fault::default() };
        assert_eq!(classify(&fault).category, Category::Permanent);
        assert_eq!(category(Some(429), Some("rate_limit_error"), None), Category::RateLimited);
    }

    #[test]
    fn words_do_not_explain_a_status_away() {
        assert_eq!(category(Some(400), None, Some("timeout must be a number")), Category::Permanent);
        assert_eq!(category(None, None, Some("the upstream timed out")), Category::Transient);
        assert_eq!(category(Some(404), None, None), Category::Permanent);
    }

    #[test]
    fn providers_names_for_trouble_are_known_in_any_case() {
        for kind in ["overloaded_error", "UNAVAILABLE", "INTERNAL", "api_error"] {
            assert_eq!(category(None, Some(kind), None), Category::Transient, "{kind}");
        }
        assert_eq!(category(None, Some("RESOURCE_EXHAUSTED"), None), Category::RateLimited);
        assert_eq!(category(None, Some("invalid_request_error"), None), Category::Permanent);
    }

    #[test]
    fn classes_and_retry_times_are_those_of_rye() {
        for (status, kind, code, pause) in [
            (Some(503), None, "http_5xx", Some(64.0)),
            (Some(422), None, "validation_error", None),
            (None, Some("ReadTimeout"), "network_timeout", Some(30.0)),
            (None, Some("ConnectionResetError"), "network_connection", Some(60.0)),
            (None, Some("RateLimitError"), "http_429", Some(60.0)),
        ] {
            let class = classify(&Fault { status, kind, ..Fault::default() });
            assert_eq!(class.code, Some(code));
            assert_eq!(class.policy.map(|policy| policy.delay(5)), pause, "{code}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = Policy::Exponential { base: 2.0, max: 30.0 };
        assert_eq!(
            [0, 1, 2, 3, 4, 1000].map(|attempt| policy.delay(attempt)),
            [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
        );
    }
}
