//! Handles of declared variables.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::{Cache, CopyPolicy, Layout, LockKind, VarId, Variable as Declared};

use crate::element::{Element, Number};
use crate::lock_words::LockWords;
use crate::member::Member;
use crate::section::ScalarSection;
use crate::{Call, Error, Exchange, Object, Result};

/// A handle of a variable of any shape. Cheap to clone.
///
/// [`Scalar`], [`Vector`] and [`Matrix`] are this, and know their shape.
#[derive(Clone)]
pub struct Variable<T> {
    member: Member,
    name: Arc<str>,
    declared: Arc<Declared>,
    lock: Option<Arc<dyn LockWords>>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Variable<T> {
    pub(crate) fn new(member: Member, declared: Declared) -> Result<Self> {
        let (name, has) = (declared.spec().name(), declared.spec().layout().element());
        if has != T::TYPE {
            return Err(Error::WrongType {
                name: name.to_owned(),
                declared: has,
                asked: T::TYPE,
            });
        }
        Ok(Self {
            lock: member.lock_of(&declared),
            member,
            name: name.into(),
            declared: Arc::new(declared),
            element: PhantomData,
        })
    }

    /// Its name, unique in the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its number in the cluster.
    pub fn id(&self) -> VarId {
        self.declared.id()
    }
    /// Type, shape and split.
    pub fn layout(&self) -> Layout {
        self.declared.spec().layout()
    }
    /// What a release does to copies.
    pub fn policy(&self) -> CopyPolicy {
        self.declared.spec().policy()
    }
    /// How processes take turns on its objects.
    pub fn lock_kind(&self) -> LockKind {
        self.declared.spec().lock()
    }
    /// Down to where copies are kept.
    pub fn cache(&self) -> Cache {
        self.declared.spec().cache()
    }
    /// At how many other memory processes what is released is kept.
    pub fn replicas(&self) -> u32 {
        self.declared.spec().replicas()
    }
    /// Number of objects.
    pub fn object_count(&self) -> usize {
        self.layout().objects() as usize
    }
    /// The same variable, with another deadline for operations on it.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            member: self.member.with_deadline(deadline),
            ..self.clone()
        }
    }

    /// Object `index`, row-major over the parts.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is none.
    pub fn object(&self, index: usize) -> Result<Object<T>> {
        let object = u32::try_from(index).ok().and_then(|i| self.nth(i));
        object.ok_or_else(|| Error::OutOfRange {
            what: format!("object {index} of {}", self.name),
            bounds: format!("it has {} objects", self.object_count()),
        })
    }

    /// All objects, in order.
    pub fn objects(&self) -> impl Iterator<Item = Object<T>> + '_ {
        (0..self.layout().objects()).filter_map(|i| self.nth(i))
    }

    /// Reads all objects, with all requests under way at once, and puts their elements together: row by
    /// row of the variable, however it is split. Each object is as it was at one version; that all are of
    /// one moment takes a barrier between the last write and this.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read_all(&self) -> Result<Vec<T>> {
        let under_way: Vec<_> = self
            .objects()
            .map(|o| (o.region(), o.read_async()))
            .collect();
        let columns = self.layout().columns() as usize;
        let mut all = vec![T::default(); self.layout().rows() as usize * columns];
        for (region, part) in under_way {
            let part = part.wait()?;
            let first = region.row as usize * columns + region.column as usize;
            for (i, row) in part.rows().enumerate() {
                all[first + i * columns..][..row.len()].copy_from_slice(row);
            }
        }
        Ok(all)
    }

    fn nth(&self, index: u32) -> Option<Object<T>> {
        let (name, lock) = (self.name.clone(), self.lock.clone());
        Object::new(&self.member, name, &self.declared, index, lock)
    }

    /// The object that holds element (`row`, `column`), and the element's position in it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it is outside the variable.
    pub fn locate(&self, row: usize, column: usize) -> Result<(Object<T>, usize)> {
        match self.layout().locate(row as u64, column as u64) {
            Some((object, at)) => Ok((self.object(object as usize)?, at as usize)),
            None => Err(Error::OutOfRange {
                what: format!("element ({row}, {column}) of {}", self.name),
                bounds: format!("it is {}", self.layout()),
            }),
        }
    }
}

impl<T> std::fmt::Debug for Variable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({})", self.declared.spec())
    }
}

/// What a variable can be declared or opened as: [`Scalar`], [`Vector`], [`Matrix`], and (opened) any
/// [`Variable`].
pub trait Handle: sealed::Sealed + Sized + 'static {
    /// The type of its elements.
    type Element: Element;

    /// The handle of a variable of a suitable shape.
    ///
    /// # Errors
    /// [`Error::WrongShape`] if it has another.
    fn of(variable: Variable<Self::Element>) -> Result<Self>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<T: Element> sealed::Sealed for Variable<T> {}
impl<T: Element> Handle for Variable<T> {
    type Element = T;
    fn of(variable: Self) -> Result<Self> {
        Ok(variable)
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $what:literal, $fits:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<T>(Variable<T>);

        impl<T: Element> sealed::Sealed for $name<T> {}
        impl<T: Element> Handle for $name<T> {
            type Element = T;
            fn of(variable: Variable<T>) -> Result<Self> {
                let fits: fn(&Layout) -> bool = $fits;
                if fits(&variable.layout()) {
                    Ok(Self(variable))
                } else {
                    Err(Error::WrongShape {
                        name: variable.name().to_owned(),
                        declared: variable.layout(),
                        asked: $what,
                    })
                }
            }
        }
        impl<T> std::ops::Deref for $name<T> {
            type Target = Variable<T>;
            fn deref(&self) -> &Variable<T> {
                &self.0
            }
        }
    };
}
handle!(
    /// A variable with one element.
    Scalar, "scalar", |l| l.rows() == 1 && l.columns() == 1
);
handle!(
    /// A variable with one row.
    Vector, "vector", |l| l.rows() == 1
);
handle!(
    /// A variable with rows and columns.
    Matrix, "matrix", |_| true
);

impl<T: Element> Scalar<T> {
    fn only(&self) -> Result<Object<T>> {
        self.0.object(0)
    }

    /// Reads the value.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read(&self) -> Result<T> {
        self.only()?.get(0)
    }
    /// See [`read`](Self::read).
    pub fn read_async(&self) -> Call<T> {
        self.only().map_or_else(Call::failed, |o| o.get_async(0))
    }
    /// Writes the value; see [`Object::write`].
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn write(&self, value: T) -> Result<()> {
        self.only()?.set(0, value)
    }
    /// See [`write`](Self::write).
    pub fn write_async(&self, value: T) -> Call<()> {
        self.only()
            .map_or_else(Call::failed, |o| o.set_async(0, value))
    }
    /// Waits for exclusive access and opens a section.
    ///
    /// # Errors
    /// As [`Object::acquire`].
    pub fn acquire(&self) -> Result<ScalarSection<T>> {
        self.only()?.acquire().map(ScalarSection)
    }
    /// See [`acquire`](Self::acquire).
    pub fn acquire_async(&self) -> Call<ScalarSection<T>> {
        self.only()
            .map_or_else(Call::failed, |o| o.acquire_as(ScalarSection))
    }
    /// Stores `new` if the value is `expected`, bit for bit, in one step at the owner.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn compare_exchange(&self, expected: T, new: T) -> Result<Exchange<T>> {
        self.only()?.compare_exchange(0, expected, new)
    }
    /// See [`compare_exchange`](Self::compare_exchange).
    pub fn compare_exchange_async(&self, expected: T, new: T) -> Call<Exchange<T>> {
        self.only()
            .map_or_else(Call::failed, |o| o.compare_exchange_async(0, expected, new))
    }
}

impl<T: Number> Scalar<T> {
    /// Adds `delta` (integers wrap) in one step at the owner; returns the value before.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn fetch_add(&self, delta: T) -> Result<T> {
        self.only()?.fetch_add(0, delta)
    }
    /// See [`fetch_add`](Self::fetch_add).
    pub fn fetch_add_async(&self, delta: T) -> Call<T> {
        self.only()
            .map_or_else(Call::failed, |o| o.fetch_add_async(0, delta))
    }
}

impl<T: Element> Vector<T> {
    /// Number of elements.
    #[allow(clippy::len_without_is_empty)] // a variable has at least one element
    pub fn len(&self) -> usize {
        self.layout().columns() as usize
    }
    /// Reads element `at`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; else as [`Object::read`].
    pub fn get(&self, at: usize) -> Result<T> {
        let (object, at) = self.locate(0, at)?;
        object.get(at)
    }
    /// Writes element `at`; see [`Object::write`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set(&self, at: usize, value: T) -> Result<()> {
        let (object, at) = self.locate(0, at)?;
        object.set(at, value)
    }
    /// As [`Object::compare_exchange`], on element `at` of the vector.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn compare_exchange(&self, at: usize, expected: T, new: T) -> Result<Exchange<T>> {
        let (object, at) = self.locate(0, at)?;
        object.compare_exchange(at, expected, new)
    }
}

impl<T: Number> Vector<T> {
    /// As [`Object::fetch_add`], on element `at` of the vector.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn fetch_add(&self, at: usize, delta: T) -> Result<T> {
        let (object, at) = self.locate(0, at)?;
        object.fetch_add(at, delta)
    }
}

impl<T: Element> Matrix<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout().rows() as usize
    }
    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.layout().columns() as usize
    }
    /// Reads element (`row`, `column`). To compute, read whole objects.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; else as [`Object::read`].
    pub fn get(&self, row: usize, column: usize) -> Result<T> {
        let (object, at) = self.locate(row, column)?;
        object.get(at)
    }
    /// Writes element (`row`, `column`); see [`Object::write`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set(&self, row: usize, column: usize, value: T) -> Result<()> {
        let (object, at) = self.locate(row, column)?;
        object.set(at, value)
    }
}
