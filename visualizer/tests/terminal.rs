//! The loop with a terminal and a keyboard of the test.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use dosmos_client::Run;
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_proto::Nanos;
use dosmos_trace::run::RunId;
use dosmos_trace::store::RunMetadata;
use dosmos_visualizer::state::Look;
use dosmos_visualizer::tui::{self, Options};
use futures::StreamExt;
use ratatui::Terminal;
use ratatui::backend::{Backend, ClearType, TestBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use std::convert::Infallible;
use tokio::sync::{mpsc, oneshot, watch};

/// A terminal whose every screen can be read elsewhere.
struct Shown {
    inner: TestBackend,
    screen: watch::Sender<String>,
}

impl Backend for Shown {
    type Error = Infallible;
    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(
        &mut self,
        c: I,
    ) -> Result<(), Infallible> {
        self.inner.draw(c)
    }
    fn hide_cursor(&mut self) -> Result<(), Infallible> {
        self.inner.hide_cursor()
    }
    fn show_cursor(&mut self) -> Result<(), Infallible> {
        self.inner.show_cursor()
    }
    fn get_cursor_position(&mut self) -> Result<Position, Infallible> {
        self.inner.get_cursor_position()
    }
    fn set_cursor_position<P: Into<Position>>(&mut self, p: P) -> Result<(), Infallible> {
        self.inner.set_cursor_position(p)
    }
    fn clear(&mut self) -> Result<(), Infallible> {
        self.inner.clear()
    }
    fn clear_region(&mut self, t: ClearType) -> Result<(), Infallible> {
        self.inner.clear_region(t)
    }
    fn size(&self) -> Result<Size, Infallible> {
        self.inner.size()
    }
    fn window_size(&mut self) -> Result<WindowSize, Infallible> {
        self.inner.window_size()
    }
    fn flush(&mut self) -> Result<(), Infallible> {
        self.screen.send_replace(self.inner.to_string());
        self.inner.flush()
    }
}

/// A user: presses keys and looks at the screen.
struct User {
    keys: mpsc::UnboundedSender<io::Result<Event>>,
    screen: watch::Receiver<String>,
}

impl User {
    fn press(&self, key: char) {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
        self.keys.send(Ok(Event::Key(key))).unwrap();
    }

    fn enter(&self) {
        self.code(KeyCode::Enter);
    }

    fn code(&self, code: KeyCode) {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.keys.send(Ok(Event::Key(key))).unwrap();
    }

    /// Waits until the screen has `text` on it.
    async fn sees(&mut self, text: &str) {
        let seen = self.screen.wait_for(|s| s.contains(text));
        let seen = tokio::time::timeout(Duration::from_secs(10), seen)
            .await
            .is_ok();
        let screen = self.screen.borrow();
        assert!(seen, "{text:?} is not on the screen:\n{}", *screen);
    }
}

/// A running terminal that shows the made-up run: its user, and its end.
fn start(options: Options) -> (User, impl Future<Output = Result<(), tui::Error>>) {
    let source = Arc::new(support::live(Nanos(300_000_000)));
    start_with(Some(Run::of(source, "")), options)
}

fn start_with(
    run: Option<Run>,
    options: Options,
) -> (User, impl Future<Output = Result<(), tui::Error>>) {
    let (screen_there, screen) = watch::channel(String::new());
    let (keys, mut typed) = mpsc::unbounded_channel();
    let backend = Shown {
        inner: TestBackend::new(80, 24),
        screen: screen_there,
    };
    let terminal = Terminal::new(backend).unwrap();
    let typed = futures::stream::poll_fn(move |cx| typed.poll_recv(cx)).boxed();
    (
        User { keys, screen },
        tui::drive(terminal, typed, run, options),
    )
}

fn options() -> Options {
    Options {
        title: "sor".into(),
        look: Look::default(),
        ..Options::default()
    }
}

#[tokio::test]
async fn keys_change_the_screen_and_q_ends() {
    let (mut user, running) = start(options());
    let use_it = async {
        user.sees("GROUP, PROCESS").await;
        user.sees("lp.south").await;
        user.press('2');
        user.sees("residual").await;
        user.press('3');
        user.sees("inter-group").await;
        user.press('4');
        user.sees("waiting for lock").await;
        user.press('?');
        user.sees("This view: Variable history").await;
        user.press('/');
        user.press(':');
        user.press('r');
        user.press('e');
        user.sees(":record").await;
        user.enter();
        user.press('?');
        user.press('p');
        user.sees("PAUSED").await;
        user.press('q');
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();
}

#[tokio::test]
async fn it_follows_the_size_of_the_terminal() {
    let (mut user, running) = start(options());
    let use_it = async {
        user.sees("GROUP, PROCESS").await;
        // The test's terminal keeps its size; what is drawn goes by the terminal's own.
        user.keys.send(Ok(Event::Resize(100, 30))).unwrap();
        user.press('3');
        user.sees("1 column").await;
        user.press('q');
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();
}

#[tokio::test]
async fn when_the_run_ends_the_terminal_stays_and_says_so() {
    let (end, ended) = oneshot::channel::<()>();
    let finished = Box::pin(async move {
        let _ = ended.await;
        "run finished".to_owned()
    });
    let (mut user, running) = start(Options {
        finished: Some(finished),
        ..options()
    });
    let use_it = async {
        user.sees("live").await;
        end.send(()).unwrap();
        user.sees("run finished — q quits").await;
        user.press('2');
        user.sees("VARIABLE").await;
        user.press('q');
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();
}

#[tokio::test]
async fn it_ends_when_cancelled_and_when_the_input_ends() {
    let (cancel, cancelled) = oneshot::channel::<()>();
    let fires = Box::pin(async move {
        let _ = cancelled.await;
    });
    let (mut user, running) = start(Options {
        cancel: Some(fires),
        ..options()
    });
    let use_it = async {
        user.sees("live").await;
        cancel.send(()).unwrap();
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();

    let (user, running) = start(options());
    drop(user.keys);
    running.await.unwrap();
}

/// The directory of a finished run with the records of a recorded one, in `folder`.
fn run_in(folder: &Path, name: &str, recorded: &str, started: u64) {
    let store = folder.join(name).join("store/emp0");
    std::fs::create_dir_all(store.parent().unwrap()).unwrap();
    let text = dosmos_testkit::recorded::jsonl(recorded).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    jsonl::import(&text[..], &store, BadLines::Refuse, go_on).unwrap();
    let metadata = RunMetadata {
        run: RunId::from_bits(u128::from(started)),
        name: name.into(),
        command: vec!["dosmos".into()],
        application: vec![format!("bin/{name}-program")],
        directory: "/".into(),
        version: "0.1.0".into(),
        hosts: vec!["here".into()],
        cluster_file: String::new(),
        started: Nanos(started),
        ended: Some(Nanos(started + 1)),
        ranks: Vec::new(),
    };
    metadata.write(&store).unwrap();
}

#[tokio::test]
async fn a_run_is_chosen_from_a_folder_and_another_one_after_it() {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), "older", "bottleneck-sick", 1_000);
    run_in(folder.path(), "newer", "imbalance-cured", 2_000);
    run_in(folder.path(), "removed", "imbalance-cured", 3_000);
    let (mut user, running) = start_with(
        None,
        Options {
            runs: folder.path().to_owned(),
            ..options()
        },
    );
    let use_it = async {
        user.sees("older-program").await;
        user.sees("▶removed").await;
        // Removed since it was listed: said, and the list stays.
        std::fs::remove_dir_all(folder.path().join("removed")).unwrap();
        user.enter();
        user.sees("is not a run directory").await;
        user.press('j');
        user.press('j');
        user.enter();
        user.sees("· older").await;
        user.sees("efficiency unknown: recorded without times")
            .await;
        user.press('2');
        user.sees("counter").await;
        user.press('R');
        user.sees("older (shown)").await;
        user.press('k');
        user.code(KeyCode::Esc);
        user.press('3');
        user.sees("inter-group").await;
        for key in ":runs".chars() {
            user.press(key);
        }
        user.enter();
        user.sees("older (shown)").await;
        user.press('k');
        user.enter();
        user.sees("· newer").await;
        user.sees("post-mortem").await;
        user.press('q');
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_an_error_on_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let (mut user, running) = start_with(
        None,
        Options {
            runs: folder.path().join("nothing"),
            ..options()
        },
    );
    let use_it = async {
        user.sees("No such file").await;
        user.enter();
        user.press('q');
    };
    let (result, ()) = tokio::join!(running, use_it);
    result.unwrap();
}

#[tokio::test]
async fn without_a_terminal_it_says_so() {
    // Tests run with their input or output elsewhere; where not, there is nothing to test.
    use std::io::IsTerminal;
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return;
    }
    let source = Arc::new(support::finished());
    let error = tui::run(Run::of(source, ""), Options::default())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("dosmos top needs a terminal"),
        "{error}"
    );
}
