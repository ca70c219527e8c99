//! The directive that most of these tests run.

use std::process::Output;

use cuebook_mock::Script;

use crate::setup::Setup;

pub const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <limits turns="4" tokens="20000" spend="0.5" />
    <permissions><execute><tool>rye.bash.bash</tool></execute><acknowledge risk="elevated">It only sleeps.</acknowledge></permissions>
  </metadata>
  <inputs><input name="user" type="string" required="true">Who</input></inputs>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet {input:user}.
"#;

/// A directive that may start it, and any other.
pub const PARENT: &str = r#"# Parent

```xml
<directive name="parent" version="1.0.0">
  <metadata>
    <description>Have others greet.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <permissions><execute><directive>demo.*</directive></execute></permissions>
  </metadata>
</directive>
```

Have somebody greeted.
"#;

pub const THREADED: [&str; 6] = ["execute", "directive", "demo/greet", "--param", "user=Ann", "--thread"];

/// A project that has it.
pub fn stage(script: Script) -> Setup {
    Setup::new(script, &[(".ai/directives/demo/greet.md", GREET)])
}

impl Setup {
    /// Runs it in a thread, with further words.
    pub fn threaded(&self, more: &[&str]) -> Output {
        let args: Vec<&str> = THREADED.iter().chain(more).copied().collect();
        self.run(&args)
    }
}
