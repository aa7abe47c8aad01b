//! Connections: what is sent over them, and what a process does when one comes or goes.

use dosmos_proto::wire::peer_message;
use dosmos_proto::{EmpId, MpId};
use rand::RngExt;

use crate::manager::EventManager;
use crate::memory::{Memory, Sent, To};
use crate::network::{ConnId, Message, Pid, Upkeep};

use super::{Event, MS, SECOND, World};

impl World {
    /// Sends something to an end of a connection.
    pub(super) fn send(&mut self, conn: ConnId, to: usize, message: Message) {
        let delay = self.delay_to(conn, to);
        if let Some(at) = self.network.arrival(conn, to, self.now, delay) {
            self.at(at, Event::Arrive(conn, to, message));
        }
    }

    pub(super) fn send_all(&mut self, me: Pid, sent: Sent) {
        for (to, message) in sent {
            match to {
                To::Conn(conn) => {
                    let Some(end) = self.end_of(conn, me) else {
                        continue;
                    };
                    self.send(conn, 1 - end, message);
                }
                To::End(conn) => {
                    if let Some(end) = self.end_of(conn, me) {
                        self.hang_up(conn, end);
                    }
                }
            }
        }
    }

    /// Which end of an open connection is a process's.
    pub(super) fn end_of(&self, conn: ConnId, me: Pid) -> Option<usize> {
        let conn = self.network.conn(conn)?;
        (0..2).find(|end| conn.pid(*end) == me && conn.is_open(*end))
    }

    /// An end is closed by its process; the other learns of it.
    pub(crate) fn hang_up(&mut self, conn: ConnId, end: usize) {
        if self.network.close(conn, end) {
            self.send(conn, 1 - end, Message::Closed);
            self.ended(conn, end);
        }
    }

    pub(super) fn dial_soon(&mut self, from: Pid, to: Pid, most: u64) {
        let pause = self.rng.random_range(most / 4..=most);
        self.at(self.now + pause, Event::Dial(from, to));
    }

    pub(super) fn dial(&mut self, from: Pid, to: Pid) {
        if self.network.is_blocked(from, to, self.now) {
            return self.dial_soon(from, to, 500 * MS);
        }
        let mut sent = Sent::new();
        match (from, to) {
            (Pid::Mp(m), Pid::Mp(p)) => {
                let Some(memory) = &self.memories[m] else {
                    return;
                };
                let peer = MpId(p as u32);
                if memory.is_linked(peer) {
                    return;
                }
                let hello = memory.greeting(peer);
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                sent.push((To::Conn(conn), Message::Peer(Box::new(hello))));
            }
            (Pid::Mp(m), Pid::Emp(_)) => {
                if self.memories[m].as_ref().is_none_or(Memory::has_manager) {
                    return;
                }
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                if let Some(memory) = &mut self.memories[m] {
                    memory.greet_manager(conn, &mut sent);
                }
            }
            (Pid::Emp(e), Pid::Emp(o)) => {
                let other = EmpId(o as u32);
                let wants = |m: &EventManager| m.wants_to_dial().contains(&other);
                if !self.managers[e].as_ref().is_some_and(wants) {
                    return;
                }
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                if let Some(manager) = &mut self.managers[e] {
                    manager.greet(other, conn, &mut sent);
                }
            }
            _ => {}
        }
        self.send_all(from, sent);
    }

    pub(super) fn arrive(&mut self, id: ConnId, end: usize, message: Message) {
        let Some(conn) = self.network.conn(id).copied() else {
            return;
        };
        let (me, other) = (conn.pid(end), conn.pid(1 - end));
        if let Message::Open = message {
            if self.is_up(me) {
                self.network.accept(id);
            } else {
                self.send(id, 1 - end, Message::Closed);
            }
            return;
        }
        if !conn.is_open(end) {
            return self.network.forget(id, self.now);
        }
        if let Message::Closed = message {
            if self.network.close(id, end) {
                self.ended(id, end);
            }
            return self.network.forget(id, self.now);
        }
        if conn.has_lost(end, self.now) {
            return;
        }
        let now = self.clock(me);
        let mut sent = Sent::new();
        match (me, message) {
            (Pid::Ap(_) | Pid::Intruder(_), Message::Reply(reply)) => {
                let received = self.programs.get(&me);
                received.map(|t| t.on_line(now, |line| line.receive(*reply)));
                return self.program_may_go_on(me);
            }
            (Pid::Mp(m), message) => self.arrive_at_memory(m, id, other, message, &mut sent),
            (Pid::Emp(e), message) => {
                if let Some(manager) = &mut self.managers[e] {
                    match message {
                        Message::Ingest(request) => {
                            manager.ingest(self.now, id, *request, &mut sent);
                        }
                        Message::Exchange(request) => manager.exchange(id, *request, &mut sent),
                        Message::ExchangeReply(reply) => manager.exchanged(id, &reply, &mut sent),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self.send_all(me, sent);
        self.after(me);
    }

    pub(super) fn arrive_at_memory(
        &mut self,
        m: usize,
        id: ConnId,
        other: Pid,
        message: Message,
        sent: &mut Sent,
    ) {
        let now = self.clock(Pid::Mp(m));
        let upkeep = message.upkeep();
        let Some(memory) = &mut self.memories[m] else {
            return;
        };
        match (message, other) {
            (Message::Request(request), _) => memory.request(now, id, *request, sent),
            (Message::IngestReply(reply), _) => memory.told(now, id, &reply, sent),
            (Message::Peer(message), Pid::Mp(p)) => {
                let peer = MpId(p as u32);
                if let Some(peer_message::Body::Hello(_)) = message.body {
                    if peer < MpId(m as u32) {
                        let hello = memory.greeting(peer);
                        sent.push((To::Conn(id), Message::Peer(Box::new(hello))));
                    }
                    memory.attach_peer(now, peer, id, sent);
                } else {
                    memory.peer(now, peer, *message, sent);
                }
            }
            _ => {}
        }
        match upkeep {
            Some(Upkeep::Lease) => self.renewed[m] = self.now,
            Some(Upkeep::Records) => {}
            None => self.active[m] = self.now,
        }
    }

    /// An end is closed: its process does what follows.
    pub(super) fn ended(&mut self, id: ConnId, end: usize) {
        let Some(conn) = self.network.conn(id).copied() else {
            return;
        };
        let (me, other) = (conn.pid(end), conn.pid(1 - end));
        let (now, mut sent) = (self.clock(me), Sent::new());
        self.say(|| format!("{me:?} loses its connection to {other:?}"));
        match me {
            Pid::Ap(_) | Pid::Intruder(_) => {
                if let Some(program) = self.programs.get(&me) {
                    program.lose_line(now, "the memory process is gone");
                }
                self.lines.remove(&me);
                return self.program_may_go_on(me);
            }
            Pid::Mp(m) => {
                self.active[m] = self.now;
                let Some(memory) = &mut self.memories[m] else {
                    return;
                };
                match other {
                    Pid::Ap(_) | Pid::Intruder(_) => memory.ap_gone(now, id, &mut sent),
                    Pid::Mp(p) => {
                        memory.peer_gone(now, MpId(p as u32), id, &mut sent);
                        if end == 0 {
                            self.dial_soon(me, other, 500 * MS);
                        }
                    }
                    Pid::Emp(_) => {
                        if memory.manager_gone(id) {
                            self.dial_soon(me, other, SECOND);
                        }
                    }
                }
            }
            Pid::Emp(e) => {
                if let Some(manager) = &mut self.managers[e] {
                    manager.gone(id);
                }
                if end == 0 {
                    self.dial_soon(me, other, 2 * SECOND);
                }
            }
        }
        self.send_all(me, sent);
        self.after(me);
    }
}
