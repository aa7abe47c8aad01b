//! Open: from addresses, store directories or a run directory to a [`Run`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::access::{Access, Credentials, Files};
use dosmos_proto::transport::{self, Address};
use dosmos_proto::{AddressBook, Token};
use dosmos_trace::query::{QueryError, TraceSource};
use dosmos_trace::store::{StoreError, StoreSource};

use crate::identity::{Together, together};
use crate::member::{self, Member};
use crate::{Error, Fused, Launch, RemoteSource};

/// Where runs are kept unless told otherwise: `RUNS/latest` is the latest one.
pub const RUNS: &str = "dosmos-run";

/// How long to wait for an event manager before its store is read instead.
const CONNECT: Duration = Duration::from_secs(2);

/// What to look at. Nothing named means the latest run.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Addresses of running event managers.
    pub event_managers: Vec<String>,
    /// Directories of stores.
    pub stores: Vec<PathBuf>,
    /// Directory of a run: all its event managers, or their stores.
    pub run_dir: Option<PathBuf>,
    /// Folder of the certificate to show to event managers over TCP; that of the environment otherwise.
    pub tls: Option<PathBuf>,
}

impl Target {
    fn credentials(&self) -> Result<Option<Credentials>, Error> {
        let files = match &self.tls {
            Some(folder) => Some(Files::in_folder(folder)),
            None => Files::from_env()?,
        };
        Ok(files.map(Credentials::read).transpose()?)
    }

    /// A run directory.
    pub fn run(dir: impl Into<PathBuf>) -> Self {
        Self {
            run_dir: Some(dir.into()),
            ..Self::default()
        }
    }

    /// A run directory, a store directory, or the address of a running event manager.
    pub fn named(text: &str) -> Self {
        let path = PathBuf::from(text);
        let mut target = Self::default();
        if path.join("store").is_dir() {
            target.run_dir = Some(path);
        } else if path.exists() {
            target.stores.push(path);
        } else {
            target.event_managers.push(text.to_owned());
        }
        target
    }
}

/// A run that can be asked.
#[derive(Clone)]
pub struct Run {
    source: Arc<dyn TraceSource>,
    /// Those that are asked as one.
    members: Arc<[Arc<dyn TraceSource>]>,
    title: String,
    /// The directories of its stores, as far as they are known.
    stores: Arc<[PathBuf]>,
    /// What is shown to event managers over TCP.
    credentials: Option<Credentials>,
}

impl Run {
    /// Opens `target`. Whether event managers answer shows when they are asked.
    ///
    /// # Errors
    /// If something named does not exist or cannot be opened.
    pub async fn open(target: &Target) -> Result<Self, Error> {
        let mut sources: Vec<Arc<dyn TraceSource>> = Vec::new();
        let (mut titles, mut others) = (Vec::new(), None);
        let mut stores = target.stores.clone();
        let credentials = target.credentials()?;
        for text in &target.event_managers {
            let address: Address = text.parse()?;
            let access = Access::new(Token::from_env()?, credentials.clone());
            sources.push(Arc::new(RemoteSource::connect(address, access)));
            titles.push(text.clone());
        }
        for dir in &target.stores {
            sources.push(store_or_its_writer(dir, &credentials).await?);
            titles.push(dir.display().to_string());
        }
        let run = match &target.run_dir {
            Some(dir) => Some(dir.clone()),
            None if sources.is_empty() => Some(latest()?),
            None => None,
        };
        if let Some(dir) = run {
            titles.push(dir.display().to_string());
            stores.extend(store_dirs(&dir)?);
            let found = of_run(dir, &credentials).await?;
            sources.extend(found.sources);
            others = found.others;
        }
        let mut together = together(sources).await?;
        if let Some(others) = others {
            let missing = together.membership.missing();
            let not_there = missing
                .into_iter()
                .filter(|name| !others.found.contains(name));
            not_there.for_each(|name| together.expect(others.member(name)));
        }
        Ok(Self {
            stores: stores.into(),
            credentials,
            ..Self::of_sources(together, titles.join(" "))
        })
    }

    /// A run behind many sources. The same event manager twice counts once; those of the run that no source speaks
    /// for make every answer incomplete. A source that does not answer now is missing until it answers.
    ///
    /// # Errors
    /// [`Error::DifferentRuns`] if two sources belong to different runs.
    pub async fn together(
        sources: Vec<Arc<dyn TraceSource>>,
        title: impl Into<String>,
    ) -> Result<Self, Error> {
        Ok(Self::of_sources(together(sources).await?, title))
    }

    fn of_sources(together: Together, title: impl Into<String>) -> Self {
        let members = together.sources.clone().into();
        let fused = Fused::new(together.sources).of(together.membership);
        Self {
            members,
            ..Self::of(Arc::new(fused), title)
        }
    }

    /// A run behind a source at hand.
    pub fn of(source: Arc<dyn TraceSource>, title: impl Into<String>) -> Self {
        Self {
            members: [source.clone()].into(),
            source,
            title: title.into(),
            stores: Arc::default(),
            credentials: None,
        }
    }

    /// How it was started and how it ended, as is written beside its stores now.
    pub fn launch(&self) -> Launch {
        Launch::beside(&self.stores)
    }

    /// The same, and why its records cannot be those of a whole run.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn launch_and_troubles(&self) -> Result<(Launch, Vec<String>), QueryError> {
        let launch = self.launch();
        let live = self.source.outline(false).await?.live;
        let troubles = launch.troubles(live);
        Ok((launch, troubles))
    }

    /// The run directory that its stores are in; none if they are in none.
    pub fn directory(&self) -> Option<PathBuf> {
        let store = self.stores.first()?.canonicalize().ok()?;
        let stores = store.parent().filter(|dir| dir.ends_with("store"))?;
        stores.parent().map(Path::to_owned)
    }

    /// Where its processes are and what they are shown, if it has a run directory.
    pub fn address_book(&self) -> Option<AddressBook> {
        let book = AddressBook::new(Default::default(), Some(&self.directory()?));
        Some(book.secured(self.credentials.clone()))
    }

    /// What answers.
    pub fn source(&self) -> &dyn TraceSource {
        self.source.as_ref()
    }

    /// The sources behind it, each event manager once: for whoever reads them side by side.
    pub fn members(&self) -> &[Arc<dyn TraceSource>] {
        &self.members
    }

    /// What answers, to keep.
    pub fn shared(&self) -> Arc<dyn TraceSource> {
        self.source.clone()
    }

    /// What was opened, as the user named it.
    pub fn title(&self) -> &str {
        &self.title
    }
}

/// Stores of runs that have ended: those named; otherwise all of a run, or of the latest run.
///
/// # Errors
/// If there is none, or one cannot be opened.
pub fn stores(named: &[PathBuf], run_dir: Option<&Path>) -> Result<Vec<StoreSource>, Error> {
    let dirs = match run_dir {
        Some(dir) => store_dirs(dir)?,
        None if named.is_empty() => store_dirs(&latest()?)?,
        None => named.to_vec(),
    };
    let open = |dir: &PathBuf| StoreSource::open(dir).map_err(Error::from);
    dirs.iter().map(open).collect()
}

/// The store directories of a run.
///
/// # Errors
/// If it is not the directory of a run, or has none.
pub fn store_dirs(run: &Path) -> Result<Vec<PathBuf>, Error> {
    let stores = run.join("store");
    let entries = std::fs::read_dir(&stores).map_err(|source| Error::NotARun {
        path: run.to_owned(),
        source,
    })?;
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    if dirs.is_empty() {
        return Err(Error::NoStore(stores));
    }
    dirs.sort();
    Ok(dirs)
}

/// The directory that is named, otherwise that of the latest run.
///
/// # Errors
/// If there is no latest run.
pub fn run_dir(named: Option<&Path>) -> Result<PathBuf, Error> {
    match named {
        Some(dir) => Ok(dir.to_owned()),
        None => latest(),
    }
}

fn latest() -> Result<PathBuf, Error> {
    let latest = Path::new(RUNS).join("latest");
    match latest.exists() {
        true => Ok(latest),
        false => Err(Error::NoLatestRun(latest)),
    }
}

/// What there is of a run in its directory.
struct Found {
    sources: Vec<Arc<dyn TraceSource>>,
    /// If the run goes on: those whose stores are not there yet are reached through this.
    others: Option<Others>,
}

/// Event managers of a run that goes on.
struct Others {
    dir: PathBuf,
    book: AddressBook,
    /// Those that have a store already.
    found: Vec<String>,
}

impl Others {
    fn member(&self, name: String) -> Arc<dyn TraceSource> {
        Member::source(self.dir.clone(), name, self.book.clone())
    }
}

/// All event managers of a run: live where they answer, else their stores. As long as somebody runs it, a store of it is left
/// to its event manager, which may be about to open it again.
async fn of_run(dir: PathBuf, credentials: &Option<Credentials>) -> Result<Found, Error> {
    let book = AddressBook::new(Default::default(), Some(&dir)).secured(credentials.clone());
    let mut sources: Vec<Arc<dyn TraceSource>> = Vec::new();
    let (mut goes_on, mut found) = (false, Vec::new());
    for store in store_dirs(&dir)? {
        let name = store
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let answers = match book.resolve(&name) {
            Some(address) => {
                let connected = transport::connect(&address, book.access(), CONNECT).await;
                connected.is_ok()
            }
            None => false,
        };
        let runs = answers || !member::is_over(&dir, &name);
        goes_on |= runs;
        sources.push(match runs {
            true => Member::source(dir.clone(), name.clone(), book.clone()),
            false => store_or_its_writer(&store, credentials).await?,
        });
        found.push(name);
    }
    let others = goes_on.then_some(Others { dir, book, found });
    Ok(Found { sources, others })
}

/// A store directory; if an event manager is writing it and answers, that one.
async fn store_or_its_writer(
    dir: &Path,
    credentials: &Option<Credentials>,
) -> Result<Arc<dyn TraceSource>, Error> {
    match StoreSource::open(dir) {
        Ok(store) => Ok(Arc::new(store)),
        Err(StoreError::InUse { path, address }) => {
            let parsed: Address = address.parse()?;
            let access = Access::new(token_beside(dir)?, credentials.clone());
            let connected = transport::connect(&parsed, &access, CONNECT).await;
            if connected.is_err() {
                return Err(StoreError::InUse { path, address }.into());
            }
            Ok(Arc::new(RemoteSource::connect(parsed, access)))
        }
        Err(e) => Err(e.into()),
    }
}

/// The token of the run that a store belongs to: that of the run directory it is in, otherwise that of the environment.
fn token_beside(store: &Path) -> Result<Option<Token>, Error> {
    let run_dir = store.parent().and_then(Path::parent);
    match run_dir.map(Token::read).transpose()?.flatten() {
        Some(token) => Ok(Some(token)),
        None => Ok(Token::from_env()?),
    }
}
