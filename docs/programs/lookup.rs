use std::path::Path;

use cuebook::items::Spaces;
use cuebook_run::{Engine, Ignore, Request};

fn main() -> std::io::Result<()> {
    let desk = Path::new("../desk").canonicalize()?;
    let engine = Engine::new(Spaces::of_project(&desk));
    for number in [8, 11] {
        let request = Request::new("tool", "desk/order").parameter("number", number);
        let answer = engine.execute(&request, &Ignore);
        println!("{}", answer["data"]);
    }
    let answer = engine.execute(&Request::new("tool", "desk/oder"), &Ignore);
    println!("{}: {}", answer["status"], answer["error"]);
    Ok(())
}
