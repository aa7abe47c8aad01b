//! Contents of secondary meta-objects on their way to other event managers: kept until the receiver
//! has them on disk, sent again after a lost connection.

use std::collections::{BTreeMap, VecDeque};

use dosmos_proto::EmpId;
use dosmos_trace::meta::SecondaryContent;

/// What is due to other event managers.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    due: BTreeMap<EmpId, VecDeque<SecondaryContent>>,
}

impl Outbox {
    /// Something is due; numbers for one receiver must rise.
    pub fn push(&mut self, to: EmpId, content: SecondaryContent) {
        self.due.entry(to).or_default().push_back(content);
    }

    /// The receiver has everything up to `sequence` on disk.
    pub fn acknowledged(&mut self, to: EmpId, sequence: u64) {
        if let Some(queue) = self.due.get_mut(&to) {
            while queue.pop_front_if(|c| c.sequence <= sequence).is_some() {}
        }
    }

    /// What is due to `to` with a number above `sequence`, at most `most` of it.
    pub fn after(&self, to: EmpId, sequence: u64, most: usize) -> Vec<SecondaryContent> {
        let queue = self.due.get(&to).into_iter().flatten();
        queue
            .filter(|c| c.sequence > sequence)
            .take(most)
            .cloned()
            .collect()
    }

    /// All that is due, in order for each receiver.
    pub fn due(&self) -> impl Iterator<Item = (EmpId, &SecondaryContent)> {
        let queues = self.due.iter();
        queues.flat_map(|(to, queue)| queue.iter().map(|content| (*to, content)))
    }

    /// Whether anything is due to anybody.
    pub fn is_empty(&self) -> bool {
        self.due.values().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::MpId;

    #[test]
    fn kept_until_acknowledged() {
        let mut outbox = Outbox::default();
        let to = EmpId(1);
        for sequence in 1..=4 {
            outbox.push(
                to,
                SecondaryContent {
                    sequence,
                    object: Default::default(),
                    copy_at: MpId(0),
                    reads: sequence,
                    dropped: true,
                    fetches: 1,
                    by_ap: BTreeMap::new(),
                },
            );
        }
        let numbers = |list: Vec<SecondaryContent>| -> Vec<u64> {
            list.into_iter().map(|c| c.sequence).collect()
        };
        assert_eq!(numbers(outbox.after(to, 0, 3)), [1, 2, 3]);
        outbox.acknowledged(to, 2);
        assert_eq!(
            numbers(outbox.after(to, 0, 9)),
            [3, 4],
            "sent again from there"
        );
        assert_eq!(numbers(outbox.after(to, 3, 9)), [4]);
        outbox.acknowledged(to, 4);
        assert!(outbox.is_empty());
    }
}
