//! PostgreSQL servers that cannot be reached, or not like this.

use cuebook::Code;
use cuebook_run::store::{Authenticity, Filter, PostgresStore, Store as _};

use crate::server::{PASSWORD, server};
use crate::support::*;

fn refused(url: &str) -> String {
    let error = PostgresStore::connect(url, key()).unwrap_err();
    assert_eq!(error.code(), Code::StoreFailed);
    assert!(error.diagnostic().hint.is_some());
    let said = format!("{error} {error:?} {}", error.to_json());
    assert!(!said.contains("hunter2") && !said.contains(PASSWORD), "{said}");
    said
}

#[test]
fn a_password_never_shows() {
    // No server listens at these.
    let said = refused("postgres://somebody:hunter2@127.0.0.1:1/threads");
    assert!(said.contains("postgres://somebody@127.0.0.1:1/threads"), "{said}");
    refused("postgres://somebody@127.0.0.1:1/threads?password=hunter2");
    // Addresses that cannot be understood.
    for url in [
        "postgres://somebody:hunter2?hunter2@127.0.0.1/threads",
        "postgres://somebody:hunter2/hunter2@127.0.0.1/threads",
        "postgres://somebody:hunter2@127.0.0.1:hunter2/threads",
        "postgresql://somebody:%zzhunter2@127.0.0.1:1/threads?hunter2",
    ] {
        refused(url);
    }
    let Some(server) = server() else { return };
    if std::env::var_os("CUEBOOK_TEST_POSTGRES").is_none() {
        refused(&server.url.replace(PASSWORD, "hunter2"));
        let nowhere = server.url.strip_suffix("/postgres").unwrap();
        let said = refused(&format!("{nowhere}/nowhere"));
        assert!(said.contains("createdb"), "{said}");
    }
}

#[test]
fn privacy_is_what_the_address_asks_for() {
    let Some(server) = server() else { return };
    let Some(certificate) = &server.certificate else { return };
    let (place, schema) = fresh_schema().unwrap();
    let is_private = || {
        let asked = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE ssl AND application_name = 'cuebook'";
        admin().query_one(asked, &[]).unwrap().get::<_, i64>(0) > 0
    };
    // It is unknown who made the certificate.
    let said = refused(&format!("{place}&sslmode=require"));
    assert!(said.contains("sslrootcert"), "{said}");
    refused(&format!("{place}&sslmode=verify-full"));
    assert!(!is_private());
    for mode in ["prefer", "disable"] {
        PostgresStore::connect(&format!("{place}&sslmode={mode}"), key()).unwrap().begin(&new(1.0)).unwrap();
        assert!(!is_private());
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = format!("{place}&sslmode={mode}&sslrootcert={}", certificate.display());
        let store = PostgresStore::connect(&url, key()).unwrap();
        store.begin(&new(1.0)).unwrap();
        assert!(is_private(), "{mode}");
    }
    let said = refused(&format!("{place}&sslrootcert=/no/such/file%20here"));
    assert!(said.contains("/no/such/file here"), "{said}");
    admin().batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).unwrap();
}

#[test]
fn tables_of_a_newer_version_are_refused() {
    let Some(world) = Fixture::postgres() else { return };
    let schema = world.place.rsplit("%3D").next().unwrap();
    admin().batch_execute(&format!("UPDATE {schema}.cuebook_schema SET version = 99")).unwrap();
    assert!(refused(&world.place).contains("version 99"));
}

#[test]
fn a_connection_that_broke_is_replaced() {
    let Some(world) = Fixture::postgres() else { return };
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE pid <> pg_backend_pid() AND application_name = $1";
    // Other tests have connections too, so ours has a name of its own.
    let named = format!("{}&application_name=broken", world.place);
    let other = open(&named).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| other.begin(&child(&root, 0.1)).unwrap());
        }
    });
    for _ in 0..3 {
        admin().execute(end, &[&"broken"]).unwrap();
        other.standing(&root.id).unwrap().unwrap();
        admin().execute(end, &[&"broken"]).unwrap();
        append(&*other, &root, &with_cost(0.1)).unwrap();
    }
    audit(store, false);
}

#[test]
fn a_column_of_another_type_is_a_plain_error() {
    let Some(world) = Fixture::postgres() else { return };
    let record = world.store.begin(&new(1.0)).unwrap();
    world.change("ALTER TABLE cuebook_events ALTER COLUMN payload TYPE JSONB USING payload::jsonb");
    let store = open(&world.place).unwrap();
    for error in
        [store.events(&record.id, 0, 9).unwrap_err(), append(&*store, &record, &with_cost(0.1)).unwrap_err()]
    {
        let said = error.to_string();
        assert!(
            error.code() == Code::StoreFailed && !said.contains("Rust") && !said.contains("::Cell"),
            "{said}"
        );
        assert!(error.diagnostic().hint.as_deref().unwrap().contains("another program changed"), "{error:?}");
    }
    world.change("ALTER TABLE cuebook_threads ALTER COLUMN model TYPE JSONB USING '{}'::jsonb");
    let store = open(&world.place).unwrap();
    let listed = &store.list(&Filter::default()).unwrap()[0];
    let Authenticity::Damaged(why) = &listed.authenticity else { panic!("{listed:?}") };
    assert!(why.contains("a value of the type jsonb instead of a text"), "{why}");
}

#[test]
fn no_statement_and_no_lock_is_waited_for_without_end() {
    let Some(world) = Fixture::postgres() else { return };
    let record = world.store.begin(&new(1.0)).unwrap();
    // The server ends a statement of ours that takes too long; an address may say how long that is.
    let hasty = world.place.replace("options=", "options=-cstatement_timeout%3D300%20");
    let store = open(&hasty).unwrap();
    let place = format!("{}&sslmode=disable", world.place);
    let mut other = postgres::Client::connect(&place, postgres::NoTls).unwrap();
    other.batch_execute("BEGIN; LOCK TABLE cuebook_threads IN ACCESS EXCLUSIVE MODE").unwrap();
    let error = store.record(&record.id).unwrap_err();
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("took too long"), "{error:?}");
    other.batch_execute("ROLLBACK").unwrap();
    store.record(&record.id).unwrap().unwrap();
}
