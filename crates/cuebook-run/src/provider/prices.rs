//! What the tokens of a prompt cost to read, where a provider's file has the price.

use std::fmt;

use cuebook::Book;
use serde_json::{Value as Json, json};

use super::{ModelPreference, Providers};
use crate::money::Money;

/// The prices of models.
#[derive(Debug)]
pub struct Prices(Option<Providers>);

/// What a request costs to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    amount: Money,
    /// The price of a million tokens.
    price: Money,
    currency: String,
    provider: String,
}

impl Prices {
    /// Those that the project, the user and the program know. Files that cannot be read have no prices; other commands report them.
    pub fn known(book: &Book) -> Prices {
        Prices(Providers::new(book.library().spaces(), book.library().trust()).ok())
    }

    /// What a model asks for reading so many tokens; `None` if no model is named, or its price is not known.
    pub fn of(&self, model: Option<&str>, tokens: usize) -> Option<Cost> {
        let preference = ModelPreference { id: model, ..ModelPreference::default() };
        let chosen = self.0.as_ref()?.resolve(&preference).ok().filter(|_| model.is_some())?;
        let price = chosen.price?.input;
        let amount = Money::of_tokens(u64::try_from(tokens).ok()?, price);
        let (currency, provider) = (chosen.provider.currency.clone(), chosen.provider.name.clone());
        Some(Cost { amount, price, currency, provider })
    }
}

impl Cost {
    /// The sum of costs, if all of them are in one currency.
    pub fn sum(costs: &[Cost]) -> Option<Cost> {
        let (first, rest) = costs.split_first()?;
        let is_one = rest.iter().all(|cost| cost.currency == first.currency);
        is_one.then(|| {
            rest.iter().fold(first.clone(), |sum, cost| Cost { amount: sum.amount + cost.amount, ..sum })
        })
    }

    /// The cost as scripts see it; null if it is not known.
    pub fn json(cost: Option<Cost>) -> Json {
        cost.map_or(Json::Null, |cost| {
            json!({
                "amount": cost.amount.to_json(),
                "currency": cost.currency,
                "per_million": cost.price.to_json(),
                "provider": cost.provider,
            })
        })
    }

    /// The cost and the price that it follows from.
    pub fn describe(&self) -> String {
        let Cost { price, currency, provider, .. } = self;
        format!("{self} to read once, at {price} {currency} for a million tokens ({provider})")
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}
