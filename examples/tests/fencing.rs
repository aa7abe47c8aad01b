//! Fencing tokens as a program passes them on (docs/guide/locks.md#fencing-tokens).
#![allow(clippy::unwrap_used)]

use dsm_lib::{Error, Fence, FencingToken, testing};

#[test]
fn a_resource_refuses_a_section_that_is_over() {
    // Outside of the shared memory; the ranks are threads of this test.
    let fence = Fence::new();
    let tokens = testing::run(3, |dsm| {
        let object = dsm.scalar::<u64>("x").replicas(1).declare()?;
        let mut section = object.acquire()?;
        let token = section.fencing_token().expect("a queue lock has tokens");
        fence
            .admit(token)
            .expect("no later section was here before");
        section.update(|n| n + 1)?;
        section.release()?;
        dsm.barrier()?;
        assert_eq!(object.read()?, 3);
        Ok::<FencingToken, Error>(token)
    });
    let mut tokens = tokens.unwrap();
    tokens.sort();
    let last = tokens.pop().unwrap();
    // Whoever wakes in a section that is over is refused; the last section may go on.
    for token in tokens {
        let refused = fence.admit(token).unwrap_err();
        assert_eq!((refused.token, refused.latest), (token, last));
    }
    fence.admit(last).unwrap();
}
