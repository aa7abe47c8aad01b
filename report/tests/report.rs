//! The report as a reader of HTML sees it.

#![allow(clippy::unwrap_used)] // a test may

#[path = "../../client/tests/support/mod.rs"]
mod support;

use dosmos_analysis::{Analysis, Input, Thresholds, analyse};
use dosmos_report::{Options, brief, document, report};
use dosmos_testkit::Memory;
use dosmos_trace::query::{Catalog, Completeness, Filter, TraceSource};

async fn analysed(source: &Memory) -> Analysis {
    analysed_with(source, &Thresholds::default()).await
}

async fn analysed_with(source: &Memory, thresholds: &Thresholds) -> Analysis {
    let everything = Filter {
        everything: true,
        ..Filter::default()
    };
    let records = source.records(&everything, 0).await.unwrap();
    let input = Input {
        catalog: source.catalog().await.unwrap(),
        records: &mut records.into_iter(),
        window: None,
    };
    analyse(input, thresholds)
}

async fn page(source: &Memory, options: &Options) -> String {
    let analysis = analysed(source).await;
    report(source, &analysis, options).await.unwrap().html()
}

#[tokio::test]
async fn a_report_shows_the_run_and_needs_nothing_else() {
    let source = support::finished();
    let options = Options {
        title: "<SOR> & friends".to_owned(),
        ..Options::default()
    };
    let html = page(&source, &options).await;
    assert!(html.contains("<title>&lt;SOR&gt; &amp; friends</title>"));
    for heading in ["Summary", "Findings", "Variables", "Processes", "Groups"] {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    let catalog = source.catalog().await.unwrap();
    for variable in &catalog.variables {
        assert!(
            html.contains(variable.spec().name()),
            "{}",
            variable.spec().name()
        );
    }
    assert!(html.matches("<svg").count() >= 4);
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    for foreign in ["<script", "src=", "@import", "url("] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    // The only address is the namespace of SVG.
    assert_eq!(html.matches("http").count(), html.matches("<svg").count());
    assert!(!html.contains("Incomplete"));
}

#[tokio::test]
async fn what_the_data_lack_stands_at_the_top() {
    let mut source = support::finished();
    source.catalog.completeness = Completeness {
        dropped: 12,
        missing: vec!["emp1".to_owned()],
        corrupt_chunks: 1,
        ..source.catalog.completeness
    };
    let html = page(&source, &Options::default()).await;
    let warning = html.find("12 of").unwrap();
    assert!(html.contains("emp1 did not answer") && html.contains("1 chunk cannot be read"));
    assert!(warning < html.find("<h2>Findings</h2>").unwrap());
}

#[tokio::test]
async fn a_run_without_an_access_is_a_page_too() {
    let source = Memory::new(Catalog::default(), Vec::new());
    let html = page(&source, &Options::default()).await;
    assert!(html.contains("No access has been recorded."));
    assert_eq!(html.matches("<svg").count(), 0);
}

#[tokio::test]
async fn as_many_variables_and_processes_as_asked_for() {
    let source = support::finished();
    for wanted in [0, 1, 2] {
        let options = Options {
            variables: wanted,
            processes: wanted,
            ..Options::default()
        };
        let html = page(&source, &options).await;
        // One history per variable and one per process.
        assert_eq!(html.matches("<title>History of ").count(), 2 * wanted);
    }
}

#[tokio::test]
async fn a_page_says_what_was_looked_at_and_every_bar_says_its_figures() {
    let source = support::finished();
    let html = page(&source, &Options::default()).await;
    let verdict = html.find("Efficiency").unwrap();
    assert!(verdict < html.find("<h2>Findings</h2>").unwrap());
    assert!(
        html.contains("<td>recorded</td><td>every access</td>"),
        "{html}"
    );
    assert!(html.contains("<td>complete</td><td>yes, "), "{html}");
    // The operations of all variables, and of each variable, are one chart with a choice.
    assert!(html.matches("class=\"choice\"").count() >= 2);
    assert!(html.matches("class=\"tip\"").count() > 20);
    assert!(
        html.contains("ap0: read grid["),
        "a single access has words"
    );
    // No execution-time breakdown was recorded: the page says why there is no chart.
    assert!(html.contains("no execution-time breakdown: "));
}

#[tokio::test]
async fn a_summary_has_the_same_findings_and_no_picture() {
    let source = support::finished();
    let everything = Thresholds {
        time_lost: 0.0,
        negligible_loss: 0.0,
        least_accesses: 1,
        bottleneck_waiting: 0.0,
        imbalance: 0.0,
        ..Thresholds::default()
    };
    let analysis = analysed_with(&source, &everything).await;
    let options = Options::default();
    let short = brief(&source, &analysis, &options).await.unwrap();
    let markdown = short.markdown(|_, _| panic!("a picture"));
    let json = document(&source, &analysis, &options).await.unwrap();
    let found = json["findings"].as_array().unwrap();
    assert_eq!(found.len(), analysis.findings.len());
    assert!(!found.is_empty());
    for finding in &analysis.findings {
        assert!(markdown.contains(&finding.advice), "{markdown}");
    }
    assert_eq!(json["verdict"], analysis.verdict.as_str());
    assert_eq!(json["incomplete"], serde_json::json!([]));
    assert!(markdown.contains("| complete | yes, "), "{markdown}");
}
