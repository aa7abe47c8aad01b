//! The terminal on a made-up run: `cargo run -p dosmos-visualizer --example preview [live]`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use dosmos_client::Run;
use dosmos_proto::Nanos;
use dosmos_visualizer::tui::{self, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tui::Error> {
    let live = std::env::args().nth(1).is_some_and(|a| a == "live");
    let source = match live {
        true => support::live(Nanos(400_000_000)),
        false => support::finished(),
    };
    let title = "preview".to_owned();
    let options = Options {
        title,
        ..Options::default()
    };
    tui::run(Run::of(Arc::new(source), ""), options).await
}
