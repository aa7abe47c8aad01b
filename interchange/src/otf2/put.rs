//! Writing numbers, text and records as the format has them.

/// Bytes of a record, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Eight bytes.
    pub(super) fn whole_u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Four bytes.
    pub(super) fn whole_u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    /// How many bytes follow, and these; nothing follows for zero and for the greatest number.
    pub(super) fn u64(&mut self, value: u64) {
        if value == u64::MAX {
            return self.byte(u8::MAX);
        }
        let length = (u64::BITS - value.leading_zeros()).div_ceil(8) as u8;
        self.byte(length);
        let bytes = value.to_le_bytes();
        self.0.extend(bytes.iter().take(length.into()));
    }

    /// The same of 32 bits.
    pub(super) fn u32(&mut self, value: u32) {
        match value {
            u32::MAX => self.byte(u8::MAX),
            _ => self.u64(value.into()),
        }
    }

    /// Text, which ends with a zero byte; zero bytes in it become spaces.
    pub(super) fn text(&mut self, text: &str) {
        let visible = |b| if b == 0 { b' ' } else { b };
        self.0.extend(text.bytes().map(visible));
        self.byte(0);
    }

    /// A record: its number, the length of what `content` puts, and that.
    pub(super) fn record(&mut self, id: u8, content: impl FnOnce(&mut Self)) {
        self.byte(id);
        let at = self.0.len();
        content(self);
        let length = (self.0.len() - at) as u64;
        match u8::try_from(length) {
            Ok(length) if length < u8::MAX => self.0.insert(at, length),
            _ => {
                let long = length.to_le_bytes();
                self.0.splice(at..at, std::iter::once(u8::MAX).chain(long));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut bytes = Bytes::default();
        for value in [0, 1, 255, 256, u64::from(u32::MAX), u64::MAX] {
            bytes.u64(value);
        }
        bytes.u32(u32::MAX);
        let expected: [&[u8]; 7] = [
            &[0],
            &[1, 1],
            &[1, 255],
            &[2, 0, 1],
            &[4, 255, 255, 255, 255],
            &[255],
            &[255],
        ];
        assert_eq!(bytes.0, expected.concat());
    }

    #[test]
    fn a_long_record_has_a_long_length() {
        let mut bytes = Bytes::default();
        bytes.record(7, |b| b.0.extend([1; 254]));
        assert_eq!(bytes.0[..3], [7, 254, 1]);
        let mut bytes = Bytes::default();
        bytes.record(7, |b| b.0.extend([1; 255]));
        assert_eq!(bytes.0[..11], [7, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes.0.len(), 10 + 255);
    }
}
