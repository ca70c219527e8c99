use std::path::Path;

use cuebook::items::Spaces;
use cuebook_run::{Engine, ExecuteRequest};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let desk = Path::new("../desk").canonicalize()?;
    let engine = Engine::new(Spaces::of_project(&desk));
    for number in [8, 11] {
        let order = engine.execute(&ExecuteRequest::tool("desk/order").parameter("number", number))?;
        println!("{}", order.into_data());
    }
    let error = engine.execute(&ExecuteRequest::tool("desk/oder")).unwrap_err();
    println!("{}: {}", error.code(), error.diagnostic().message);
    println!("{}", error.diagnostic().advice().unwrap_or_default());
    Ok(())
}
