//! The committed code is what the `.proto` files say.
#![allow(clippy::unwrap_used)] // a test that cannot go on should say where

#[test]
fn generated_code_is_up_to_date() {
    for file in dosmos_proto_generate::generate().unwrap() {
        let path = dosmos_proto_generate::directory().join(file.name);
        let committed = std::fs::read(&path).unwrap_or_default();
        assert!(
            committed == file.content,
            "{} is not what the .proto files say: run `cargo run -p dosmos-proto-generate`",
            file.name
        );
    }
}
