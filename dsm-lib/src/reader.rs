//! Reading one object again and again.

use std::sync::Arc;

use crate::cache::{Elements, Reads};
use crate::element::Element;
use crate::{Object, Result, View};

/// After this number of reads of the same elements the program may be waiting for a change: then what has arrived is seen to.
const SAME: u32 = 1024;

/// Reads one object again and again, by [`Object::reader`].
///
/// What it read last it keeps, and looks only whether that is still what the object contains: so a read takes a few
/// nanoseconds, where one by [`Object::read`] or [`Object::get`] takes three to eight times as long. It sees what that would
/// see. For tables that many read and few change. An object that this process has to itself, since it changes it, is read as by
/// [`Object`]; and since a reader keeps what it read as a whole, the next change copies that.
///
/// ```no_run
/// # fn main() -> Result<(), dsm_lib::Error> {
/// # let dsm = dsm_lib::Dsm::from_env()?;
/// let table = dsm.vector::<f64>("table", 1000).declare()?;
/// let mut table = table.object(0)?.reader();
/// let mut sum = 0.0;
/// for i in 0..1_000_000 {
///     sum += table.get(i % 1000)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reader<T: Element> {
    object: Object<T>,
    /// Reads that the object's slot was not told of.
    reads: Arc<Reads>,
    kept: Kept<T>,
    /// The elements that were read last, and how often in succession.
    same: (Elements, u32),
}

/// What was read last.
struct Kept<T> {
    view: View<T>,
    /// It is what the object contains as long as the object has this stamp.
    stamp: Option<u64>,
}

impl<T: Element> Default for Kept<T> {
    fn default() -> Self {
        Self {
            view: View::empty(),
            stamp: None,
        }
    }
}

impl<T: Element> Object<T> {
    /// For reading the object again and again, each time in a few nanoseconds while nobody changes it.
    pub fn reader(&self) -> Reader<T> {
        Reader {
            object: self.clone(),
            reads: Arc::default(),
            kept: Kept::default(),
            same: ((0, 0), 0),
        }
    }
}

impl<T: Element> Reader<T> {
    /// The whole object, as [`Object::read`] gives it.
    ///
    /// # Errors
    /// As [`Object::read`].
    #[inline]
    pub fn read(&mut self) -> Result<&View<T>> {
        if !self.reads_again((0, self.object.len() as u32)) {
            self.read_anew()?;
        }
        Ok(&self.kept.view)
    }

    /// Element `at`, as [`Object::get`] gives it.
    ///
    /// # Errors
    /// As [`Object::get`].
    #[inline]
    pub fn get(&mut self, at: usize) -> Result<T> {
        match self.kept.view.get(at).copied() {
            Some(value) if self.reads_again((at as u32, at as u32 + 1)) => Ok(value),
            _ => self.get_anew(at),
        }
    }

    /// Counts a read of these elements, if what is kept is what the object contains.
    #[inline]
    fn reads_again(&mut self, elements: Elements) -> bool {
        let again = self.kept.stamp.is_some() && self.kept.stamp == self.object.here.stamp();
        self.same = match self.same {
            (last, times) if last == elements => (last, times + 1),
            _ => (elements, 1),
        };
        let again = again && self.same.1 < SAME;
        if again {
            let bytes = u64::from(elements.1 - elements.0) * size_of::<T>() as u64;
            self.reads.add(elements, bytes);
        }
        again
    }

    #[cold]
    fn read_anew(&mut self) -> Result<()> {
        self.see_to_news();
        let view = self.object.read()?;
        if !self.keep() {
            self.kept.view = view;
        }
        Ok(())
    }

    #[cold]
    fn get_anew(&mut self, at: usize) -> Result<T> {
        self.see_to_news();
        let value = self.object.get(at)?;
        self.keep();
        Ok(value)
    }

    /// Keeps what the object contains, if that is here and known to be valid for longer; otherwise nothing.
    fn keep(&mut self) -> bool {
        let columns = self.object.region().columns as usize;
        let kept = self.object.here.keep(columns, &self.reads);
        let found = kept.is_some();
        self.kept = match kept {
            Some((view, stamp)) => Kept {
                view,
                stamp: Some(stamp),
            },
            None => Kept::default(),
        };
        found
    }

    /// Sees to what has arrived, if the program may be waiting for it.
    fn see_to_news(&mut self) {
        if self.same.1 >= SAME {
            self.same.1 = 0;
            self.object.requests.shared().await_news();
        }
    }
}

impl<T: Element> Drop for Reader<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.object.here.slot() {
            slot.forget(&self.reads);
        }
    }
}
