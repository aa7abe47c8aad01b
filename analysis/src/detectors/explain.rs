//! One cause, one finding: what another finding explains is listed under that one's evidence.
//!
//! | cause | explains | where |
//! |---|---|---|
//! | deadlock | bottleneck, ping-pong | a common object |
//! | false sharing | ping-pong, bottleneck, policy mismatch, misplaced owner | a common object |
//! | no sharing | read-only locking, misplaced owner, policy mismatch | a common object |
//! | ping-pong between two | bottleneck, policy mismatch | a common object |
//! | bottleneck | ping-pong among more than two, policy mismatch | a common object |
//! | read-only locking | bottleneck, ping-pong, misplaced owner, policy mismatch that cost no more than twice as much | a common object |
//! | crowded owner | misplaced owner, no sharing, bad group, policy mismatch | a common object |
//! | bad group | misplaced owner, policy mismatch | a common object |
//! | polling | policy mismatch | a common object |
//! | barrier overhead | imbalance that costs no more than twice as much: of little work, chance makes somebody last | a common process |
//! | all of these, and misplaced owner | fine-grained access that costs no more than twice as much | a common object |
//!
//! (Bad group leaves variables without sharing, or with false sharing, out from the start: an object each has no group to
//! be in. And imbalance counts neither waiting
//! for locks nor the way to other processes as work, nor a phase that a deadlock keeps from ending.)

use serde_json::json;

use super::candidate::Candidate;
use crate::finding::Kind;

/// Moves explained candidates into the evidence of what explains them.
pub(super) fn explain(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut standing: Vec<Candidate> = Vec::new();
    // Causes first, so that a symptom finds its cause standing.
    candidates.sort_by_key(rank);
    for candidate in candidates {
        match standing.iter_mut().find(|c| explains(c, &candidate)) {
            Some(cause) => add_symptom(cause, candidate),
            None => standing.push(candidate),
        }
    }
    standing
}

/// Place in the order of causes.
fn rank(c: &Candidate) -> usize {
    match c.finding.kind {
        Kind::Deadlock => 0,
        Kind::FalseSharing => 1,
        Kind::CrowdedOwner => 2,
        Kind::NoSharing => 3,
        Kind::ReadOnlyLocking => 4,
        Kind::PingPong if c.aps.len() <= 2 => 5,
        Kind::Bottleneck => 6,
        Kind::PingPong => 7,
        Kind::BadGroup => 8,
        Kind::MisplacedOwner => 9,
        Kind::Polling => 10,
        Kind::PolicyMismatch => 11,
        Kind::FineGrained => 12,
        Kind::BarrierOverhead => 13,
        Kind::Imbalance => 14,
        Kind::SlowProcess => 15,
        // Is not found here.
        Kind::DataRace => 16,
    }
}

fn explains(cause: &Candidate, symptom: &Candidate) -> bool {
    use Kind::*;
    let kinds: &[Kind] = match cause.finding.kind {
        Deadlock => &[Bottleneck, PingPong],
        FalseSharing => &[
            PingPong,
            Bottleneck,
            PolicyMismatch,
            MisplacedOwner,
            FineGrained,
        ],
        CrowdedOwner => &[
            MisplacedOwner,
            NoSharing,
            BadGroup,
            PolicyMismatch,
            FineGrained,
        ],
        NoSharing => &[ReadOnlyLocking, MisplacedOwner, PolicyMismatch, FineGrained],
        ReadOnlyLocking => &[Bottleneck, PingPong, MisplacedOwner, PolicyMismatch],
        PingPong => &[Bottleneck, PolicyMismatch, FineGrained],
        Bottleneck => &[PingPong, PolicyMismatch, FineGrained],
        BadGroup => &[MisplacedOwner, PolicyMismatch, FineGrained],
        Polling => &[PolicyMismatch, FineGrained],
        MisplacedOwner | PolicyMismatch => &[FineGrained],
        BarrierOverhead => &[Imbalance],
        FineGrained | Imbalance | SlowProcess | DataRace => &[],
    };
    // What holds in a part of the run explains no more than it costs.
    let (severity, explained) = (cause.finding.severity, symptom.finding.severity);
    let enough = match symptom.finding.kind {
        // Near or far, many small accesses cost more than one large; uneven work costs what it does at few barriers too.
        FineGrained | Imbalance => 2.0 * severity >= explained,
        // Those who write wait for each other without the readers, too.
        _ if cause.finding.kind == ReadOnlyLocking => 2.0 * severity >= explained,
        _ => !cause.in_part || severity >= explained,
    };
    let common = match cause.finding.kind {
        BarrierOverhead => !cause.aps.is_disjoint(&symptom.aps),
        _ => !cause.objects.is_disjoint(&symptom.objects),
    };
    enough && common && kinds.contains(&symptom.finding.kind)
}

fn add_symptom(cause: &mut Candidate, symptom: Candidate) {
    let listed = json!({
        "kind": symptom.finding.kind,
        "target": symptom.finding.target(),
        "severity": symptom.finding.severity,
    });
    let evidence = &mut cause.finding.evidence;
    let list = evidence.entry("symptoms").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(listed);
    }
    cause.explained.push(symptom);
}
