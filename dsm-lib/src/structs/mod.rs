//! Variables of structs: a matrix of bytes, a row per struct, whose handles take and give structs.

mod value;

use std::fmt;
use std::marker::PhantomData;

pub use value::{Shared, SharedField};

use crate::variable::{Handle, Variable, sealed};
use crate::{Error, Object, ReleaseFailed, Result, Section};

/// A variable of `T`s: `dsm.structs::<Body>("bodies", 100)`. In queries and traces it is a matrix of bytes with a row per struct.
pub struct Structs<T> {
    bytes: Variable<u8>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Shared + 'static> sealed::Sealed for Structs<T> {}
impl<T: Shared + 'static> Handle for Structs<T> {
    type Element = u8;
    fn of(bytes: Variable<u8>) -> Result<Self> {
        let layout = bytes.layout();
        if layout.columns() as usize != T::BYTES {
            return Err(Error::WrongStruct {
                name: bytes.name().to_owned(),
                declared: layout.columns() as usize,
                asked: std::any::type_name::<T>(),
                bytes: T::BYTES,
            });
        }
        Ok(Self {
            bytes,
            kind: PhantomData,
        })
    }
}

impl<T> std::ops::Deref for Structs<T> {
    type Target = Variable<u8>;
    fn deref(&self) -> &Variable<u8> {
        &self.bytes
    }
}

impl<T: Shared> Structs<T> {
    /// Number of structs.
    #[allow(clippy::len_without_is_empty)] // a variable has at least one
    pub fn len(&self) -> usize {
        self.layout().rows() as usize
    }

    /// Object `index`: the structs of one part.
    ///
    /// # Errors
    /// As [`Variable::object`].
    pub fn part(&self, index: usize) -> Result<StructObject<T>> {
        self.bytes.object(index).map(StructObject::of)
    }

    fn locate_one(&self, at: usize) -> Result<(StructObject<T>, usize)> {
        if at >= self.len() {
            return Err(Error::OutOfRange {
                what: format!("struct {at} of {}", self.name()),
                bounds: format!("it has {} structs", self.len()),
            });
        }
        let (object, byte) = self.bytes.locate(at, 0)?;
        Ok((StructObject::of(object), byte / T::BYTES))
    }

    /// Reads struct `at` of the variable.
    ///
    /// # Errors
    /// As [`StructObject::get`].
    pub fn get(&self, at: usize) -> Result<T> {
        let (part, at) = self.locate_one(at)?;
        part.get(at)
    }

    /// Writes struct `at` of the variable; see [`Object::write`].
    ///
    /// # Errors
    /// As [`Object::write_at`].
    pub fn set(&self, at: usize, value: &T) -> Result<()> {
        let (part, at) = self.locate_one(at)?;
        part.set(at, value)
    }
}

/// An object of a variable of structs.
pub struct StructObject<T> {
    bytes: Object<u8>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Shared> StructObject<T> {
    fn of(bytes: Object<u8>) -> Self {
        Self {
            bytes,
            kind: PhantomData,
        }
    }

    /// The object as bytes, for what is not offered here.
    pub fn bytes(&self) -> &Object<u8> {
        &self.bytes
    }
    /// Number of structs.
    #[allow(clippy::len_without_is_empty)] // an object has at least one
    pub fn len(&self) -> usize {
        self.bytes.region().rows as usize
    }

    fn decode(&self, bytes: &[u8]) -> Result<T> {
        T::load(bytes).ok_or_else(|| Error::NotAStruct {
            object: self.bytes.requests.target().to_string(),
            asked: std::any::type_name::<T>(),
        })
    }

    /// Reads all structs. One access.
    ///
    /// # Errors
    /// As [`Object::read`]; [`Error::NotAStruct`] if somebody wrote other bytes.
    pub fn read(&self) -> Result<Vec<T>> {
        let all = self.bytes.read()?;
        all.chunks_exact(T::BYTES)
            .map(|one| self.decode(one))
            .collect()
    }

    /// Writes all structs. One access.
    ///
    /// # Errors
    /// As [`Object::write`].
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.bytes.write(&encode(values))
    }

    /// Reads struct `at` of the object.
    ///
    /// # Errors
    /// As [`Object::read_range`]; [`Error::NotAStruct`] if somebody wrote other bytes.
    pub fn get(&self, at: usize) -> Result<T> {
        let range = bytes_of::<T>(at);
        self.decode(&self.bytes.read_range(range)?)
    }

    /// Writes struct `at` of the object, in one step: others see all of it or nothing.
    ///
    /// # Errors
    /// As [`Object::write_at`].
    pub fn set(&self, at: usize, value: &T) -> Result<()> {
        let first = bytes_of::<T>(at).start;
        self.bytes
            .write_at(first, &encode(std::slice::from_ref(value)))
    }

    /// Waits for exclusive access; see [`Object::acquire`].
    ///
    /// # Errors
    /// As [`Object::acquire`].
    pub fn acquire(&self) -> Result<StructSection<T>> {
        Ok(StructSection {
            section: self.bytes.acquire()?,
            object: self.clone(),
        })
    }
}

/// A section on an object of structs.
#[must_use = "a section that is dropped is released at once"]
pub struct StructSection<T> {
    section: Section<u8>,
    object: StructObject<T>,
}

impl<T: Shared> StructSection<T> {
    /// Reads struct `at`.
    ///
    /// # Errors
    /// As [`StructObject::get`].
    pub fn get(&self, at: usize) -> Result<T> {
        let bytes = self.section.read_range(bytes_of::<T>(at))?;
        self.object.decode(&bytes)
    }

    /// Writes struct `at`.
    ///
    /// # Errors
    /// As [`Section::write_at`].
    pub fn set(&mut self, at: usize, value: &T) -> Result<()> {
        let first = bytes_of::<T>(at).start;
        self.section
            .write_at(first, &encode(std::slice::from_ref(value)))
    }

    /// Changes struct `at` in place; returns what `change` gives.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`set`](Self::set); then nothing is changed.
    pub fn update<R>(&mut self, at: usize, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        let mut value = self.get(at)?;
        let result = change(&mut value);
        self.set(at, &value)?;
        Ok(result)
    }

    /// As [`Section::release`].
    ///
    /// # Errors
    /// As [`Section::release`].
    pub fn release(self) -> Result<u64, ReleaseFailed<Self>> {
        let Self { section, object } = self;
        section.release().map_err(|failed| ReleaseFailed {
            error: failed.error,
            section: Box::new(Self {
                section: *failed.section,
                object,
            }),
        })
    }
}

impl<T> Clone for Structs<T> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            kind: PhantomData,
        }
    }
}

impl<T> Clone for StructObject<T> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            kind: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Structs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl<T> fmt::Debug for StructObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl<T> fmt::Debug for StructSection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.section.fmt(f)
    }
}

/// The bytes of struct `at` of an object. Beyond its end, they are out of range.
fn bytes_of<T: Shared>(at: usize) -> std::ops::Range<usize> {
    let first = at.saturating_mul(T::BYTES);
    first..first.saturating_add(T::BYTES)
}

fn encode<T: Shared>(values: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * T::BYTES];
    let parts = bytes.chunks_exact_mut(T::BYTES);
    values
        .iter()
        .zip(parts)
        .for_each(|(value, part)| value.store(part));
    bytes
}
