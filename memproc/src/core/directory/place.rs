//! Where an object is, how large, and whether an access fits it.

use dosmos_proto::{ElementType, ErrorCode, MpId, ObjectId, Refusal, Variable};

use crate::core::messages::{AtomicOp, ElementRange, WriteData};
use crate::core::replica::seat::Seat;
use crate::core::replica::seats::Seats;

/// The seat of an object, if its variable has replicas.
pub(crate) fn seat_of(variable: &Variable, index: u32) -> Option<Seat> {
    let replicas = variable.spec().replicas();
    let mp = variable.owner(index);
    (replicas > 0).then_some(Seat { mp, replicas })
}

/// An object of a known variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) object: ObjectId,
    pub(crate) variable: &'a Variable,
    /// Who serves it now.
    pub(crate) owner: MpId,
    /// If it has replicas: what it is served and kept with.
    pub(crate) seat: Option<Seat>,
    pub(crate) elements: u32,
    /// Bytes per element.
    pub(crate) width: u32,
}

impl<'a> Place<'a> {
    /// The object `object.index` of `variable`.
    pub(crate) fn new(
        variable: &'a Variable,
        object: ObjectId,
        seats: &Seats,
    ) -> Result<Self, Refusal> {
        let layout = variable.spec().layout();
        let Some(elements) = layout.elements_of(object.index) else {
            return Err(Refusal::new(
                ErrorCode::OutOfRange,
                format!(
                    "{} has {} objects; there is no [{}]",
                    variable.spec().name(),
                    layout.objects(),
                    object.index
                ),
            ));
        };
        let seat = seat_of(variable, object.index);
        Ok(Self {
            object,
            variable,
            owner: seat.map_or_else(|| variable.owner(object.index), |s| seats.holder(s).1),
            seat,
            elements,
            width: layout.element().bytes(),
        })
    }

    /// Name of the object, for a message: `grid[3]`.
    pub(crate) fn name(&self) -> String {
        format!("{}[{}]", self.variable.spec().name(), self.object.index)
    }

    /// Size of the object in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.elements as usize * self.width as usize
    }

    /// The bytes of elements `[first, end)`.
    pub(crate) fn bytes_of(&self, (first, end): (u32, u32)) -> std::ops::Range<usize> {
        let width = self.width as usize;
        first as usize * width..end as usize * width
    }

    /// The elements a read names.
    pub(crate) fn check_range(&self, range: ElementRange) -> Result<(u32, u32), Refusal> {
        let end = range.end.unwrap_or(self.elements);
        if range.first < end && end <= self.elements {
            return Ok((range.first, end));
        }
        Err(self.out_of_range(range.first.into(), end.into()))
    }

    fn out_of_range(&self, first: u64, end: u64) -> Refusal {
        Refusal::new(
            ErrorCode::OutOfRange,
            format!(
                "{} has the elements 0 to {}; [{first}, {end}) is not among them",
                self.name(),
                self.elements - 1
            ),
        )
    }

    /// The elements a write touches, from the first to the last.
    pub(crate) fn check_write(&self, write: &WriteData) -> Result<(u32, u32), Refusal> {
        let (bytes, element_type) = (write.data.len(), self.element_type());
        if write.adds && element_type == ElementType::Bool {
            return Err(self.nothing_to_add());
        }
        let Some(runs) = &write.runs else {
            return self.check_contiguous(write.first, bytes);
        };
        let expected = runs.elements() * u64::from(self.width);
        if bytes as u64 != expected {
            let why = format!(
                "{bytes} bytes were given for {} elements of {}, which are {expected} bytes",
                runs.elements(),
                self.name()
            );
            return Err(Refusal::new(ErrorCode::TypeMismatch, why));
        }
        let (first, end) = runs.hull();
        self.check_range(ElementRange {
            first,
            end: Some(end),
        })
    }

    pub(crate) fn check_contiguous(&self, first: u32, bytes: usize) -> Result<(u32, u32), Refusal> {
        if bytes == 0 || !bytes.is_multiple_of(self.width as usize) {
            return Err(Refusal::new(
                ErrorCode::TypeMismatch,
                format!(
                    "{} has elements of {} bytes; {bytes} bytes are not a whole number of them, at least one",
                    self.name(),
                    self.width
                ),
            ));
        }
        let end = u64::from(first) + bytes as u64 / u64::from(self.width);
        if end > u64::from(self.elements) {
            return Err(self.out_of_range(first.into(), end));
        }
        Ok((first, end as u32))
    }

    fn nothing_to_add(&self) -> Refusal {
        let why = format!(
            "{} is bool; use compare-exchange, there is nothing to add",
            self.name()
        );
        Refusal::new(ErrorCode::TypeMismatch, why)
    }

    /// The type of its elements.
    pub(crate) fn element_type(&self) -> ElementType {
        self.variable.spec().layout().element()
    }

    /// The element an atomic operation touches, if the operation fits it.
    pub(crate) fn check_atomic(
        &self,
        element: u32,
        element_type: ElementType,
        op: AtomicOp,
    ) -> Result<(u32, u32), Refusal> {
        let mismatch = |why: String| Err(Refusal::new(ErrorCode::TypeMismatch, why));
        let is = self.element_type();
        if is != element_type {
            return mismatch(format!(
                "{} has elements of {is}, not {element_type}",
                self.name()
            ));
        }
        if element_type == ElementType::Bool && matches!(op, AtomicOp::FetchAdd(_)) {
            return Err(self.nothing_to_add());
        }
        self.check_range(ElementRange {
            first: element,
            end: Some(element.saturating_add(1)),
        })
    }
}
