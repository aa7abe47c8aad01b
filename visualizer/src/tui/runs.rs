//! Listing the runs of a folder and opening one of them, on threads of their own: a slow disk never makes the keys slow.

use std::future::pending;
use std::path::{Path, PathBuf};

use dosmos_client::{Run, RunEntry, Target, runs, text};
use tokio::sync::oneshot;

use crate::state::ListedRun;

/// A run that was opened.
pub(super) struct Opened {
    pub(super) run: Run,
    /// What it is called in the title.
    pub(super) title: String,
    /// Its connections are those of a thread that ends when this is dropped.
    pub(super) alive: oneshot::Sender<()>,
}

/// What a thread brought.
pub(super) enum Done {
    /// The folder, and its runs.
    Listed(String, Result<Vec<ListedRun>, String>),
    Opened(Result<Opened, String>),
}

/// The one thread that is waited for.
#[derive(Default)]
pub(super) struct Jobs {
    waiting: Option<oneshot::Receiver<Done>>,
}

impl Jobs {
    /// Lists the runs of `folder`; `shown` is the directory of the run shown.
    pub(super) fn list(&mut self, folder: PathBuf, shown: Option<PathBuf>) {
        self.start("runs", move |tell| {
            let found = runs(&folder).map_err(|e| text::with_causes(&e));
            let listed = |entry: &RunEntry| listed(entry, shown.as_deref());
            let found = found.map(|all| all.iter().map(listed).collect());
            // Who asked may have gone.
            let _ = tell.send(Done::Listed(folder.display().to_string(), found));
        });
    }

    /// Opens the run in `path`.
    pub(super) fn open(&mut self, path: PathBuf) {
        self.start("open", move |tell| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(e) => {
                    let _ = tell.send(Done::Opened(Err(e.to_string())));
                    return;
                }
            };
            runtime.block_on(async {
                let opened = Run::open(&Target::run(&path)).await;
                let (alive, dropped) = oneshot::channel();
                let opened = opened.map(|run| Opened {
                    run,
                    title: title(&path),
                    alive,
                });
                let _ = tell.send(Done::Opened(opened.map_err(|e| text::with_causes(&e))));
                // Until the run is not shown any more.
                let _ = dropped.await;
            });
        });
    }

    /// What the thread brings; waits for ever if there is none.
    pub(super) async fn next(&mut self) -> Done {
        let Some(waiting) = &mut self.waiting else {
            return pending().await;
        };
        let done = waiting.await;
        self.waiting = None;
        let ended = "this took a thread that ended unexpectedly; see the messages above";
        done.unwrap_or_else(|_| Done::Opened(Err(ended.to_owned())))
    }

    /// Starts a thread; what another one brings is not waited for any more.
    fn start(&mut self, name: &str, work: impl FnOnce(oneshot::Sender<Done>) + Send + 'static) {
        let (tell, waiting) = oneshot::channel();
        self.waiting = Some(waiting);
        let builder = std::thread::Builder::new().name(name.into());
        if let Err(e) = builder.spawn(move || work(tell)) {
            let (tell, waiting) = oneshot::channel();
            let _ = tell.send(Done::Opened(Err(format!("cannot start a thread: {e}"))));
            self.waiting = Some(waiting);
        }
    }
}

/// The name of a run.
fn title(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn listed(entry: &RunEntry, shown: Option<&Path>) -> ListedRun {
    let is_shown = |shown: &Path| entry.path.canonicalize().is_ok_and(|path| path == *shown);
    let troubles = entry.launch.troubles(entry.running);
    let end = match (entry.running, troubles.into_iter().next()) {
        (_, Some(trouble)) => trouble,
        (true, None) => "running".to_owned(),
        (false, None) if entry.launch.metadata().is_some() => "finished".to_owned(),
        (false, None) => "unknown how it ended".to_owned(),
    };
    ListedRun {
        path: entry.path.clone(),
        name: entry.name.clone(),
        started: text::local_time(entry.started),
        program: entry.launch.program().unwrap_or_default(),
        end,
        here: shown.is_some_and(is_shown),
    }
}
