//! All of it in one call.

use std::fmt;
use std::path::PathBuf;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::{Console, Recorder, Tracy, is_ours};

/// Where traces shall go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracing {
    /// A folder for `.tracy` files.
    pub tracy: Option<PathBuf>,
    /// Lines on stderr.
    pub console: bool,
    /// A collector of OpenTelemetry, as the `OTEL_…` variables of the environment say. Needs the feature `otel`.
    pub otel: bool,
}

/// Why tracing could not be installed. A program may go on without it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// The program has a subscriber already; add the layers to that one.
    Taken,
    /// This build has no OpenTelemetry.
    NoOtel,
    /// The exporter could not be built; usually a variable of the environment is wrong.
    Exporter(String),
}

/// Keeps tracing installed; dropped, it sends what is under way.
#[derive(Debug)]
#[must_use = "dropped at once, it ends the export of spans before there are any"]
pub struct Guard {
    #[cfg(feature = "otel")]
    otel: Option<crate::otel::Provider>,
}

impl Tracing {
    /// Whether anything is wanted.
    pub fn is_off(&self) -> bool {
        *self == Tracing::default()
    }

    /// The recorder that this asks for, for a subscriber of one's own; `None` if it asks for no backend of a recorder.
    pub fn recorder(&self) -> Option<Recorder> {
        let mut recorder = None;
        if let Some(folder) = &self.tracy {
            recorder = Some(Recorder::new().with(Tracy::new(folder)));
        }
        if self.console {
            recorder = Some(recorder.unwrap_or_default().with(Console::stderr()));
        }
        recorder
    }

    /// Installs it for the whole program. If nothing is wanted, nothing is installed, and spans stay disabled.
    pub fn install(&self) -> Result<Guard, InstallError> {
        #[cfg(not(feature = "otel"))]
        if self.otel {
            return Err(InstallError::NoOtel);
        }
        if self.is_off() {
            return Ok(Guard::empty());
        }
        let recorder = self.recorder().map(|recorder| recorder.with_filter(filter_fn(is_ours)));
        let registry = tracing_subscriber::registry().with(recorder);
        #[cfg(feature = "otel")]
        if self.otel {
            let provider = crate::otel::Provider::from_environment().map_err(InstallError::Exporter)?;
            let layer = crate::otel::layer(&provider).with_filter(filter_fn(is_ours));
            registry.with(layer).try_init().map_err(|_| InstallError::Taken)?;
            return Ok(Guard { otel: Some(provider) });
        }
        registry.try_init().map_err(|_| InstallError::Taken)?;
        Ok(Guard::empty())
    }
}

impl Guard {
    fn empty() -> Guard {
        Guard {
            #[cfg(feature = "otel")]
            otel: None,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Files and lines are written when a trace ends; only the exporter has anything under way.
        #[cfg(feature = "otel")]
        if let Some(provider) = self.otel.take() {
            provider.shutdown();
        }
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::Taken => {
                f.write_str("this program has a `tracing` subscriber already; add the layers to that one")
            }
            InstallError::NoOtel => {
                f.write_str("this build has no OpenTelemetry; build `cuebook-cli`, or `cuebook-trace` for your own program, with the feature `otel`")
            }
            InstallError::Exporter(message) => {
                write!(f, "cannot build the OpenTelemetry exporter: {message}")
            }
        }
    }
}

impl std::error::Error for InstallError {}
