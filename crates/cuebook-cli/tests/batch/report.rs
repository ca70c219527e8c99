//! `cuebook batch report`

use serde_json::Value as Json;

use crate::setup::{Setup, err, out};

#[test]
fn a_report_has_rates_percentiles_and_agreement() {
    let setup = Setup::echo();
    let line = |row: usize| {
        let (label, judge) = (row.is_multiple_of(2), row.is_multiple_of(2) || row % 10 == 1);
        format!("{{\"label\":{label},\"good_ok\":{judge},\"cost\":0.5,\"seconds\":2.0,\"error\":null}}\n")
    };
    setup.project.write("out.jsonl", (0..40).map(line).collect::<String>());
    let text = out(&setup.run(&["report", "out.jsonl"]));
    assert!(text.contains("out.jsonl: 40 rows, 0 errors"), "{text}");
    assert!(text.contains("label: 40 rows, 50.0 % passed (35.2 to 64.8)"), "{text}");
    assert!(text.contains("label and good_ok: 90.0 % of 40 rows are the same, kappa 0.800"), "{text}");
    let json: Json = serde_json::from_str(&out(&setup.run(&["report", "out.jsonl", "--json"]))).unwrap();
    assert_eq!((&json["cost"]["sum"], &json["rows"]), (&Json::from(20.0), &Json::from(40)));
    let html = setup.run(&["report", "out.jsonl", "--html", "report.html", "--verdict", "label"]);
    assert!(html.status.success(), "{}", err(&html));
    let page = setup.read("report.html");
    assert!(page.contains("<svg") && page.contains("label") && !page.contains("good_ok"), "{page}");
    assert!(!page.contains("http"), "the page loads something");
}

#[test]
fn a_report_has_the_costs_of_judges_and_of_jobs() {
    let setup = Setup::echo();
    // The batch interface of a provider says no time for a row.
    let line = |row: usize| {
        format!(
            "{{\"row\":{row},\"answer\":\"a\",\"good_stars\":1,\"good_cost\":0.25,\"good_error\":null,\"input_tokens\":100,\
             \"cached_tokens\":75,\"output_tokens\":2,\"cost\":0.5,\"seconds\":0.0,\"error\":null}}\n"
        )
    };
    setup.project.write("out.jsonl", (1..=4).map(line).collect::<String>());
    let text = out(&setup.run(&["report", "out.jsonl"]));
    for expected in [
        "cost: 2.000000 in all",
        "cost of judge good: 1.000000 in all; mean 0.250000",
        "cost with judges: 3.000000 in all",
        "tokens: 400 input, 300 of them cached (75.0 %), 8 output",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json: Json = serde_json::from_str(&out(&setup.run(&["report", "out.jsonl", "--json"]))).unwrap();
    assert_eq!((&json["total_cost"], &json["cached_share"]), (&Json::from(3.0), &Json::from(0.75)));
    assert_eq!(json["judges"]["good"]["cost"]["sum"], 1.0);
}

#[test]
fn values_stay_text_in_the_page() {
    let setup = Setup::echo();
    setup.project.write("out.jsonl", "{\"<b>\":\"<script>\"}\n".repeat(4));
    let page = setup.run(&["report", "out.jsonl", "--html", "report.html"]);
    assert!(page.status.success(), "{}", err(&page));
    let page = setup.read("report.html");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script") && !page.contains("<b>"), "{page}");
}

#[test]
fn a_column_that_is_missing_is_named() {
    let setup = Setup::echo();
    setup.project.write("out.jsonl", "{\"label\":true}\n");
    let error = err(&setup.run(&["report", "out.jsonl", "--verdict", "labl"]));
    assert!(error.contains("error[CB902]") && error.contains("did you mean `label`?"), "{error}");
}
