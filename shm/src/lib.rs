//! Contents in shared memory: written once by the process that has them, mapped by each process of the same host that
//! needs them, copied by nobody in between.
//!
//! * A content lies in a file below `/dev/shm` (tmpfs: files that are memory). Its maker maps the file and fills it.
//! * A process that takes contents of another has an [`Inbox`] for that connection, a directory. To send a content is to
//!   give its file a name there ([`Outbox::put`]), and to say the number in the message.
//! * The receiver moves that name to a directory of its own, its *home*, and maps the file ([`Inbox::take`]). It removes
//!   the name when it does not need the content any more.
//! * So the number of names of a file says who needs its content. Its maker fills it anew only if the
//!   maker's own name is the last: most of the cost of a new file is its memory.
//! * Who hands on a content as it came, or a part of it, as a memory process does, gives its file another name in the next inbox.
//!
//! Contents of less than 64 KiB are copied: a file for each would cost more. They go through a ring of bytes in the inbox that both
//! processes have mapped, or in a file if the ring is full.
//!
//! A content of zeros that is in no file yet is said ([`Sent::Zeros`]) and not sent.
//!
//! Each directory is locked (`flock`) as long as its process lives and readable by its user alone. What a killed process
//! leaves is removed by whoever sent to it, by the next process that makes a directory, or by [`sweep`].
//!
//! Where there is no such file system or no room, or a process has too much mapped, contents stay where they are: the caller
//! sends them in its messages.

mod directory;
mod heap;
mod home;
mod inbox;
mod mapped;
mod outbox;
mod ring;
mod segment;
mod zeros;

use bytes::Bytes;

pub use directory::{ENV_LARGE, sweep};
pub use inbox::Inbox;
pub use mapped::{room_for, zeroed};
pub use outbox::{Outbox, Sent};
pub use zeros::{are_zeros, zeros};

/// Contents of fewer bytes are better sent in messages.
pub const LARGE: usize = 16 << 10;

/// A copy of `content`, to be sent: in shared memory, if it goes as a file and this process uses that.
pub fn copy_of(content: &[u8]) -> Bytes {
    if content.len() < LARGE {
        return Bytes::copy_from_slice(content);
    }
    let home = home::Home::in_use().filter(|_| content.len() >= ring::LARGER);
    let shared = home.and_then(|home| home.content_of(content).ok());
    shared.unwrap_or_else(|| heap::copy_of(content))
}
