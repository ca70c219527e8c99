//! How much was read and written, in one way of counting.
//!
//! Providers count differently: Anthropic leaves what it took from its cache out of the input, Google leaves what the
//! model thought out of the output. Here both are counted in, as OpenAI does, so that figures can be compared.

use serde_json::{Map, Value as Json, json};

use super::Api;

/// Tokens of one reply. What a provider does not say is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens that the model read, from a cache or not.
    pub input: Option<u64>,
    /// Tokens that the model wrote, thoughts included.
    pub output: Option<u64>,
    /// All of them.
    pub total: Option<u64>,
    /// Those of the input that came from a cache.
    pub cached: Option<u64>,
    /// Those of the output that were thoughts.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Understands what a provider says about it; `None` if it says nothing that can be used.
    pub(super) fn read(api: Api, usage: Option<&Json>) -> Option<Usage> {
        let usage = usage?;
        let at = |path: &str| usage.pointer(path).and_then(Json::as_u64);
        let sum = |parts: &[Option<u64>]| parts.iter().flatten().copied().reduce(u64::saturating_add);
        let mut read = match api {
            Api::OpenAiChat | Api::OpenAiEmbeddings => Usage {
                input: at("/prompt_tokens"),
                output: at("/completion_tokens"),
                total: at("/total_tokens"),
                cached: at("/prompt_tokens_details/cached_tokens"),
                reasoning: at("/completion_tokens_details/reasoning_tokens"),
            },
            Api::OpenAiResponses | Api::OpenAiImages => Usage {
                input: at("/input_tokens"),
                output: at("/output_tokens"),
                total: at("/total_tokens"),
                cached: at("/input_tokens_details/cached_tokens"),
                reasoning: at("/output_tokens_details/reasoning_tokens"),
            },
            Api::Anthropic => Usage {
                input: sum(&[
                    at("/input_tokens"),
                    at("/cache_read_input_tokens"),
                    at("/cache_creation_input_tokens"),
                ]),
                output: at("/output_tokens"),
                total: None,
                cached: at("/cache_read_input_tokens"),
                reasoning: None,
            },
            Api::Gemini => Usage {
                input: sum(&[at("/promptTokenCount"), at("/toolUsePromptTokenCount")]),
                output: sum(&[at("/candidatesTokenCount"), at("/thoughtsTokenCount")]),
                total: at("/totalTokenCount"),
                cached: at("/cachedContentTokenCount"),
                reasoning: at("/thoughtsTokenCount"),
            },
        };
        if read == Usage::default() {
            return None;
        }
        read.total = read.total.or_else(|| sum(&[read.input, read.output]));
        Some(read)
    }

    /// The figures as scripts see them.
    pub fn to_json(&self) -> Json {
        let figures = [
            ("inputTokens", self.input),
            ("outputTokens", self.output),
            ("totalTokens", self.total),
            ("cachedTokens", self.cached),
            ("reasoningTokens", self.reasoning),
        ];
        let known = figures.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?))));
        Json::Object(known.collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_counted_in_one_way() {
        let read = |api, usage: Json| Usage::read(api, Some(&usage)).unwrap().to_json();
        assert_eq!(
            read(
                Api::OpenAiChat,
                json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                    "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}})
            ),
            json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedTokens": 4, "reasoningTokens": 2})
        );
        assert_eq!(
            read(
                Api::Anthropic,
                json!({"input_tokens": 6, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 5})
            ),
            json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedTokens": 4})
        );
        assert_eq!(
            read(
                Api::Gemini,
                json!({"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15})
            ),
            json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "reasoningTokens": 2})
        );
        assert_eq!(
            read(Api::OpenAiEmbeddings, json!({"prompt_tokens": 5, "total_tokens": 5})),
            json!({"inputTokens": 5, "totalTokens": 5})
        );
    }

    #[test]
    fn figures_that_are_none_are_left_out() {
        for usage in [
            json!(null),
            json!({}),
            json!("many"),
            json!({"prompt_tokens": "ten"}),
            json!({"prompt_tokens": -1}),
        ] {
            assert_eq!(Usage::read(Api::OpenAiChat, Some(&usage)), None, "{usage}");
        }
        let most = json!({"input_tokens": u64::MAX, "output_tokens": u64::MAX});
        assert_eq!(Usage::read(Api::Anthropic, Some(&most)).unwrap().total, Some(u64::MAX));
    }
}
