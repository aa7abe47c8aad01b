//! Objects and elements a request may name: where they are, or why there are none.

use dosmos_proto::{ElementType, ErrorCode, MpId, ObjectId, Refusal};

use super::Core;
use super::input::{AtomicOp, Span};

/// Where an object is, and its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) owner: MpId,
    pub(crate) elements: u32,
    pub(crate) width: u32,
}

impl Core {
    /// Where an object is; refused if there is none.
    pub(super) fn place(&self, object: ObjectId) -> Result<Place, Refusal> {
        let Some(variable) = self.directory.variable(object.var) else {
            return Err(Refusal::new(
                ErrorCode::UnknownVariable,
                format!(
                    "{} is not known at {}; declare or open the variable first",
                    object.var,
                    self.cluster.mp_name(self.cluster.me)
                ),
            ));
        };
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
        Ok(Place {
            owner: variable.owner(object.index),
            elements,
            width: layout.element().bytes(),
        })
    }

    /// Name of an object, for a message: `grid[3]`.
    pub(super) fn object_name(&self, object: ObjectId) -> String {
        match self.directory.variable(object.var) {
            Some(v) => format!("{}[{}]", v.spec().name(), object.index),
            None => object.to_string(),
        }
    }

    /// The elements a read means.
    pub(super) fn check_span(
        &self,
        object: ObjectId,
        place: &Place,
        span: Span,
    ) -> Result<(u32, u32), Refusal> {
        let end = if span.end == 0 {
            place.elements
        } else {
            span.end
        };
        if span.first < end && end <= place.elements {
            return Ok((span.first, end));
        }
        Err(self.out_of_range(object, place, u64::from(span.first), u64::from(end)))
    }

    fn out_of_range(&self, object: ObjectId, place: &Place, first: u64, end: u64) -> Refusal {
        Refusal::new(
            ErrorCode::OutOfRange,
            format!(
                "{} has the elements 0 to {}; [{first}, {end}) is not among them",
                self.object_name(object),
                place.elements - 1
            ),
        )
    }

    /// The element after the last one a write touches.
    pub(super) fn check_data(
        &self,
        object: ObjectId,
        place: &Place,
        first: u32,
        bytes: usize,
    ) -> Result<u32, Refusal> {
        if bytes == 0 || !bytes.is_multiple_of(place.width as usize) {
            return Err(Refusal::new(
                ErrorCode::TypeMismatch,
                format!(
                    "{} has elements of {} bytes; {bytes} bytes are not a whole number of them, at least one",
                    self.object_name(object),
                    place.width
                ),
            ));
        }
        let end = u64::from(first) + bytes as u64 / u64::from(place.width);
        if end > u64::from(place.elements) {
            return Err(self.out_of_range(object, place, first.into(), end));
        }
        Ok(end as u32)
    }

    /// Whether an atomic operation fits the element it names.
    pub(super) fn check_atomic(
        &self,
        object: ObjectId,
        place: &Place,
        element: u32,
        kind: ElementType,
        op: AtomicOp,
    ) -> Result<(), Refusal> {
        let mismatch = |why: String| Err(Refusal::new(ErrorCode::TypeMismatch, why));
        let is = self
            .directory
            .variable(object.var)
            .map(|v| v.spec().layout().element());
        if let Some(is) = is.filter(|is| *is != kind) {
            return mismatch(format!(
                "{} has elements of {is}, not {kind}",
                self.object_name(object)
            ));
        }
        if kind == ElementType::Bool && matches!(op, AtomicOp::FetchAdd(_)) {
            return mismatch(format!(
                "{} is bool; use compare-exchange, there is nothing to add",
                self.object_name(object)
            ));
        }
        let span = Span {
            first: element,
            end: element.saturating_add(1),
        };
        self.check_span(object, place, span).map(|_| ())
    }
}
