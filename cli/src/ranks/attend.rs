//! The stream from a rank to rank 0. One that breaks is replaced: reports and orders are sent again, and orders that were
//! followed already are skipped.

use std::time::Duration;

use dosmos_proto::access::Access;
use dosmos_proto::wire::rendezvous_client::RendezvousClient;
use dosmos_proto::{transport, wire};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;

use super::meeting::{Announcement, Report};
use super::point::Point;
use super::wire::{Told, announcement, told};

const CONNECT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// How long rank 0 may take to say, after the deadline, who is missing.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);
/// How long a rank tries to reach rank 0 again.
const RETURN: Duration = Duration::from_secs(60);

/// What comes from rank 0.
#[derive(Debug)]
pub(super) enum Heard {
    /// An order.
    Told(Told),
    /// Rank 0 cannot be reached; says why. Nothing follows.
    Alone(String),
}

/// This rank's stream to rank 0.
#[derive(Debug)]
pub(super) struct Attendance {
    heard: UnboundedReceiver<Heard>,
    reports: UnboundedSender<wire::RankReport>,
}

impl Attendance {
    /// Announces this rank, and keeps it announced until this is dropped.
    pub(super) fn begin(
        point: Point,
        who: &Announcement,
        access: Access,
        deadline: Duration,
    ) -> Self {
        let (to_rank, heard) = unbounded_channel();
        let (reports, to_say) = unbounded_channel();
        let stream = Stream {
            point,
            access,
            said: vec![announcement(who)],
            to_say,
            followed: 0,
            to_rank,
        };
        tokio::spawn(stream.keep(deadline + AFTER_DEADLINE));
        Self { heard, reports }
    }

    /// The next that comes from rank 0.
    pub(super) async fn next(&mut self) -> Heard {
        let gone = || Heard::Alone("the stream to rank 0 has ended".to_owned());
        self.heard.recv().await.unwrap_or_else(gone)
    }

    /// Tells rank 0.
    pub(super) fn report(&self, report: &Report) {
        // Who cannot be reached any more needs no report.
        let _ = self.reports.send(report.into());
    }

    /// Waits until rank 0 has ended the stream, which it does last.
    pub(super) async fn closed(mut self) {
        while self.heard.recv().await.is_some() {}
    }
}

struct Stream {
    point: Point,
    access: Access,
    said: Vec<wire::RankReport>,
    to_say: UnboundedReceiver<wire::RankReport>,
    /// Orders that were handed on.
    followed: usize,
    to_rank: UnboundedSender<Heard>,
}

enum Broken {
    /// May be tried again.
    Again(String),
    /// Not.
    ForGood(String),
    /// Rank 0 is done with this rank, or this rank with rank 0.
    Done,
}

impl Stream {
    async fn keep(mut self, first: Duration) {
        let mut limit = first;
        let mut since = Instant::now();
        let why = loop {
            let before = self.followed;
            let why = match self.once().await {
                Broken::Done => return,
                Broken::ForGood(why) => break why,
                Broken::Again(why) => why,
            };
            if self.followed > before {
                limit = RETURN;
                since = Instant::now();
            }
            if since.elapsed() > limit {
                break format!("{why}; {}", self.point.hint());
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = self.to_rank.closed() => return,
            }
        };
        // The rank may have ended.
        let _ = self.to_rank.send(Heard::Alone(why));
    }

    /// One stream, until it ends.
    async fn once(&mut self) -> Broken {
        let Some(address) = self.point.find() else {
            return Broken::Again("rank 0 did not come".to_owned());
        };
        let channel = match transport::connect(&address, &self.access, CONNECT).await {
            Ok(channel) => channel,
            Err(e) => return Broken::Again(format!("rank 0 did not come: {e}")),
        };
        let (say, saying) = unbounded_channel();
        for report in &self.said {
            let _ = say.send(report.clone());
        }
        let mut client = RendezvousClient::new(channel);
        let attending = client.attend(UnboundedReceiverStream::new(saying));
        let mut orders = match timeout(CONNECT, attending).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return broken(&status),
            Err(_) => return Broken::Again(format!("rank 0 at {address} does not answer")),
        };
        let mut number = 0;
        loop {
            let order = tokio::select! {
                order = orders.message() => order,
                Some(report) = self.to_say.recv() => {
                    self.said.push(report.clone());
                    let _ = say.send(report);
                    continue;
                }
                () = self.to_rank.closed() => return Broken::Done,
            };
            let order = match order {
                Ok(Some(order)) => order,
                Ok(None) if self.followed > 0 => return Broken::Done,
                Ok(None) => return Broken::Again("rank 0 ended the stream".to_owned()),
                Err(status) => return broken(&status),
            };
            number += 1;
            if number <= self.followed {
                continue;
            }
            self.followed = number;
            match told(order) {
                Ok(Some(told)) => {
                    let _ = self.to_rank.send(Heard::Told(told));
                }
                Ok(None) => {}
                Err(e) => return Broken::ForGood(e.to_string()),
            }
        }
    }
}

fn broken(status: &tonic::Status) -> Broken {
    let why = format!("rank 0: {}", status.message());
    match status.code() {
        Code::Unauthenticated | Code::InvalidArgument | Code::PermissionDenied => {
            Broken::ForGood(why)
        }
        _ => Broken::Again(why),
    }
}
