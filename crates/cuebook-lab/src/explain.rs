//! Where a rendered prompt came from: the place that was chosen and why, the layer of every variable, the origin of every
//! byte. The engine knows that ([`Explanation`]); here are its page and its picture.

mod page;
mod picture;

use crate::book::Book;
use crate::error::Result;
use crate::variables::{Context, Variables};
pub use cuebook::explain::{Answer, ExplainedVariable, Explanation, Piece, Position, label};
pub use page::{is_page, page};
pub use picture::{is_picture, picture};

/// Everything about one render: which place and why, the layer of every variable, the origin of every byte.
pub fn explain(
    book: &Book,
    prompt_id: &str,
    variables: &Variables,
    context: &Context,
) -> Result<Explanation> {
    let (prepared, rendered) = book.render_and_keep(prompt_id, variables, context)?;
    Ok(Explanation::new(prepared, rendered))
}
