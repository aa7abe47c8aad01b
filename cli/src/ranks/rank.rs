//! One rank, from its announcement to its end.

use std::collections::HashMap;
use std::hash::Hasher;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use dosmos_client::RUNS;
use dosmos_emp::Companion;
use dosmos_proto::access::{Access, Credentials, Files};
use dosmos_proto::transport::{Address, Listener};
use dosmos_proto::{AddressBook, Nanos, Token};
use dosmos_trace::run::RunId;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use twox_hash::XxHash64;

use super::attend::{Attendance, Heard};
use super::coordinator::{Coordinator, Described};
use super::duty::{Done, Duty};
use super::environment::Place;
use super::meeting::{Announcement, Meeting};
use super::point::Point;
use super::wire::{Roster, Told};
use crate::args::NodeArgs;
use crate::config::{Cluster, Launch, NODE, Post, Protection, Role, Seat};
use crate::launch::{Child, Joining, RunDir};
use crate::logs;
use crate::network::{ENV_NETWORK, own_address};
use crate::output;
use crate::process::{
    Within, alone, event_manager, exit_code, memory_process, memory_process_name,
};
use crate::signals::Signals;

const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long rank 0 may take to go before the others do.
const FAREWELL: Duration = Duration::from_secs(10);
/// Exit status of a rank whose run did not come about.
const TROUBLE: u8 = 2;

/// Announces this rank, does its part of the run, and ends with it. The exit status of an application process is that of its
/// program.
///
/// # Errors
/// What keeps this rank from taking part.
pub(crate) async fn run(
    args: NodeArgs,
    companion: Option<Arc<dyn Companion>>,
    cluster: &Cluster,
    place: Place,
) -> anyhow::Result<ExitCode> {
    let launch = cluster.launch.as_ref().context("no [launch] section")?;
    let rank = place.rank;
    let named = |e: anyhow::Error| e.context(format!("rank {rank} on {}", place.host));
    let signals = Signals::and_parent(args.stdin_is_parent)?;
    let started = Start::new(&args, cluster, launch, &place).await;
    let (start, rendezvous) = started.map_err(named)?;
    let (point, shown) = (start.point.clone(), start.run_dir.shown());
    // Held by rank 0 until all is over.
    let _run_dir = start.run_dir.clone();
    let announced = start.announce(launch, &place, signals, rendezvous);
    let (mut duty, coordinator) = announced.map_err(named)?;
    let roster = match duty.next().await {
        Heard::Told(Told::TakePlace(roster)) => Ok(roster),
        Heard::Told(Told::Refused(why)) | Heard::Alone(why) => Err(why),
        Heard::Told(_) => Err("rank 0 gives no place".to_owned()),
    };
    let code = match roster {
        Ok(roster) => start
            .take_part(roster, companion, &mut duty)
            .await
            .map_err(named)?,
        // Rank 0 says it below.
        Err(_) if coordinator.is_some() => ExitCode::from(TROUBLE),
        Err(why) => {
            output::error(&format!("rank {rank} on {}: {why}", place.host));
            ExitCode::from(TROUBLE)
        }
    };
    let Some(coordinator) = coordinator else {
        // The exit status of a failed program makes launchers kill the other ranks: rank 0 goes first.
        let _ = timeout(FAREWELL, duty.closed()).await;
        return Ok(code);
    };
    let well = coordinator.end().await;
    point.withdraw();
    if well {
        output::note(&format!("inspect the run: dosmos top --run-dir {shown}"));
    }
    Ok(match code == ExitCode::SUCCESS && !well {
        true => ExitCode::FAILURE,
        false => code,
    })
}

/// What a rank knows before it knows the others.
struct Start {
    text: String,
    command: Vec<String>,
    run_dir: RunDir,
    token: Token,
    protection: Protection,
    credentials: Option<Credentials>,
    /// What a program gets to know of them.
    files: Option<Files>,
    point: Point,
    listener: Listener,
    rank: u32,
}

impl Start {
    async fn new(
        args: &NodeArgs,
        cluster: &Cluster,
        launch: &Launch,
        place: &Place,
    ) -> anyhow::Result<(Self, Option<Listener>)> {
        let text = std::fs::read_to_string(&args.cluster)
            .with_context(|| args.cluster.display().to_string())?;
        let command = match args.app.is_empty() {
            true => cluster.app.clone(),
            false => args.app.clone(),
        };
        if command.is_empty() {
            bail!(
                "no program to run: add `-- PROGRAM ARG…`, or an [app] command to the cluster file"
            );
        }
        let path = match &args.run_dir {
            Some(dir) => dir.clone(),
            None => of_job(cluster.topology.name(), place)?,
        };
        let run_dir = match place.rank {
            0 => RunDir::at(&path, args.run_dir.is_none())?,
            _ => RunDir::join_new(&path)?,
        };
        let network = match std::env::var(ENV_NETWORK) {
            Ok(text) => Some(text.parse().context(ENV_NETWORK)?),
            Err(_) => launch.network().cloned(),
        };
        let own = own_address(network.as_ref(), place.alone)?;
        let address = Address::Tcp(SocketAddr::new(own, 0).to_string());
        let credentials = cluster.credentials_of(NODE)?;
        let listener = Listener::bind(&address).await?;
        let listener = listener.secured(credentials.clone());
        cluster.check_exposure(NODE, &listener)?;
        let point = Point::new(place, launch, run_dir.path())?;
        let rendezvous = match place.rank {
            0 => {
                let address = point.bind(own, place.alone);
                let listener = Listener::bind(&address).await?;
                let listener = listener.secured(credentials.clone());
                cluster.check_exposure(NODE, &listener)?;
                Some(listener)
            }
            _ => None,
        };
        let start = Self {
            text,
            command,
            token: Token::of_run(run_dir.path())?,
            run_dir,
            point,
            listener,
            protection: Protection::beside_the_file(args.insecure),
            files: cluster.files_of(NODE)?,
            credentials,
            rank: place.rank,
        };
        Ok((start, rendezvous))
    }

    /// Announces this rank; at rank 0, waits for the others too.
    fn announce(
        &self,
        launch: &Launch,
        place: &Place,
        signals: Signals,
        rendezvous: Option<Listener>,
    ) -> anyhow::Result<(Duty, Option<Coordinator>)> {
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(self.text.as_bytes());
        let cluster_file = hasher.finish();
        let mut point = self.point.clone();
        let coordinator = match rendezvous {
            None => None,
            Some(listener) => {
                self.point.publish(listener.address())?;
                point = Point::At(here(listener.address()));
                let hosts = place.hosts.clone();
                let deadline = launch.deadline();
                let meeting = Meeting::new(place.size, cluster_file, hosts, deadline, Nanos(0));
                let path = self.run_dir.path();
                let described = Described {
                    run: RunId::of_directory(path).with_context(|| {
                        format!("{} cannot hold the identity of the run", path.display())
                    })?,
                    cluster_text: self.text.clone(),
                    protection: self.protection,
                    program: self.command.clone(),
                    launcher: place.launcher,
                    run_dir: self.run_dir.shown(),
                };
                let token = self.token.clone();
                Some(Coordinator::start(meeting, described, token, listener))
            }
        };
        let announcement = Announcement {
            seat: Seat {
                rank: place.rank,
                host: place.host.clone(),
                switch: place.switch.clone(),
            },
            size: place.size,
            start: random()?,
            process: std::process::id(),
            address: self.listener.address().to_string(),
            cluster_file,
        };
        let access = Access::new(Some(self.token.clone()), self.credentials.clone());
        let attendance = Attendance::begin(point, &announcement, access, launch.deadline());
        Ok((Duty::new(attendance, signals), coordinator))
    }

    /// Does what this rank is there for, until it may go.
    async fn take_part(
        self,
        roster: Roster,
        companion: Option<Arc<dyn Companion>>,
        duty: &mut Duty,
    ) -> anyhow::Result<ExitCode> {
        let seats: Vec<Seat> = roster.seats.iter().map(|(seat, _)| seat.clone()).collect();
        let assigned = Cluster::of_ranks(&self.text, &seats, self.protection);
        let (cluster, posts) = assigned.map_err(|errors| anyhow!(errors.join("\n")))?;
        let mine = posts.iter().find(|p| p.rank == self.rank);
        let post = mine.context("rank 0 has left this rank out")?.clone();
        let book = AddressBook::new(
            addresses(&cluster, &roster, &posts)?,
            Some(self.run_dir.path()),
        );
        let book = book.secured(self.credentials.clone());
        // The log of an application process is what its program prints.
        if post.role != Role::Application {
            logs::to_file(self.run_dir.log(&post.name)?, &post.name)?;
        }
        let _alone = alone(self.run_dir.path(), &post.name)?;
        let (done, code) = match post.role {
            Role::Application => self.program(&cluster, &post, &book, duty).await,
            Role::Spare => (Done::well(), ExitCode::SUCCESS),
            Role::EventManager | Role::Memory | Role::Link => {
                let done = self
                    .serve(&cluster, &post, roster.run, (book, companion), duty)
                    .await?;
                let code = match done.failed() {
                    true => ExitCode::from(TROUBLE),
                    false => ExitCode::SUCCESS,
                };
                (done, code)
            }
        };
        match duty.finish(&done).await {
            Ok(()) => Ok(code),
            Err(why) => bail!("{} ended without rank 0: {why}", post.name),
        }
    }

    async fn serve(
        self,
        cluster: &Cluster,
        post: &Post,
        run: RunId,
        (book, companion): (AddressBook, Option<Arc<dyn Companion>>),
        duty: &mut Duty,
    ) -> anyhow::Result<Done> {
        let name = post.name.as_str();
        let run_dir = self.run_dir.path();
        let (end, ended) = oneshot::channel::<()>();
        let shutdown = async {
            // Dropped means end.
            let _ = ended.await;
        };
        let ready = published(run_dir, name, self.listener.address().clone());
        let at = (self.listener, book);
        if let Some(me) = cluster.topology.find_emp(name) {
            let store = Some(cluster.store_of(name, run_dir));
            let work = event_manager(cluster, me, run, run_dir, at, companion, shutdown);
            return Ok(duty.serve(end, work, ready, store).await);
        }
        let me = cluster.topology.find_mp(name);
        let me = me.with_context(|| format!("the cluster has no process {name}"))?;
        let work = memory_process(cluster, me, at, shutdown);
        Ok(duty.serve(end, work, ready, None).await)
    }

    async fn program(
        self,
        cluster: &Cluster,
        post: &Post,
        book: &AddressBook,
        duty: &mut Duty,
    ) -> (Done, ExitCode) {
        let name = post.name.as_str();
        let me = cluster
            .topology
            .find_ap(name)
            .and_then(|ap| cluster.within(ap));
        // Without a memory process within the program, somebody else may listen at this port from now on.
        let kept = me.map(|_| self.listener.keep_address()).transpose();
        let (files, run_dir) = (self.files.as_ref(), &self.run_dir);
        let start = || {
            let _kept = kept.as_ref().map_err(|e| anyhow!("{e}"))?;
            let (address, within) = match me {
                Some(me) => {
                    let known = book.known().map(|(n, a)| (n.to_owned(), a.clone()));
                    let within = Within {
                        me,
                        listen: address_of(book, cluster, name)?,
                        addresses: known.collect(),
                        certificates: files.cloned(),
                    };
                    let (address, file) = within.write(cluster, run_dir.path())?;
                    (address, Some(file))
                }
                None => (address_of(book, cluster, name)?, None),
            };
            let joining = Joining {
                within,
                memory_process: &address,
                certificates: files,
                deadline: cluster.deadline,
            };
            Child::app(name, &self.command, &joining, run_dir, true, None)
        };
        // Its memory process looks there whom it need not wait for.
        let left = |other: &str| {
            if let Err(e) = book.give_up(other) {
                output::error(&format!(
                    "{name} may wait for {other}, which has ended: {e}"
                ));
            }
        };
        let (done, status) = duty.run(name, start, left, run_dir).await;
        (done, status.map_or(ExitCode::FAILURE, exit_code))
    }
}

/// Where each memory, link and event manager process listens; one that is within an application process, at the address of that.
fn addresses(
    cluster: &Cluster,
    roster: &Roster,
    posts: &[Post],
) -> anyhow::Result<HashMap<String, Address>> {
    let topology = &cluster.topology;
    let seats = roster.seats.iter();
    let of_rank: HashMap<u32, &str> = seats.map(|(seat, at)| (seat.rank, at.as_str())).collect();
    let mut of = HashMap::new();
    for post in posts {
        let name = match post.role {
            Role::EventManager | Role::Memory | Role::Link => post.name.clone(),
            Role::Application => {
                let ap = topology.find_ap(&post.name);
                match ap.and_then(|ap| cluster.within(ap)) {
                    Some(mp) => topology.mp_name(mp),
                    None => continue,
                }
            }
            Role::Spare => continue,
        };
        if let Some(address) = of_rank.get(&post.rank) {
            of.insert(name, address.parse()?);
        }
    }
    Ok(of)
}

/// Where the memory process of an application process is.
fn address_of(book: &AddressBook, cluster: &Cluster, ap: &str) -> anyhow::Result<Address> {
    let mp = memory_process_name(cluster, ap);
    let address = book.resolve(&mp);
    address.with_context(|| format!("the address of {mp} is not known"))
}

/// Completes when the process has published that it answers at `address`.
async fn published(run_dir: &Path, name: &str, address: Address) {
    let book = AddressBook::new(HashMap::new(), Some(run_dir));
    while book.resolve(name).as_ref() != Some(&address) {
        sleep(LOOK_AGAIN).await;
    }
}

fn random() -> std::io::Result<u64> {
    let id = RunId::random()?;
    let bytes = id.as_bytes().iter();
    Ok(bytes.fold(0, |all, byte| all.rotate_left(8) ^ u64::from(*byte)))
}

/// How rank 0 reaches itself.
fn here(bound: &Address) -> String {
    let text = bound.to_string();
    match text.parse::<SocketAddr>() {
        Ok(a) if a.ip().is_unspecified() && a.is_ipv4() => format!("127.0.0.1:{}", a.port()),
        Ok(a) if a.ip().is_unspecified() => format!("[::1]:{}", a.port()),
        _ => text,
    }
}

/// The run directory of a launcher's job.
fn of_job(cluster: &str, place: &Place) -> anyhow::Result<PathBuf> {
    let Some(job) = &place.job else {
        bail!(
            "{} gives its jobs no name: add --run-dir DIR, a new one for each run",
            place.launcher
        );
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let job: String = job.chars().map(plain).collect();
    Ok(Path::new(RUNS).join(format!("{cluster}-{}", job.trim_matches('-'))))
}
