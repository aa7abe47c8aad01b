//! What ranks say to each other as messages.

use dosmos_proto::{Malformed, PROTOCOL, wire};
use dosmos_trace::run::RunId;
use dosmos_trace::store::Exit;
use wire::rank_ended::How;
use wire::rank_order::Order as OrderOnWire;
use wire::rank_report::Report as ReportOnWire;

use super::meeting::{Announcement, Report};
use crate::config::Seat;

/// What a rank is told.
#[derive(Debug)]
pub(super) enum Told {
    Refused(String),
    TakePlace(Roster),
    Start,
    /// This application process has ended.
    Left(String),
    Record(String),
    End,
    Go,
}

/// All ranks of a run, and where each listens.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) run: RunId,
    pub(super) seats: Vec<(Seat, String)>,
}

fn report(report: ReportOnWire) -> wire::RankReport {
    let report = Some(report);
    wire::RankReport { report }
}

pub(super) fn announcement(of: &Announcement) -> wire::RankReport {
    report(ReportOnWire::Announcement(wire::RankAnnouncement {
        protocol: PROTOCOL,
        rank: of.seat.rank,
        size: of.size,
        start: of.start,
        host: of.seat.host.clone(),
        network_switch: of.seat.switch.clone().unwrap_or_default(),
        process: of.process,
        address: of.address.clone(),
        cluster_file: of.cluster_file,
    }))
}

/// The announcement that a stream begins with.
pub(super) fn announced(first: wire::RankReport) -> Result<Announcement, Malformed> {
    let Some(ReportOnWire::Announcement(a)) = first.report else {
        return Err(Malformed::new("the first report", "is not an announcement"));
    };
    if a.protocol != PROTOCOL {
        return Err(Malformed::new(
            "the announcement",
            "is of another version of dosmos",
        ));
    }
    Ok(Announcement {
        seat: seat(a.rank, a.host, a.network_switch),
        size: a.size,
        start: a.start,
        process: a.process,
        address: a.address,
        cluster_file: a.cluster_file,
    })
}

fn seat(rank: u32, host: String, switch: String) -> Seat {
    let switch = Some(switch).filter(|s| !s.is_empty());
    Seat { rank, host, switch }
}

impl From<&Report> for wire::RankReport {
    fn from(said: &Report) -> Self {
        report(match said {
            Report::Ready => ReportOnWire::Ready(wire::RankReady {}),
            Report::AskedToEnd => ReportOnWire::AskedToEnd(wire::RankAskedToEnd {}),
            Report::Ended { exit, words } => ReportOnWire::Ended(wire::RankEnded {
                how: match exit {
                    Exit::Unknown => None,
                    Exit::NotStarted(why) => Some(How::NotStarted(why.clone())),
                    Exit::Code(code) => Some(How::Code(*code)),
                    Exit::Signal(signal) => Some(How::Signal(*signal)),
                },
                words: words.clone(),
            }),
        })
    }
}

/// A later report; none if this version does not know it.
pub(super) fn reported(report: wire::RankReport) -> Option<Report> {
    Some(match report.report? {
        ReportOnWire::Announcement(_) => return None,
        ReportOnWire::Ready(_) => Report::Ready,
        ReportOnWire::AskedToEnd(_) => Report::AskedToEnd,
        ReportOnWire::Ended(ended) => Report::Ended {
            exit: match ended.how {
                None => Exit::Unknown,
                Some(How::NotStarted(why)) => Exit::NotStarted(why),
                Some(How::Code(code)) => Exit::Code(code),
                Some(How::Signal(signal)) => Exit::Signal(signal),
            },
            words: ended.words,
        },
    })
}

impl From<Told> for wire::RankOrder {
    fn from(told: Told) -> Self {
        let order = Some(match told {
            Told::Refused(why) => OrderOnWire::Refusal(wire::RankRefusal { why }),
            Told::TakePlace(roster) => OrderOnWire::Roster(wire::RankRoster {
                run: roster.run.as_bytes().to_vec().into(),
                seats: roster.seats.into_iter().map(seat_on_wire).collect(),
            }),
            Told::Start => OrderOnWire::Start(wire::RankStart {}),
            Told::Left(name) => OrderOnWire::Left(wire::RankLeft { name }),
            Told::Record(metadata) => OrderOnWire::Record(wire::RankRecord { metadata }),
            Told::End => OrderOnWire::End(wire::RankEnd {}),
            Told::Go => OrderOnWire::Over(wire::RankOver {}),
        });
        Self { order }
    }
}

fn seat_on_wire((seat, address): (Seat, String)) -> wire::RankSeat {
    wire::RankSeat {
        rank: seat.rank,
        host: seat.host,
        network_switch: seat.switch.unwrap_or_default(),
        address,
    }
}

/// An order; none if this version does not know it.
pub(super) fn told(order: wire::RankOrder) -> Result<Option<Told>, Malformed> {
    let Some(order) = order.order else {
        return Ok(None);
    };
    Ok(Some(match order {
        OrderOnWire::Refusal(refusal) => Told::Refused(refusal.why),
        OrderOnWire::Roster(roster) => Told::TakePlace(Roster {
            run: RunId::try_from(&roster.run[..])
                .map_err(|e| Malformed::new("the roster", e.to_string()))?,
            seats: roster
                .seats
                .into_iter()
                .map(|s| (seat(s.rank, s.host, s.network_switch), s.address))
                .collect(),
        }),
        OrderOnWire::Start(_) => Told::Start,
        OrderOnWire::Left(left) => Told::Left(left.name),
        OrderOnWire::Record(record) => Told::Record(record.metadata),
        OrderOnWire::End(_) => Told::End,
        OrderOnWire::Over(_) => Told::Go,
    }))
}
