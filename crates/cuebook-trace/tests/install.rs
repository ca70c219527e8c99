//! The front, once per process, since a program has one subscriber.
#![allow(clippy::unwrap_used)]

use cuebook_trace::{InstallError, Tracing};

#[test]
fn it_is_installed_once_and_only_if_something_is_wanted() {
    let off = Tracing::default();
    assert!(off.is_off() && off.recorder().is_none());
    drop(off.install().unwrap());
    assert!(tracing::info_span!(target: "cuebook", "render").is_disabled(), "nothing was installed");

    let folder = tempfile::tempdir().unwrap();
    let wanted = Tracing { tracy: Some(folder.path().to_owned()), ..Tracing::default() };
    let guard = wanted.install().unwrap();
    assert_eq!(wanted.install().unwrap_err(), InstallError::Taken);
    tracing::callsite::rebuild_interest_cache();
    std::thread::spawn(|| {
        let span = tracing::info_span!(target: "cuebook", "render", prompt = "greeting");
        assert!(!span.is_disabled());
        assert!(tracing::info_span!(target: "elsewhere", "render").is_disabled(), "others stay cheap");
    })
    .join()
    .unwrap();
    drop(guard);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(not(feature = "otel"))]
#[test]
fn without_the_feature_a_collector_is_refused() {
    let error = Tracing { otel: true, ..Tracing::default() }.install().unwrap_err();
    assert_eq!(error, InstallError::NoOtel);
    assert!(error.to_string().contains("feature `otel`"));
}
