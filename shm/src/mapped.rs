//! Memory of files, and of large pages: the only `unsafe` code of the project.
//!
//! A mapped file is memory of this process that others may change or cut off, which Rust cannot see; so to map one is `unsafe`
//! (`memmap2`). Here it is sound as far as the processes of one user, which could also stop and change each other
//! by other means, run this crate:
//!
//! * files are made by this crate alone, in directories with random names that only their user may enter;
//! * no file is ever cut off or extended after it was made, when all of its memory is taken (`fallocate`): so no access
//!   fails for lack of it;
//! * a file of a content is written only by its maker, in [`Room`], and only while no other process has a name of it and
//!   nothing borrows its content here ([`super::segment`]); who maps it to read has a name of it for as long
//!   ([`super::inbox`]);
//! * of the bytes of a [`Common`] file each is written by one process and then read by the other, as its number says ([`super::ring`]).

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use memmap2::{Mmap, MmapMut, MmapOptions, MmapRaw};
use nix::fcntl::posix_fallocate;
use nix::sys::mman::{MmapAdvise, madvise};

/// The bytes of a large page, on most systems.
const LARGE_PAGE: usize = 2 << 20;

/// Memory of its own for `length` values, empty. Where it is large it is of large pages, if the system has any: to get
/// those takes a fraction of the time, and so does finding what lies in them.
pub fn room_for<T>(length: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(length);
    large_pages(room.spare_capacity_mut());
    room
}

/// As [`room_for`], with all values there: those whose bytes are zero.
pub fn zeroed<T: Copy + Default>(length: usize) -> Vec<T> {
    // Of the system, which has not filled it yet where it is large.
    let mut values = vec![T::default(); length];
    large_pages(&mut values);
    values
}

/// Asks for large pages where this memory, which nobody has touched, fills some.
fn large_pages<P>(place: &mut [P]) {
    let from = place.as_mut_ptr().cast::<c_void>();
    let before = from.align_offset(LARGE_PAGE);
    let inside = size_of_val(place).saturating_sub(before) / LARGE_PAGE * LARGE_PAGE;
    if let Some(from) = NonNull::new(from.wrapping_byte_add(before))
        && inside > 0
    {
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: these pages lie in memory that is borrowed here alone, and what they hold does not depend on their size.
        let advised = unsafe { madvise(from, inside, MmapAdvise::MADV_HUGEPAGE) };
        // A system that has no large pages says so; then they are small.
        let (Ok(()) | Err(_)) = advised;
    }
}

/// A new file of zeros with all of its memory; none is left of one that cannot be made.
fn new_file(path: &Path, length: usize) -> io::Result<File> {
    let bytes = i64::try_from(length).map_err(io::Error::other)?;
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(path)?;
    if let Err(error) = posix_fallocate(&file, 0, bytes) {
        std::fs::remove_file(path)?;
        return Err(error.into());
    }
    Ok(file)
}

/// A file of this process, to be filled.
#[derive(Debug)]
pub(crate) struct Room(MmapMut);

impl Room {
    /// Makes the file and maps it.
    pub(crate) fn create(path: &Path, length: usize) -> io::Result<Self> {
        let file = new_file(path, length)?;
        let mut options = MmapOptions::new();
        options.len(length).populate();
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: the file has this length and keeps it. Others read it, and write nothing.
        let map = unsafe { options.map_mut(&file) };
        Ok(Self(map?))
    }
}

impl Deref for Room {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A file of another process, to be read.
#[derive(Debug)]
pub(crate) struct Mapping(Mmap);

impl Mapping {
    /// Maps the `length` bytes of `file` from `offset` on, all at once if they are `wanted` now.
    pub(crate) fn of(file: &File, offset: u64, length: usize, wanted: bool) -> io::Result<Self> {
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| file.metadata().map_or(0, |m| m.len()) < end) {
            let why = format!("it has not {length} bytes from byte {offset} on");
            return Err(io::Error::other(why));
        }
        let mut options = MmapOptions::new();
        options.offset(offset).len(length);
        if wanted {
            options.populate();
        }
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: the file is as long as this and keeps its length. Its maker does not write to it while
        // it has another name, which whoever calls this keeps as long as the mapping.
        let map = unsafe { options.map(file) };
        Ok(Self(map?))
    }
}

impl Deref for Mapping {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A file that two processes read and write: a number, and bytes behind its first page.
#[derive(Debug)]
pub(crate) struct Common {
    map: MmapRaw,
    bytes: usize,
}

/// Where the bytes begin.
const HEADER: usize = 4 << 10;

impl Common {
    /// Makes the file, with `bytes` bytes behind the number, and maps it.
    pub(crate) fn create(path: &Path, bytes: usize) -> io::Result<Self> {
        Self::of(&new_file(path, HEADER + bytes)?, bytes)
    }

    /// Maps one that another process has made.
    pub(crate) fn open(path: &Path, bytes: usize) -> io::Result<Self> {
        Self::of(&File::options().read(true).write(true).open(path)?, bytes)
    }

    fn of(file: &File, bytes: usize) -> io::Result<Self> {
        let length = HEADER + bytes;
        if file.metadata()?.len() != length as u64 {
            return Err(io::Error::other(format!("it is not {length} bytes long")));
        }
        let map = MmapOptions::new().len(length).map_raw(file)?;
        Ok(Self { map, bytes })
    }

    /// The number.
    pub(crate) fn number(&self) -> &AtomicU64 {
        let place = self.map.as_mut_ptr().cast();
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: it is at the beginning of a page of the mapping, which lives as long as this, and is used as this only.
        unsafe {
            AtomicU64::from_ptr(place)
        }
    }

    /// Writes `content` from byte `at` on.
    ///
    /// # Panics
    /// If it is too long.
    pub(crate) fn write(&self, at: usize, content: &[u8]) {
        assert!(at <= self.bytes && content.len() <= self.bytes - at);
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: as checked, it lies in the mapping, and `content` elsewhere; nobody reads there, since the other end is done with it.
        unsafe {
            let to = self.map.as_mut_ptr().add(HEADER + at);
            std::ptr::copy_nonoverlapping(content.as_ptr(), to, content.len());
        }
    }

    /// The `length` bytes from byte `at` on, which the other end has written and left to this one.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn written(&self, at: usize, length: usize) -> &[u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        #[expect(unsafe_code, reason = "see the module")]
        // SAFETY: as checked, it lies in the mapping; who has written there does not until this end says that it is done.
        unsafe {
            let from = self.map.as_ptr().add(HEADER + at);
            std::slice::from_raw_parts(from, length)
        }
    }
}
