//! Spans in, an export out: into memory, and over HTTP to a collector that decodes what it gets.
#![cfg(feature = "otel")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cuebook_trace::otel::{CAPTURE, Provider, layer};
use cuebook_trace::{Tracing, is_ours};
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Array, Value};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use prost::Message;
use tracing::field::Empty;
use tracing::info_span;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

const SECRET: &str = "violet-sky-42";

/// A run with a render, a call of a model that fails, and a tool.
fn a_run() {
    let run = info_span!(target: "cuebook", "run", signature = "cuebook.run", prompt = "greeting", inputs = Empty, result = Empty);
    run.record("inputs", format!(r#"{{"city":"Oslo","apiKey":"{SECRET}"}}"#));
    let _run = run.enter();
    drop(info_span!(target: "cuebook", "render", result = format!("Use {SECRET} in Oslo")));
    drop(info_span!(
        target: "cuebook", "execute",
        gen_ai.operation.name = "chat", gen_ai.provider.name = "openai", gen_ai.request.model = "gpt-4o",
        gen_ai.request.temperature = 0.5, gen_ai.request.max_tokens = 100u64,
        gen_ai.usage.input_tokens = 12u64, gen_ai.usage.output_tokens = 3i64,
        gen_ai.response.finish_reasons = r#"["stop","length"]"#,
        authorization = "Bearer x",
        error = format!(r#"{{"type":"ModelError","message":"{SECRET} was refused"}}"#),
    ));
    drop(info_span!(target: "cuebook", "embed", gen_ai.operation.name = "embeddings"));
    drop(
        info_span!(target: "cuebook", "execute_tool", gen_ai.operation.name = "execute_tool", error.type = "timeout"),
    );
    drop(info_span!(target: "elsewhere", "request", password = "p"));
}

fn in_memory(content: bool) -> BTreeMap<String, SpanData> {
    let exporter = InMemorySpanExporter::default();
    let provider = Provider::to(exporter.clone(), content);
    let subscriber = Registry::default().with(layer(&provider).with_filter(filter_fn(is_ours)));
    tracing::subscriber::with_default(subscriber, a_run);
    provider.flush();
    let spans = exporter.get_finished_spans().unwrap();
    spans.into_iter().map(|span| (span.name.to_string(), span)).collect()
}

fn attribute(span: &SpanData, name: &str) -> Option<Value> {
    span.attributes.iter().find(|it| it.key.as_str() == name).map(|it| it.value.clone())
}

#[test]
fn attributes_keep_their_names_and_get_their_types() {
    let spans = in_memory(false);
    let execute = &spans["execute"];
    let reported = |name: &str| attribute(execute, name).unwrap();
    assert_eq!(reported("gen_ai.operation.name"), "chat".into());
    assert_eq!(reported("gen_ai.provider.name"), "openai".into());
    assert_eq!(reported("gen_ai.request.model"), "gpt-4o".into());
    assert_eq!(reported("gen_ai.request.temperature"), Value::F64(0.5));
    assert_eq!(reported("gen_ai.request.max_tokens"), Value::I64(100));
    assert_eq!(reported("gen_ai.usage.input_tokens"), Value::I64(12));
    assert_eq!(reported("gen_ai.usage.output_tokens"), Value::I64(3));
    let reasons = vec!["stop".into(), "length".into()];
    assert_eq!(reported("gen_ai.response.finish_reasons"), Value::Array(Array::String(reasons)));
    assert_eq!(attribute(&spans["run"], "prompt"), Some("greeting".into()));
}

#[test]
fn calls_of_a_model_are_of_a_client_and_all_else_is_internal() {
    let kinds: Vec<(String, SpanKind)> =
        in_memory(false).into_iter().map(|(name, it)| (name, it.span_kind)).collect();
    let expected = [
        ("embed", SpanKind::Client),
        ("execute", SpanKind::Client),
        ("execute_tool", SpanKind::Internal),
        ("render", SpanKind::Internal),
        ("run", SpanKind::Internal),
    ];
    assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn frames_of_one_run_are_one_trace() {
    let spans = in_memory(false);
    let run = &spans["run"].span_context;
    for name in ["render", "execute", "embed", "execute_tool"] {
        assert_eq!(spans[name].span_context.trace_id(), run.trace_id());
        assert_eq!(spans[name].parent_span_id, run.span_id());
    }
}

#[test]
fn an_error_has_a_type_and_a_status() {
    let spans = in_memory(true);
    assert_eq!(attribute(&spans["execute"], "error.type"), Some("ModelError".into()));
    assert!(
        matches!(&spans["execute"].status, Status::Error { description } if description.ends_with("was refused"))
    );
    assert_eq!(attribute(&spans["execute_tool"], "error.type"), Some("timeout".into()));
    assert!(matches!(&spans["execute_tool"].status, Status::Error { .. }));
    assert_eq!(spans["render"].status, Status::Unset);
}

#[test]
fn messages_are_exported_only_with_permission() {
    for span in in_memory(false).values() {
        for name in ["inputs", "result", "error"] {
            assert_eq!(attribute(span, name), None, "{name}");
        }
    }
    let spans = in_memory(true);
    let inputs = r#"{"city":"Oslo","apiKey":"[REDACTED]"}"#;
    assert_eq!(attribute(&spans["run"], "inputs"), Some(inputs.into()));
    // Exported before the run that says what is a secret.
    assert_eq!(attribute(&spans["render"], "result"), Some("Use [REDACTED] in Oslo".into()));
}

/// A collector that takes exports and hands their bodies on.
fn collector(answer: &'static str) -> (u16, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let send = send.clone();
            std::thread::spawn(move || serve(stream.unwrap(), answer, &send));
        }
    });
    (port, receive)
}

fn serve(stream: TcpStream, answer: &str, send: &mpsc::Sender<(String, Vec<u8>)>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        send.send((head, body)).unwrap();
        write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
    }
}

/// The program that is traced: what the tests below start, with an environment of its own.
#[test]
#[ignore = "a program that other tests start"]
fn the_program() {
    let guard = Tracing { otel: true, ..Tracing::default() }.install().unwrap();
    a_run();
    drop(guard);
}

fn the_program_with(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command
        .args(["--exact", "the_program", "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text_of<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    match attributes.iter().find(|it| it.key == name)?.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[test]
fn dropping_the_guard_sends_all_spans() {
    let (port, received) = collector("200 OK");
    let endpoint = format!("http://127.0.0.1:{port}");
    let output = the_program_with(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue"),
        (CAPTURE, "true"),
    ]);
    assert!(output.status.success(), "{output:?}");

    let (head, body) = received.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(head.starts_with("POST /v1/traces "), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("content-type: application/x-protobuf") && head.contains("x-tenant: blue"),
        "{head}"
    );
    assert!(
        !body.windows(SECRET.len()).any(|it| it == SECRET.as_bytes()),
        "the secret is nowhere in the export"
    );

    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    let resource = &request.resource_spans[0];
    assert_eq!(text_of(&resource.resource.as_ref().unwrap().attributes, "service.name"), Some("cuebook"));
    let spans: BTreeMap<&str, _> = resource
        .scope_spans
        .iter()
        .flat_map(|scope| &scope.spans)
        .map(|span| (span.name.as_str(), span))
        .collect();
    assert_eq!(
        spans.keys().copied().collect::<Vec<_>>(),
        ["embed", "execute", "execute_tool", "render", "run"]
    );
    let execute = spans["execute"];
    assert_eq!(execute.kind, 3, "a client");
    assert_eq!(execute.parent_span_id, spans["run"].span_id);
    assert_eq!(text_of(&execute.attributes, "gen_ai.request.model"), Some("gpt-4o"));
    assert_eq!(text_of(&execute.attributes, "authorization"), Some("[REDACTED]"));
    assert_eq!(execute.status.as_ref().unwrap().message, "[REDACTED] was refused");
    assert_eq!(text_of(&spans["render"].attributes, "result"), Some("Use [REDACTED] in Oslo"));
    let mut names: Vec<&str> = spans["run"].attributes.iter().map(|it| it.key.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["inputs", "prompt", "signature"], "nothing that we did not say");
}

#[test]
fn content_stays_at_home_unless_the_environment_allows_it() {
    let (port, received) = collector("200 OK");
    let endpoint = format!("http://127.0.0.1:{port}/v1/traces");
    let variables =
        [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str()), ("OTEL_SERVICE_NAME", "shop")];
    assert!(the_program_with(&variables).status.success());
    let (_, body) = received.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(!body.windows(4).any(|it| it == b"Oslo"));
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text_of(&resource.attributes, "service.name"), Some("shop"));
}

#[test]
fn a_collector_that_refuses_or_is_away_costs_one_warning() {
    let (port, _received) = collector("400 Bad Request");
    let refuses = format!("http://127.0.0.1:{port}");
    // Bound and dropped, so that no server listens there.
    let away = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for endpoint in [refuses, away] {
        let start = Instant::now();
        let output = the_program_with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        assert_eq!(stderr.matches("cannot send spans").count(), 1, "{stderr}");
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
