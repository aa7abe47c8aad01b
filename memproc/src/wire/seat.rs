//! Messages about who serves and keeps objects with replicas.

use dosmos_proto::wire as w;
use dosmos_proto::{Incarnation, Malformed, MpId, ObjectId};

use crate::core::messages::{Answer, Ballot, Compare, Compared, Replica, Vote};
use crate::core::replica::seat::{Config, Seat, State};

fn seat(s: &w::Seat) -> Seat {
    Seat {
        mp: MpId(s.mp),
        replicas: s.replicas,
    }
}

fn term(s: &w::Seat) -> (Seat, u64) {
    (seat(s), s.term)
}

fn term_out((seat, term): (Seat, u64)) -> w::Seat {
    w::Seat {
        mp: seat.mp.0,
        replicas: seat.replicas,
        term,
        members: Vec::new(),
    }
}

/// A decision that came in.
pub(super) fn config(s: w::Seat) -> Config {
    let (seat, term) = (seat(&s), s.term);
    let members = s.members.into_iter();
    Config {
        seat,
        term,
        members: members
            .map(|m| (MpId(m.mp), Incarnation::from_wire(m.incarnation)))
            .collect(),
    }
}

pub(super) fn config_out(config: Config) -> w::Seat {
    let members = config.members.into_iter();
    w::Seat {
        members: members
            .map(|(mp, incarnation)| w::OwnerIncarnation {
                mp: mp.0,
                incarnation: incarnation.to_wire(),
            })
            .collect(),
        ..term_out((config.seat, config.term))
    }
}

pub(super) fn ballot(b: w::Ballot) -> Result<Ballot, Malformed> {
    use w::ballot::Body;
    Ok(match b.body.ok_or(Malformed::missing("ballot"))? {
        Body::Prepare(s) => {
            let (seat, term) = term(&s);
            Ballot::Prepare(seat, term)
        }
        Body::Accept(s) => Ballot::Accept(config(s)),
        Body::Lead(l) => Ballot::Lead(l.seats.iter().map(term).collect()),
        Body::Recover(_) => Ballot::Recover,
    })
}

pub(super) fn ballot_out(ballot: Ballot) -> w::Ballot {
    use w::ballot::Body;
    let body = match ballot {
        Ballot::Prepare(seat, term) => Body::Prepare(term_out((seat, term))),
        Ballot::Accept(config) => Body::Accept(config_out(config)),
        Ballot::Lead(seats) => Body::Lead(seats_out(seats)),
        Ballot::Recover => Body::Recover(w::Recover {}),
    };
    w::Ballot { body: Some(body) }
}

fn seats_out(seats: Vec<(Seat, u64)>) -> w::Seats {
    w::Seats {
        seats: seats.into_iter().map(term_out).collect(),
    }
}

fn vote(v: w::Vote) -> Result<Vote, Malformed> {
    let accepted = v.accepted.ok_or(Malformed::missing("accepted"))?;
    Ok(Vote {
        granted: v.granted,
        promised: v.promised,
        accepted: config(accepted),
    })
}

fn vote_out(vote: Vote) -> w::Vote {
    w::Vote {
        granted: vote.granted,
        promised: vote.promised,
        accepted: Some(config_out(vote.accepted)),
    }
}

pub(super) fn answer(a: w::Answer) -> Result<Answer, Malformed> {
    use w::answer::Body;
    Ok(match a.body.ok_or(Malformed::missing("answer"))? {
        Body::Vote(v) => Answer::Vote(vote(v)?),
        Body::Led(l) => Answer::Led(l.seats.iter().map(term).collect()),
        Body::Known(k) => {
            let votes = k.votes.into_iter().map(vote);
            let votes: Vec<Vote> = votes.collect::<Result<_, _>>()?;
            Answer::Known {
                active: k.active,
                anew: k.fresh,
                votes: votes
                    .into_iter()
                    .map(|v| (v.promised, v.accepted))
                    .collect(),
            }
        }
    })
}

pub(super) fn answer_out(answer: Answer) -> w::Answer {
    use w::answer::Body;
    let body = match answer {
        Answer::Vote(vote) => Body::Vote(vote_out(vote)),
        Answer::Led(seats) => Body::Led(seats_out(seats)),
        Answer::Known {
            active,
            anew,
            votes,
        } => {
            let votes = votes.into_iter().map(|(promised, accepted)| {
                vote_out(Vote {
                    granted: false,
                    promised,
                    accepted,
                })
            });
            Body::Known(w::Known {
                active,
                fresh: anew,
                votes: votes.collect(),
            })
        }
    };
    w::Answer { body: Some(body) }
}

pub(super) fn replica(r: w::Replicate) -> Result<Replica, Malformed> {
    let (seat, term) = term(&r.seat.ok_or(Malformed::missing("seat"))?);
    Ok(Replica {
        seat,
        term,
        joining: r.joining,
        object: ObjectId::from_wire(r.object),
        state: State {
            version: r.version,
            epoch: r.epoch,
            data: r.data,
        },
    })
}

pub(super) fn replica_out(replica: Replica) -> w::Replicate {
    let Replica {
        seat,
        term,
        joining,
        object,
        state,
    } = replica;
    w::Replicate {
        seat: Some(term_out((seat, term))),
        joining,
        object: object.to_wire(),
        version: state.version,
        epoch: state.epoch,
        data: state.data,
    }
}

pub(super) fn compare(c: w::Compare) -> Result<Compare, Malformed> {
    let (seat, term) = term(&c.seat.ok_or(Malformed::missing("seat"))?);
    let which = |s: w::WhichState| (ObjectId::from_wire(s.object), (s.version, s.epoch));
    Ok(Compare {
        seat,
        term,
        states: c.states.into_iter().map(which).collect(),
    })
}

pub(super) fn compare_out(compare: Compare) -> w::Compare {
    let which = |(object, (version, epoch)): (ObjectId, (u64, u64))| w::WhichState {
        object: object.to_wire(),
        version,
        epoch,
    };
    w::Compare {
        seat: Some(term_out((compare.seat, compare.term))),
        states: compare.states.into_iter().map(which).collect(),
    }
}

pub(super) fn compared(c: w::Compared) -> Compared {
    let newer = c.newer.into_iter();
    let older = c.older.into_iter();
    Compared {
        newer: newer
            .map(|r| {
                let state = State {
                    version: r.version,
                    epoch: r.epoch,
                    data: r.data,
                };
                (ObjectId::from_wire(r.object), state)
            })
            .collect(),
        older: older.map(ObjectId::from_wire).collect(),
        more: c.more,
    }
}

pub(super) fn compared_out(compared: Compared) -> w::Compared {
    let newer = compared.newer.into_iter();
    let older = compared.older.into_iter();
    w::Compared {
        newer: newer
            .map(|(object, state)| w::Replicate {
                seat: None,
                joining: 0,
                object: object.to_wire(),
                version: state.version,
                epoch: state.epoch,
                data: state.data,
            })
            .collect(),
        older: older.map(ObjectId::to_wire).collect(),
        more: compared.more,
    }
}
