use super::plot::{LEFT, RIGHT};
use super::*;

fn row(ours: f64, bare: f64) -> Row {
    Row::new("small <prompt> & more", "a made-up row", Ok(ours))
        .peer(Peer::new("bare", "3.0").took(Ok(bare)).yardstick())
        .target(Target::AtMost { times: 1.25, peer: "bare" })
}

fn table() -> Table {
    let with_all = row(400.0, 350.0)
        .peer(Peer::new("Jinja2", "3.1.6").took(Ok(5_000.0)).note("without origins"))
        .floor("memcpy of the output", Ok(12.0))
        .target(Target::Ahead);
    let without = Row::new("loop", "another", Ok(8_000.0))
        .peer(Peer::new("Jinja2", "3.1.6").took(Err("there is no \u{1b}Python <here> & nowhere".into())))
        .target(Target::Ahead);
    let nothing = Row::new("cold", "no program", Err("it was not built".into()))
        .peer(Peer::new("WINK", "0.27.0").took(Ok(1e6)))
        .floor("reading", Err("no disk".into()))
        .target(Target::Ahead);
    let memory = Row { unit: Unit::Memory, ..Row::new("memory", "idle", Ok(7.6e6)) }
        .target(Target::Below(15e6, Unit::Memory));
    Table { about: vec![("built in", "debug".into())], rows: vec![with_all, without, nothing, memory] }
}

fn word(row: &Row) -> &'static str {
    row.verdicts()[0].word()
}

#[test]
fn a_ratio_is_met_at_its_border_and_missed_behind_it() {
    assert_eq!(word(&row(1.25, 1.0)), "met");
    assert_eq!(word(&row(1.2500001, 1.0)), "missed");
    assert_eq!(row(1.25, 1.0).verdicts(), [Verdict::Met("1.25".into())]);
    // It does not read as if it had been met.
    assert_eq!(row(1.2502, 1.0).verdicts(), [Verdict::Missed("1.2502".into())]);
}

#[test]
fn a_limit_is_missed_at_its_border() {
    let limit = |ours: f64| {
        Row { unit: Unit::Memory, ..Row::new("memory", "idle", Ok(ours)) }
            .target(Target::Below(15e6, Unit::Memory))
    };
    assert_eq!(word(&limit(14_999_999.0)), "met");
    assert_eq!(word(&limit(15e6)), "missed");
}

#[test]
fn an_equal_time_is_not_slower() {
    let against = |theirs: f64| {
        Row::new("row", "what", Ok(100.0))
            .peer(Peer::new("bare", "1").took(Ok(1.0)).yardstick())
            .peer(Peer::new("slow", "1").took(Ok(900.0)))
            .peer(Peer::new("peer", "1").took(Ok(theirs)))
            .target(Target::Ahead)
    };
    assert_eq!(against(101.0).verdicts(), [Verdict::Met("1.01 × peer".into())]);
    assert_eq!(word(&against(100.0)), "missed");
    assert_eq!(word(&against(99.0)), "missed");
}

#[test]
fn nothing_is_met_while_a_figure_is_missing() {
    let mut gone = row(1.0, 1.0);
    gone.peers[0].outcome = Err("not there".into());
    assert_eq!(word(&gone), "open");
    let mut ours = row(1.0, 1.0);
    ours.ours = Err("not built".into());
    assert_eq!(word(&ours), "open");
    let partly = Row::new("row", "what", Ok(1.0))
        .peer(Peer::new("here", "1").took(Ok(2.0)))
        .peer(Peer::new("gone", "1").took(Err("not there".into())))
        .target(Target::Ahead);
    assert_eq!(partly.verdicts(), [Verdict::Open("2.00 × here; without gone".into())]);
    // A known gap is a gap, whatever else is absent.
    let behind = Row { ours: Ok(3.0), ..partly };
    assert_eq!(word(&behind), "missed");
}

#[test]
fn the_text_is_aligned_and_lists_missing_systems() {
    let text = table().to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), 2 + 4, "a head, a rule and four rows:\n{text}");
    let width = lines[0].chars().count();
    assert!(lines.iter().all(|line| line.chars().count() == width), "{text}");
    assert!(lines[0].contains("| cuebook |") && lines[0].contains("Jinja2"), "{text}");
    assert!(
        lines[3].contains("missing")
            && lines[3].contains("faster than each peer that does the same work: open"),
        "{text}"
    );
    assert!(lines[4].contains("ours was not measured"), "{text}");
    for said in [
        "- Jinja2 3.1.6: there is no  Python <here> & nowhere (loop)\n",
        "- cuebook: it was not built (cold)\n",
        "- floor: no disk (cold)\n",
        "peers: bare 3.0, Jinja2 3.1.6, WINK 0.27.0",
        "Jinja2: without origins",
    ] {
        assert!(text.contains(said), "{said:?} is not in\n{text}");
    }
}

#[test]
fn a_reason_is_shown_once_with_all_its_rows() {
    let gone = |name: &str| {
        Row::new(name, "what", Ok(1.0)).peer(Peer::new("peer", "1").took(Err("there is no network".into())))
    };
    let table = Table { rows: vec![gone("first"), gone("second")], ..Table::default() };
    let text = table.to_string();
    assert!(text.ends_with("\nmissing:\n- peer 1: there is no network (first, second)\n"), "{text}");
}

#[test]
fn the_table_as_json_has_every_figure() {
    let text = serde_json::to_string_pretty(&table().to_json()).unwrap();
    let json: Json = serde_json::from_str(&text).unwrap();
    let row = &json["rows"][0];
    assert_eq!(row["ours"]["value"], 400.0);
    assert_eq!(row["unit"], "nanoseconds");
    assert_eq!(
        row["peers"][0],
        json!({"name": "bare", "version": "3.0", "note": "", "yardstick": true, "value": 350.0})
    );
    assert_eq!(row["floor"], json!({"what": "memcpy of the output", "value": 12.0}));
    assert_eq!(row["targets"][0], json!({"target": "≤ 1.25 × bare", "verdict": "met", "because": "1.14"}));
    assert_eq!(json["rows"][1]["peers"][0]["missing"], "there is no \u{1b}Python <here> & nowhere");
    assert_eq!(json["rows"][2]["ours"]["missing"], "it was not built");
    assert_eq!(json["rows"][3]["unit"], "bytes");
    assert_eq!(json["about"]["built in"], "debug");
}

#[test]
fn the_picture_shows_every_contestant() {
    let svg = table().to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for said in [
        "small <prompt> & more",
        "Jinja2 3.1.6",
        "5.00 µs  ·  12.5×",
        "missing: there is no  Python <here> & nowhere",
        "missing: it was not built",
        "1×",
        "100×",
    ] {
        assert!(texts.contains(&said), "{said:?} is not in {texts:?}");
    }
    // A dot for each figure that can be compared with ours.
    let dots = document.descendants().filter(|node| node.has_tag_name("circle"));
    assert_eq!(dots.count(), 4 + 1 + 1);
    let height: f64 = document.root_element().attribute("height").unwrap().parse().unwrap();
    for node in document.descendants() {
        let place = |name| node.attribute(name).and_then(|value| value.parse::<f64>().ok());
        assert!(place("y").is_none_or(|y| y > 0.0 && y < height));
        assert!(place("cx").is_none_or(|x| (LEFT..=RIGHT).contains(&x)), "{node:?}");
    }
}

#[test]
fn a_table_without_rows_is_a_table() {
    let table = Table::default();
    assert!(roxmltree::Document::parse(&table.to_svg()).is_ok());
    assert!(table.to_string().starts_with("|"));
}
