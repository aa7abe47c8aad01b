//! Whom an error message blames: what a barrier says of a participant that is gone, and who that was. One process that
//! fails makes others fail; whoever reads their messages finds the first.

use crate::{ErrorCode, Refusal};

const CANNOT_OPEN: &str = "the barrier cannot open: ";
const LEFT: &str = " has left";
const LOST: &str = " is lost with ";

/// The refusal of a barrier of which `ap` is a participant and has left.
pub fn has_left(ap: &str) -> Refusal {
    cannot_open(&format!("{ap}{LEFT}"))
}

/// The refusal of a barrier of which `ap` is a participant, whose memory process cannot be reached.
pub fn is_lost(ap: &str, with: &str) -> Refusal {
    cannot_open(&format!("{ap}{LOST}{with}"))
}

fn cannot_open(why: &str) -> Refusal {
    let message = format!("{CANNOT_OPEN}{why}, and it is one of its participants");
    Refusal::new(ErrorCode::ProcessLost, message)
}

/// The application process that a message blames, if it does.
pub fn blamed(message: &str) -> Option<&str> {
    let (_, why) = message.split_once(CANNOT_OPEN)?;
    let end = [LEFT, LOST].iter().filter_map(|words| why.find(words));
    why.get(..end.min()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_barrier_blames_who_is_gone() {
        for refusal in [has_left("ap 2"), is_lost("ap 2", "mp1")] {
            let said = format!("dosmos: barrier was refused: {}", refusal.message);
            assert_eq!(blamed(&said), Some("ap 2"), "{said}");
        }
        assert_eq!(blamed("ap2 has left the queue"), None);
        assert_eq!(blamed("the barrier cannot open: nobody knows why"), None);
    }
}
