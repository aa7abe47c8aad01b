//! Pictures of results, as PNG files.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Encoder, Transformations};

use crate::error::{Error, Result};

/// A picture in greys: `width` pixels a row, from 0, black, to 255, white.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grey {
    pub(crate) width: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Grey {
    pub(crate) fn height(&self) -> usize {
        self.pixels.len() / self.width.max(1)
    }

    /// Writes it to `path`.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        write(path, ColorType::Grayscale, self.width, &self.pixels)
    }

    /// Reads a PNG file of any kind; colours become greys, transparency is ignored.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let unreadable =
            |why: String| Error::Usage(format!("cannot read {} as PNG: {why}", path.display()));
        let file = File::open(path).map_err(|e| unreadable(e.to_string()))?;
        let mut decoder = Decoder::new(BufReader::new(file));
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|e| unreadable(e.to_string()))?;
        let bytes = reader.output_buffer_size();
        let bytes = bytes.ok_or_else(|| unreadable("it is too large".into()))?;
        let mut data = vec![0; bytes];
        let frame = reader
            .next_frame(&mut data)
            .map_err(|e| unreadable(e.to_string()))?;
        let samples = frame.color_type.samples();
        let pixels = data[..frame.buffer_size()].chunks_exact(samples);
        Ok(Self {
            width: frame.width as usize,
            pixels: pixels.map(grey).collect(),
        })
    }
}

/// The grey of a pixel of 1 (grey), 2 (and transparency), 3 (red, green, blue) or 4 samples: Rec. 601.
fn grey(samples: &[u8]) -> u8 {
    match *samples {
        [r, g, b, ..] => {
            ((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000) as u8
        }
        [grey, ..] => grey,
        [] => 0,
    }
}

/// Writes pixels `0x00RRGGBB`, `width` a row, to `path`.
pub(crate) fn write_colours(path: &Path, width: usize, pixels: &[u32]) -> Result<()> {
    let bytes = pixels.iter().flat_map(|p| {
        let [_, r, g, b] = p.to_be_bytes();
        [r, g, b]
    });
    write(path, ColorType::Rgb, width, &bytes.collect::<Vec<u8>>())
}

fn write(path: &Path, colour: ColorType, width: usize, bytes: &[u8]) -> Result<()> {
    let failed = |source: std::io::Error| Error::File {
        path: path.to_owned(),
        source,
    };
    let height = bytes.len() / (width * colour.samples()).max(1);
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    // Does not fit in no picture that one has: a variable has less than 2^32 elements a dimension.
    let mut encoder = Encoder::new(file, width as u32, height as u32);
    encoder.set_color(colour);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|e| failed(e.into()))?;
    writer
        .write_image_data(bytes)
        .map_err(|e| failed(e.into()))?;
    writer.finish().map_err(|e| failed(e.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grey.png");
        let picture = Grey {
            width: 5,
            pixels: (0..35).map(|i| i * 7).collect(),
        };
        picture.write(&path).unwrap();
        assert_eq!(Grey::read(&path).unwrap(), picture);
    }

    #[test]
    fn colours_are_read_as_greys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("colours.png");
        write_colours(&path, 2, &[0xff_ff_ff, 0, 0xff_00_00, 0x00_ff_00]).unwrap();
        assert_eq!(Grey::read(&path).unwrap().pixels, [255, 0, 76, 150]);
    }

    #[test]
    fn what_is_no_picture_is_said_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text.png");
        std::fs::write(&path, "not a picture").unwrap();
        for path in [path, dir.path().join("none.png")] {
            let error = Grey::read(&path).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
        let error = write_colours(&dir.path().join("no/such.png"), 1, &[0]);
        assert!(matches!(error, Err(Error::File { .. })));
    }
}
