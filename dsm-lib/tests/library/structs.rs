//! Structs as elements of shared variables: their layout, and what becomes of them against a fake memory process.

use crate::fake::Fake;
use dsm_lib::{Error, Matrix, Shared, SharedField, Structs};

#[derive(Clone, Debug, PartialEq, Shared)]
struct Body {
    alive: bool,
    mass: f64,
    position: [f32; 3],
    mark: Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Shared)]
struct Mark(u16, i64);

#[derive(Debug, PartialEq, Shared)]
struct Other {
    bytes: [u8; 31],
}

fn body(n: u16) -> Body {
    Body {
        alive: true,
        mass: f64::from(n) + 0.5,
        position: [1.0, -0.0, f32::INFINITY],
        mark: Mark(n, -1),
    }
}

#[test]
fn fields_follow_each_other_little_endian_whatever_their_alignment() {
    let field = |name, offset, bytes| SharedField {
        name,
        offset,
        bytes,
    };
    let fields = [
        field("alive", 0, 1),
        field("mass", 1, 8),
        field("position", 9, 12),
        field("mark", 21, 10),
    ];
    assert_eq!((Body::BYTES, Body::FIELDS), (31, &fields[..]));
    assert_eq!(Mark::FIELDS, [field("0", 0, 2), field("1", 2, 8)]);
    // Memory has gaps between them, the shared bytes do not.
    assert!(size_of::<Body>() > Body::BYTES);
    let mut bytes = [0xff; 31];
    body(0x102).store(&mut bytes);
    assert_eq!(bytes[0], 1);
    assert_eq!(bytes[1..9], 258.5f64.to_le_bytes());
    assert_eq!(bytes[21..], [2, 1, 255, 255, 255, 255, 255, 255, 255, 255]);
    assert_eq!(Body::load(&bytes), Some(body(0x102)));
    bytes[0] = 2;
    assert_eq!(Body::load(&bytes), None, "2 is not a bool");
    let nothing = Body::load(&[0; 31]).unwrap();
    assert_eq!(
        (nothing.alive, nothing.mass, nothing.mark),
        (false, 0.0, Mark(0, 0))
    );
}

#[test]
fn structs_are_written_and_read_whole_and_in_parts() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let bodies: Structs<Body> = dsm.structs("bodies", 5).split(2).declare().unwrap();
    assert_eq!((bodies.len(), bodies.object_count()), (5, 2));
    bodies.set(3, &body(3)).unwrap();
    assert_eq!(bodies.get(3).unwrap(), body(3));
    assert!(!bodies.get(2).unwrap().alive);
    let error = bodies.get(5).unwrap_err();
    assert!(error.to_string().contains("struct 5 of bodies"), "{error}");
    let part = bodies.part(1).unwrap();
    assert_eq!(part.len(), 2, "the objects have 3 and 2 structs");
    assert_eq!(part.read().unwrap()[0], body(3));
    part.write(&[body(7), body(8)]).unwrap();
    assert_eq!(bodies.get(4).unwrap(), body(8));
    let error = part.write(&[body(7)]).unwrap_err();
    assert!(matches!(error, Error::WrongLength { .. }), "{error}");
    let whole = bodies.read_all().unwrap();
    assert_eq!(whole.len(), 5 * Body::BYTES);
    assert_eq!(Body::load(&whole[4 * Body::BYTES..]), Some(body(8)));
}

#[test]
fn a_section_updates_a_struct_in_place() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let bodies: Structs<Body> = dsm.structs("near.bodies", 2).declare().unwrap();
    let mut section = bodies.part(0).unwrap().acquire().unwrap();
    section.set(1, &body(1)).unwrap();
    let before = section.update(1, |body| std::mem::replace(&mut body.mass, 9.0));
    assert_eq!(before.unwrap(), 1.5);
    assert_eq!(section.get(1).unwrap().mass, 9.0);
    assert!(section.update(2, |_| ()).is_err(), "there are two");
    section.release().unwrap();
    assert_eq!(
        bodies.get(1).unwrap(),
        Body {
            mass: 9.0,
            ..body(1)
        }
    );
    assert!(!fake.log().contains(&"write near.bodies".into()));
}

#[test]
fn a_struct_of_another_size_and_bytes_of_another_kind_are_errors() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let bodies: Structs<Body> = dsm.structs("bodies", 2).declare().unwrap();
    let error = dsm.open::<Structs<Mark>>("bodies").unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("rows of 31 bytes") && said.contains("Mark has 10"),
        "{said}"
    );
    // Of the same size: seen when the bytes are not a value of the struct.
    let others: Structs<Other> = dsm.open("bodies").unwrap();
    others.set(1, &Other { bytes: [9; 31] }).unwrap();
    assert_eq!(others.get(1).unwrap().bytes, [9; 31]);
    assert!(!bodies.get(0).unwrap().alive);
    let error = bodies.get(1).unwrap_err();
    assert!(matches!(&error, Error::NotAStruct { .. }), "{error}");
    assert!(error.to_string().contains("same struct"), "{error}");
    let bytes: Matrix<u8> = dsm.open("bodies").unwrap();
    assert_eq!(bytes.get(1, 0).unwrap(), 9);
}
