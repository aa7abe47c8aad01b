//! Large contents go between two processes of one host around their connection: the sender writes them to a file in
//! memory, in the receiver's *inbox*, and the message says which; the receiver reads the file and unlinks it. A byte is
//! then copied twice, where a connection copies it five times, in pieces, with both processes awake.
//!
//! Each end of a connection has an inbox of its own, a directory below `/dev/shm` that only its user reads. It is
//! named in the greeting of whoever dialled a Unix socket, and in the answer of the other. Where an inbox is not
//! found (another host, another container, no such file system) or is full, contents stay in their messages.
//!
//! The sender keeps a few of its files for later contents, since most of the cost of a new one is its memory. It keeps a second name
//! of each, and sees by the number of names that the receiver is done with it. So it also knows how much was not read
//! yet, which is bounded.
//!
//! Who hands a content on as it came, as a memory process does, gives the file another name in the next inbox, and copies
//! nothing: it remembers for a while which of its contents are in which file.
//!
//! Guarantees: the order of messages is that of the connection; an inbox goes with its connection, with what was not
//! read, also when its process was killed (then with whatever writes to it or uses large messages next).

use std::collections::VecDeque;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use bytes::Bytes;

use crate::error::Malformed;
use crate::transport::Address;
use crate::whole::MAX_MESSAGE_BYTES;
use crate::wire::ap_reply::Body as Reply;
use crate::wire::ap_request::Body as Request;
use crate::wire::object_access::Kind;
use crate::wire::peer_message::Body as Peer;
use crate::wire::{ApReply, ApRequest, ObjectAccess, OutOfBand, PeerMessage};

/// Contents of this many bytes or more go around the connection.
pub const LARGE: usize = 16 << 10;

/// Environment variable that keeps all contents in their messages, if it is `off`.
pub const ENV_LARGE: &str = "DOSMOS_LARGE_MESSAGES";

/// Where files are memory.
const MEMORY: &str = "/dev/shm";

/// Files that one end of a connection may have written and the other not read yet, and the most of their contents, but
/// for a single larger one: what goes beyond stays in its message, and so waits until the other end takes it.
const MOST_UNREAD: usize = 64;
const UNREAD_BYTES: usize = 64 << 20;

/// Files of a connection that are kept for later contents, and buffers of a process, if they are not larger than this.
const MOST_KEPT: usize = 6;
const MOST_FREE: usize = 8;
const LARGEST_KEPT: usize = 16 << 20;

/// Contents that came and may be handed on, of a process, and their bytes: the files of more go at once.
const MOST_HANDED: usize = 8;
const HANDED_BYTES: usize = 32 << 20;

/// A message whose contents may be elsewhere.
pub trait Carrier {
    /// Shows its fields of bytes, always the same in the same order.
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes));
    /// Where contents are that are elsewhere.
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand>;
}

impl Carrier for ApRequest {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        if let Some(Request::Access(access)) = &mut self.body {
            of_access(access, visit);
        }
        let parts = self.returns.iter_mut().flat_map(|r| &mut r.parts);
        parts.for_each(|part| visit(&mut part.data));
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

impl Carrier for ApReply {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        match &mut self.body {
            Some(Reply::Read(done)) => visit(&mut done.data),
            Some(Reply::Granted(granted)) => granted.value.iter_mut().for_each(visit),
            Some(Reply::Update(update)) => visit(&mut update.data),
            _ => {}
        }
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

impl Carrier for PeerMessage {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Bytes)) {
        match &mut self.body {
            Some(Peer::Access(peer)) => {
                if let Some(access) = &mut peer.access {
                    of_access(access, visit);
                }
            }
            Some(Peer::ReadDone(done)) => visit(&mut done.data),
            Some(Peer::Update(update)) => visit(&mut update.data),
            Some(Peer::Granted(granted)) => granted.value.iter_mut().for_each(visit),
            _ => {}
        }
    }
    fn elsewhere(&mut self) -> &mut Vec<OutOfBand> {
        &mut self.out_of_band
    }
}

fn of_access(access: &mut ObjectAccess, visit: &mut dyn FnMut(&mut Bytes)) {
    match &mut access.kind {
        Some(Kind::Write(write)) => visit(&mut write.data),
        Some(Kind::Release(release)) => {
            if let Some(write) = &mut release.write {
                visit(&mut write.data);
            }
        }
        _ => {}
    }
}

/// How the large contents of one connection go: both ways, as far as its ends have agreed.
#[derive(Debug, Default)]
pub struct LargeMessages {
    inbox: OnceLock<Option<Inbox>>,
    outbox: Mutex<Option<Outbox>>,
    /// What comes may go out again as it is.
    hands_on: bool,
}

impl LargeMessages {
    /// For a process that hands contents on.
    pub fn handing_on() -> Self {
        Self {
            hands_on: true,
            ..Self::default()
        }
    }

    /// The inbox to name in the greeting of who dialled `address`; empty if there is none.
    pub fn offer(&self, address: &Address) -> String {
        match address {
            Address::Unix(_) => self.name(),
            Address::Tcp(_) => String::new(),
        }
    }

    /// The inbox to name in the answer to a greeting that named `theirs`; empty if there is none.
    pub fn answer(&self, theirs: &str) -> String {
        self.accept(theirs);
        match theirs.is_empty() {
            true => String::new(),
            false => self.name(),
        }
    }

    /// The other end takes large contents in the inbox `theirs`, unless that is empty.
    pub fn accept(&self, theirs: &str) {
        let outbox = Outbox::open(theirs);
        *self.outbox.lock().unwrap_or_else(PoisonError::into_inner) = outbox;
    }

    fn name(&self) -> String {
        let inbox = self.inbox.get_or_init(Inbox::create).as_ref();
        inbox.map_or_else(String::new, |i| i.name.clone())
    }

    /// The message to send in the place of `message`: its large contents are in files, if the other end takes that.
    pub fn pack<M: Carrier>(&self, mut message: M) -> M {
        let mut packed = Vec::new();
        let mut field = 0;
        message.contents(&mut |content| {
            if content.len() >= LARGE {
                let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
                // If there is no room, or no receiver any more, the connection takes it.
                if let Some(Ok(number)) = outbox.as_mut().map(|o| o.write(content))
                    && let Ok(length) = u32::try_from(content.len())
                {
                    content.clear();
                    packed.push(OutOfBand {
                        field,
                        number,
                        length,
                    });
                }
            }
            field += 1;
        });
        if !packed.is_empty() {
            *message.elsewhere() = packed;
        }
        message
    }

    /// The message with all its contents.
    ///
    /// # Errors
    /// If it says that something is in a file that is not there or holds something else.
    pub fn unpack<M: Carrier>(&self, mut message: M) -> Result<M, Malformed> {
        let elsewhere = std::mem::take(message.elsewhere());
        let wrong = |why: String| Malformed::new("out_of_band", why);
        for at in elsewhere {
            let inbox = self.inbox.get().and_then(Option::as_ref);
            let inbox = inbox.ok_or_else(|| wrong("this process takes none".into()))?;
            let bytes = inbox.read(at, self.hands_on);
            let bytes = bytes.map_err(|e| wrong(format!("file {}: {e}", at.number)))?;
            let (mut field, mut bytes) = (0, Some(bytes));
            message.contents(&mut |content| {
                if field == at.field && content.is_empty() {
                    *content = bytes.take().unwrap_or_default();
                }
                field += 1;
            });
            if bytes.is_some() {
                return Err(wrong(format!("there is no empty field {}", at.field)));
            }
        }
        Ok(message)
    }
}

/// Where large contents of a connection arrive.
#[derive(Debug)]
struct Inbox {
    path: PathBuf,
    name: String,
    /// Locked as long as this process lives: whoever can lock it may remove it.
    _lock: File,
}

impl Inbox {
    fn create() -> Option<Self> {
        static SWEPT: Once = Once::new();
        let base = base()?;
        SWEPT.call_once(|| sweep(&base));
        let name = format!("{:016x}", getrandom::u64().ok()?);
        let path = base.join(&name);
        DirBuilder::new().mode(0o700).create(&path).ok()?;
        let lock = File::open(&path).ok()?;
        // Whoever sweeps may have found it before it was locked, and removed it.
        let ours = lock.try_lock().is_ok() && path.is_dir();
        ours.then_some(Self {
            path,
            name,
            _lock: lock,
        })
    }

    fn read(&self, at: OutOfBand, hand_on: bool) -> io::Result<Bytes> {
        let length = at.length as usize;
        let path = self.path.join(at.number.to_string());
        let file = File::options().read(true).write(true).open(&path)?;
        let found = file.metadata()?;
        if length > MAX_MESSAGE_BYTES || found.len() < u64::from(at.length) {
            return Err(io::Error::other(format!("it has not {length} bytes")));
        }
        let mut buffer = Buffer::take(length);
        let mut content = (&file).take(u64::from(at.length));
        if content.read_to_end(&mut buffer.0)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if hand_on && length <= LARGEST_KEPT {
            let content = Arc::new(buffer);
            Handed::add(Arc::clone(&content), path);
            return Ok(Bytes::from_owner(Shared(content)));
        }
        if found.nlink() == 1 {
            // It is not kept, but the sender has it open until it writes again: its memory is given back now.
            file.set_len(0)?;
        }
        std::fs::remove_file(&path)?;
        Ok(Bytes::from_owner(buffer))
    }
}

/// A content that came, and the file that has it. The file goes when nobody needs the content any more, or for newer ones.
#[derive(Debug)]
struct Handed {
    content: Arc<Buffer>,
    path: PathBuf,
}

/// A content that is remembered besides.
struct Shared(Arc<Buffer>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

/// Those of this process, oldest first.
static HANDED: Mutex<VecDeque<Handed>> = Mutex::new(VecDeque::new());

impl Handed {
    fn all() -> MutexGuard<'static, VecDeque<Self>> {
        HANDED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(content: Arc<Buffer>, path: PathBuf) {
        let mut all = Self::all();
        all.retain(|handed| Arc::strong_count(&handed.content) > 1);
        all.push_back(Self { content, path });
        let mut bytes: usize = all.iter().map(|handed| handed.content.0.len()).sum();
        while (all.len() > MOST_HANDED || bytes > HANDED_BYTES)
            && let Some(oldest) = all.pop_front()
        {
            bytes -= oldest.content.0.len();
        }
    }

    /// Gives the file that has this very content the name `path`, if there is one.
    fn hand_on(content: &[u8], path: &Path) -> bool {
        let all = Self::all();
        let same = |handed: &&Self| std::ptr::eq(&*handed.content.0, content);
        let found = all.iter().rfind(same);
        found.is_some_and(|handed| std::fs::hard_link(&handed.path, path).is_ok())
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        // It may be gone with its inbox.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // If it cannot be removed, it is left to whoever sweeps next.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A copy of `content`, to be sent.
pub fn copy_of(content: &[u8]) -> Bytes {
    if content.len() < LARGE {
        return Bytes::copy_from_slice(content);
    }
    let mut buffer = Buffer::take(content.len());
    buffer.0.extend_from_slice(content);
    Bytes::from_owner(buffer)
}

/// Memory for contents, used again when nobody needs it any more: to get it of the system takes longer than to fill
/// it.
#[derive(Debug)]
struct Buffer(Vec<u8>);

/// Buffers that nobody uses.
static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

impl Buffer {
    /// An empty one with room for this length.
    fn take(length: usize) -> Self {
        let fits = |b: &Vec<u8>| b.capacity() >= length && b.capacity() / 2 <= length;
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().rposition(fits);
        let found = found.map(|at| free.swap_remove(at));
        drop(free);
        let mut buffer = found.unwrap_or_default();
        buffer.clear();
        buffer.reserve_exact(length);
        Self(buffer)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() > LARGEST_KEPT {
            return;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (free.len() == MOST_FREE).then(|| free.remove(0));
        free.push(std::mem::take(&mut self.0));
        drop((free, oldest));
    }
}

/// The inbox of the other end.
#[derive(Debug)]
struct Outbox {
    path: PathBuf,
    next: u64,
    /// Files that were not known to be read when last looked at, and the length of their contents.
    unread: Vec<(Sent, usize)>,
    unread_bytes: usize,
    /// Files for later contents.
    free: Vec<OwnFile>,
}

/// A file in an inbox.
#[derive(Debug)]
struct OwnFile {
    file: File,
    /// A second name, which stays when the receiver unlinks the first; none if it is used once.
    kept: Option<PathBuf>,
}

/// What is in an inbox.
#[derive(Debug)]
enum Sent {
    Own(OwnFile),
    /// Somebody else's file, by the name that it has there.
    HandedOn(PathBuf),
}

impl Sent {
    fn is_read(&self) -> bool {
        match self {
            Self::Own(own) => own.is_read(),
            Self::HandedOn(path) => std::fs::symlink_metadata(path).is_err(),
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self, Self::Own(OwnFile { kept: Some(_), .. }))
    }
}

impl Outbox {
    fn open(name: &str) -> Option<Self> {
        let plain = name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let path = base().filter(|_| plain)?.join(name);
        path.is_dir().then_some(Self {
            path,
            next: 0,
            unread: Vec::new(),
            unread_bytes: 0,
            free: Vec::new(),
        })
    }

    /// Writes `content` to a file; its number. An error also if too much was not read yet.
    fn write(&mut self, content: &[u8]) -> io::Result<u64> {
        self.collect();
        let full = self.unread.len() >= MOST_UNREAD
            || self.unread_bytes + content.len() > UNREAD_BYTES.max(content.len());
        if full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let number = self.next;
        self.next += 1;
        let path = self.path.join(number.to_string());
        if Handed::hand_on(content, &path) {
            return Ok(self.sent(number, Sent::HandedOn(path), content));
        }
        let small = content.len() <= LARGEST_KEPT;
        let own = match self.free.pop_if(|_| small) {
            Some(own) => own.write_again(content, &path)?,
            None => OwnFile::write_new(content, &path, small && self.kept() < MOST_KEPT)?,
        };
        Ok(self.sent(number, Sent::Own(own), content))
    }

    fn sent(&mut self, number: u64, sent: Sent, content: &[u8]) -> u64 {
        self.unread.push((sent, content.len()));
        self.unread_bytes += content.len();
        number
    }

    /// Files that were read are free, if they are kept. Some are read later than others: they are handed on.
    fn collect(&mut self) {
        for (sent, length) in self.unread.extract_if(.., |(sent, _)| sent.is_read()) {
            self.unread_bytes -= length;
            if let Sent::Own(own) = sent {
                self.free.extend(own.kept.is_some().then_some(own));
            }
        }
    }

    fn kept(&self) -> usize {
        let unread = self.unread.iter();
        self.free.len() + unread.filter(|(sent, _)| sent.is_kept()).count()
    }
}

impl OwnFile {
    fn write_new(content: &[u8], path: &Path, keep: bool) -> io::Result<Self> {
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let kept = keep.then(|| path.with_extension("kept"));
        let named = |kept: &PathBuf| std::fs::hard_link(path, kept);
        let written = file.write_all_at(content, 0);
        if let Err(error) = written.and_then(|()| kept.as_ref().map_or(Ok(()), named)) {
            std::fs::remove_file(path)?;
            return Err(error);
        }
        Ok(Self { file, kept })
    }

    fn write_again(self, content: &[u8], path: &Path) -> io::Result<Self> {
        let Some(kept) = &self.kept else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let written = self.file.write_all_at(content, 0);
        if let Err(error) = written.and_then(|()| std::fs::hard_link(kept, path)) {
            std::fs::remove_file(kept)?;
            return Err(error);
        }
        Ok(self)
    }

    /// Whether the receiver has read what it was last used for.
    fn is_read(&self) -> bool {
        let left = u64::from(self.kept.is_some());
        self.file.metadata().is_ok_and(|m| m.nlink() == left)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        remove_if_abandoned(&self.path);
    }
}

/// The directory of all inboxes of this user; none if there is no file system in memory.
fn base() -> Option<PathBuf> {
    if std::env::var_os(ENV_LARGE).is_some_and(|v| v == "off") {
        return None;
    }
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let path = Path::new(MEMORY).join(format!("dosmos-{user}"));
    // It may exist.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let found = std::fs::symlink_metadata(&path).ok()?;
    let private = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
    private.then_some(path)
}

/// Removes inboxes whose processes are gone.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else {
        return;
    };
    entries
        .flatten()
        .for_each(|e| remove_if_abandoned(&e.path()));
}

fn remove_if_abandoned(path: &Path) {
    let abandoned = File::open(path).is_ok_and(|dir| dir.try_lock().is_ok());
    if abandoned {
        // Whoever else sweeps may be faster.
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::wire::{Part, ReadDone, Return, Write};

    fn unix() -> Address {
        Address::Unix("/somewhere".into())
    }

    fn reply(bytes: usize) -> ApReply {
        let data = (0..bytes).map(|i| i as u8).collect();
        ApReply {
            id: 3,
            body: Some(Reply::Read(ReadDone {
                data,
                ..ReadDone::default()
            })),
            ..ApReply::default()
        }
    }

    fn at(number: u64, length: u32) -> ApReply {
        let mut message = reply(0);
        message.out_of_band.push(OutOfBand {
            field: 0,
            number,
            length,
        });
        message
    }

    /// Two ends that have greeted.
    fn connected() -> (LargeMessages, LargeMessages) {
        let (dialled, accepted) = (LargeMessages::default(), LargeMessages::default());
        let theirs = dialled.offer(&unix());
        assert!(!theirs.is_empty(), "no files in {MEMORY}");
        dialled.accept(&accepted.answer(&theirs));
        (dialled, accepted)
    }

    fn path(of: &LargeMessages) -> PathBuf {
        let inbox = of.inbox.get().and_then(Option::as_ref);
        inbox.unwrap().path.clone()
    }

    fn files(of: &LargeMessages) -> usize {
        std::fs::read_dir(path(of)).unwrap().count()
    }

    #[test]
    fn large_contents_go_around_both_ways_and_small_ones_do_not() {
        let (dialled, accepted) = connected();
        let small = reply(100);
        assert_eq!(accepted.pack(small.clone()), small);
        let sent = accepted.pack(reply(LARGE));
        assert!(sent.encoded_len() < 40, "{sent:?}");
        assert_eq!(dialled.unpack(sent).unwrap(), reply(LARGE));
        let back = dialled.pack(reply(3 * LARGE));
        assert_eq!(accepted.unpack(back).unwrap(), reply(3 * LARGE));
    }

    #[test]
    fn a_file_is_used_again_when_it_was_read_and_not_before() {
        let (dialled, accepted) = connected();
        for length in [4 * LARGE, LARGE, 2 * LARGE, 5 * LARGE] {
            let sent = accepted.pack(reply(length));
            assert_eq!(dialled.unpack(sent).unwrap(), reply(length));
            assert_eq!(files(&dialled), 1, "the one that is kept");
        }
        let lengths = (0..3 * MOST_KEPT).map(|i| LARGE + i);
        let sent: Vec<ApReply> = lengths.clone().map(|n| accepted.pack(reply(n))).collect();
        for (sent, length) in sent.into_iter().zip(lengths) {
            assert_eq!(dialled.unpack(sent).unwrap(), reply(length));
        }
        assert_eq!(files(&dialled), MOST_KEPT);
    }

    #[test]
    fn a_receiver_that_does_not_read_is_sent_a_bounded_number_of_files() {
        let (dialled, accepted) = connected();
        let sent: Vec<ApReply> = (0..3 * MOST_UNREAD)
            .map(|i| accepted.pack(reply(LARGE + i)))
            .collect();
        let around = sent.iter().filter(|m| !m.out_of_band.is_empty()).count();
        let files_now = files(&dialled);
        assert_eq!((around, files_now), (MOST_UNREAD, MOST_UNREAD + MOST_KEPT));
        for (i, sent) in sent.into_iter().enumerate() {
            assert!(dialled.unpack(sent).unwrap() == reply(LARGE + i));
        }
        assert_eq!(files(&dialled), MOST_KEPT);
        assert_eq!(accepted.pack(reply(LARGE)).out_of_band.len(), 1);
    }

    #[test]
    fn files_that_are_not_read_have_bounded_contents_and_those_that_are_kept_are_smaller() {
        let (dialled, accepted) = connected();
        let largest = reply(UNREAD_BYTES);
        let sent = accepted.pack(largest.clone());
        assert_eq!(sent.out_of_band.len(), 1);
        assert!(accepted.pack(reply(LARGE)).out_of_band.is_empty());
        assert!(dialled.unpack(sent).unwrap() == largest);
        assert_eq!(files(&dialled), 0, "the large one is not kept");
        let sent = accepted.pack(reply(LARGE));
        assert_eq!(sent.out_of_band.len(), 1);
        dialled.unpack(sent).unwrap();
        // Nor does one that is kept become large.
        let sent = accepted.pack(reply(LARGEST_KEPT + 1));
        dialled.unpack(sent).unwrap();
        accepted.pack(reply(LARGE));
        let sizes = std::fs::read_dir(path(&dialled)).unwrap();
        let sizes = sizes.map(|e| e.unwrap().metadata().unwrap().len() as usize);
        assert!(sizes.max() <= Some(LARGEST_KEPT));
    }

    #[test]
    fn of_several_contents_each_comes_back_to_its_place() {
        let (dialled, accepted) = connected();
        let part = |length: usize| Part {
            first: length as u32,
            data: vec![length as u8; length].into(),
        };
        let returned = Return {
            parts: vec![part(LARGE + 1), part(3), part(LARGE + 2)],
            ..Return::default()
        };
        let write = Write {
            data: vec![9; LARGE].into(),
            ..Write::default()
        };
        let message = ApRequest {
            body: Some(Request::Access(ObjectAccess {
                object: 1,
                kind: Some(Kind::Write(write)),
            })),
            returns: vec![returned],
            ..ApRequest::default()
        };
        let sent = dialled.pack(message.clone());
        assert_eq!(sent.out_of_band.len(), 3);
        assert_eq!(accepted.unpack(sent).unwrap(), message);
    }

    #[test]
    fn what_is_handed_on_as_it_came_is_the_same_file_until_nobody_needs_it() {
        use std::os::unix::fs::MetadataExt;
        let (maker, reader) = (LargeMessages::default(), LargeMessages::default());
        let middle = [(); 2].map(|()| LargeMessages::handing_on());
        maker.accept(&middle[0].offer(&unix()));
        middle[1].accept(&reader.offer(&unix()));
        let inodes = |of: &LargeMessages| -> Vec<u64> {
            let entries = std::fs::read_dir(path(of)).unwrap();
            let mut all: Vec<_> = entries
                .map(|e| e.unwrap().metadata().unwrap().ino())
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let came = middle[0].unpack(maker.pack(reply(LARGE))).unwrap();
        let handed = [0; 2].map(|_| middle[1].pack(came.clone()));
        assert_eq!(inodes(&reader), inodes(&middle[0]), "nothing was copied");
        // The maker writes something else meanwhile, and a part of the content is not the content.
        let other = middle[0].unpack(maker.pack(reply(LARGE + 1))).unwrap();
        let mut part = came.clone();
        let Some(Reply::Read(read)) = &mut part.body else {
            panic!("it is a reading");
        };
        read.data = read.data.slice(..LARGE - 1);
        assert!(middle[1].pack(part).out_of_band.is_empty());
        for handed in handed {
            assert_eq!(reader.unpack(handed).unwrap(), reply(LARGE));
        }
        assert_eq!(files(&reader), 0);
        assert_eq!(inodes(&middle[0]).len(), 2, "each content has its file");
        // Where nobody needs a content any more, its file is used for another one.
        drop((came, other));
        for n in 2..20 {
            let came = middle[0].unpack(maker.pack(reply(LARGE + n))).unwrap();
            assert_eq!(came, reply(LARGE + n));
            let handed = middle[1].pack(came);
            assert_eq!(reader.unpack(handed).unwrap(), reply(LARGE + n));
            assert!(inodes(&middle[0]).len() <= 3, "{:?}", inodes(&middle[0]));
        }
    }

    #[test]
    fn of_contents_that_stay_only_the_last_may_be_handed_on() {
        let (maker, reader) = (LargeMessages::default(), LargeMessages::default());
        let middle = [(); 2].map(|()| LargeMessages::handing_on());
        maker.accept(&middle[0].offer(&unix()));
        middle[1].accept(&reader.offer(&unix()));
        let came: Vec<ApReply> = (0..3 * MOST_HANDED)
            .map(|n| middle[0].unpack(maker.pack(reply(LARGE + n))).unwrap())
            .collect();
        let kept = MOST_KEPT + MOST_HANDED;
        assert!(
            files(&middle[0]) <= kept + MOST_HANDED,
            "{}",
            files(&middle[0])
        );
        for (n, came) in came.into_iter().enumerate() {
            let handed = middle[1].pack(came);
            assert_eq!(reader.unpack(handed).unwrap(), reply(LARGE + n));
        }
    }

    #[test]
    fn over_tcp_and_with_a_stranger_everything_goes_through_the_connection() {
        let dialled = LargeMessages::default();
        assert_eq!(dialled.offer(&Address::Tcp("localhost:1".into())), "");
        let accepted = LargeMessages::default();
        assert_eq!(accepted.answer(""), "");
        for inbox in ["0123456789abcdef", "../../../../etc", "/etc", ""] {
            accepted.accept(inbox);
            assert!(accepted.pack(reply(LARGE)) == reply(LARGE));
        }
    }

    #[test]
    fn what_is_not_there_or_something_else_is_refused_with_the_reason() {
        let (dialled, accepted) = connected();
        let said = |m| dialled.unpack::<ApReply>(m).unwrap_err().to_string();
        assert!(said(at(9, 4)).contains("file 9"));
        let mut sent = accepted.pack(reply(LARGE));
        sent.out_of_band[0].length += 1;
        assert!(said(sent).contains("it has not 16385 bytes"));
        let mut sent = accepted.pack(reply(LARGE));
        sent.out_of_band[0].field = 1;
        assert!(said(sent).contains("no empty field 1"));
        assert!(LargeMessages::default().unpack(at(0, 1)).is_err());
    }

    #[test]
    fn an_inbox_goes_with_its_connection_and_that_of_a_killed_process_with_the_next() {
        let (dialled, accepted) = connected();
        let (ours, theirs) = (path(&dialled), path(&accepted));
        // Another process is killed: its lock goes, its files stay.
        let number = getrandom::u64().unwrap();
        let abandoned = base().unwrap().join(format!("{number:016x}"));
        std::fs::create_dir_all(&abandoned).unwrap();
        std::fs::write(abandoned.join("0"), "not read").unwrap();
        sweep(&base().unwrap());
        assert!(!abandoned.exists());
        assert!(ours.exists() && theirs.exists());
        drop((dialled, accepted));
        assert!(!ours.exists() && !theirs.exists());
    }

    #[test]
    fn without_the_receiver_the_connection_takes_the_message() {
        let (dialled, accepted) = connected();
        drop(dialled);
        assert!(accepted.pack(reply(LARGE)) == reply(LARGE));
    }
}
