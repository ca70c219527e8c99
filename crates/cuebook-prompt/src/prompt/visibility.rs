//! How much of a section is shown.

/// How much of a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// All of it: the body, the tools, the sections below.
    Full,
    /// Its summary, and how to see more.
    Summary,
}

impl Visibility {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Visibility::Full => "full",
            Visibility::Summary => "summary",
        }
    }

    /// The visibility of this name.
    pub fn named(name: &str) -> Option<Visibility> {
        [Visibility::Full, Visibility::Summary].into_iter().find(|visibility| visibility.as_str() == name)
    }
}
