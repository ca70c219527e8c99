//! A report as one HTML page: tables, and bars that are drawn as SVG. It loads nothing, and values stay text.

use std::fmt::Write as _;

use super::{Report, Spread};

/// The width of the longest bar, and the height of each.
const WIDTH: f64 = 320.0;
const HEIGHT: usize = 22;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1d1d1f;\
background:#fff}table{border-collapse:collapse}td,th{padding:.2rem .9rem .2rem 0;text-align:left}\
svg text{font:13px system-ui,sans-serif;fill:currentColor}svg rect{fill:#4269d0}\
@media(prefers-color-scheme:dark){body{color:#eee;background:#16161a}svg rect{fill:#7d9bf0}}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Bars with a name and a number each.
fn bars(title: &str, values: &[(String, f64)], shown: impl Fn(f64) -> String) -> String {
    let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let height = values.len() * HEIGHT + 4;
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"{}\" width=\"660\" height=\"{height}\" viewBox=\"0 0 660 {height}\">",
        escaped(title)
    );
    for (index, (name, value)) in values.iter().enumerate() {
        let top = index * HEIGHT;
        let width = if most > 0.0 { (value / most * WIDTH).max(1.0) } else { 1.0 };
        let name: String = name.chars().take(28).collect();
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{y}\">{}</text><rect x=\"200\" y=\"{top}\" width=\"{width:.1}\" height=\"16\" rx=\"2\"/>\
             <text x=\"{end:.1}\" y=\"{y}\">{}</text>",
            escaped(&name),
            escaped(&shown(*value)),
            y = top + 13,
            end = 206.0 + width,
        );
    }
    svg.push_str("</svg>");
    svg
}

fn spread(title: &str, unit: &str, spread: Spread) -> String {
    let Spread { sum, mean, p50, p90, p99, max } = spread;
    let values = [("mean", mean), ("p50", p50), ("p90", p90), ("p99", p99), ("max", max)];
    let values = values.map(|(name, value)| (name.to_owned(), value));
    format!(
        "<h2>{title}</h2><p>{sum:.6} {unit} in all</p>{}",
        bars(title, &values, |value| format!("{value:.6}"))
    )
}

/// The page of a report.
pub(super) fn page(report: &Report) -> String {
    let name = escaped(&report.name);
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\
         <h1>{name}</h1><p>{} rows, {} errors; {} input tokens ({} of them cached) and {} output tokens</p>",
        report.rows, report.failed, report.tokens.0, report.cached, report.tokens.1
    );
    if !report.codes.is_empty() {
        let codes: Vec<(String, f64)> =
            report.codes.iter().map(|(code, count)| (code.clone(), *count as f64)).collect();
        html.push_str(&format!("<h2>Errors</h2>{}", bars("Errors", &codes, |count| count.to_string())));
    }
    if let Some(cost) = report.cost {
        html.push_str(&spread("Cost of a row", "", cost));
    }
    for (judge, cost) in &report.judges {
        html.push_str(&spread(&format!("Cost of judge {}", escaped(judge)), "", *cost));
    }
    if let Some(seconds) = report.seconds {
        html.push_str(&spread("Seconds of a row", "seconds", seconds));
    }
    for verdict in &report.verdicts {
        let _ = write!(html, "<h2>{}</h2>", escaped(&verdict.column));
        if let Some((share, low, high)) = verdict.passed {
            let _ = write!(
                html,
                "<p>{:.1} % passed (95 % confidence: {:.1} to {:.1})</p>",
                share * 100.0,
                low * 100.0,
                high * 100.0
            );
        }
        let counts: Vec<(String, f64)> =
            verdict.counts.iter().map(|(value, count)| (value.clone(), *count as f64)).collect();
        html.push_str(&bars(&verdict.column, &counts, |count| count.to_string()));
    }
    if !report.agreements.is_empty() {
        html.push_str("<h2>Agreement</h2><table><tr><th>Columns<th>Rows<th>Same<th>Kappa<th>95 %</tr>");
        for agreement in &report.agreements {
            let (one, other) = &agreement.columns;
            let number =
                |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |number| format!("{number:.3}"));
            let interval = agreement
                .interval
                .map_or_else(|| "–".to_owned(), |(low, high)| format!("{low:.3} to {high:.3}"));
            let _ = write!(
                html,
                "<tr><td>{} and {}<td>{}<td>{:.1} %<td>{}<td>{interval}</tr>",
                escaped(one),
                escaped(other),
                agreement.rows,
                agreement.share * 100.0,
                number(agreement.kappa)
            );
        }
        html.push_str("</table>");
    }
    html.push_str("</body></html>\n");
    html
}
