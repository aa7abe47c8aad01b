//! Verify: one pass over all records of a run, for a verdict on the consistency contract.

use dosmos_trace::query::Catalog;
use dosmos_verify::{Options, Verdict, Verifier};

use crate::{Error, Launch, Run, records};

/// A verdict, and what it is about.
pub struct Verified {
    /// The verdict.
    pub verdict: Verdict,
    /// Names and processes of the run.
    pub catalog: Catalog,
    /// How the run was started and how it ended.
    pub launch: Launch,
}

impl Run {
    /// Whether the records of the run keep the consistency contract. What is missing makes the verdict undecided, unless the
    /// records that are there refute the contract.
    ///
    /// # Errors
    /// If no source answers.
    pub async fn verify(&self, options: Options) -> Result<Verified, Error> {
        let source = self.source();
        let catalog = source.catalog().await?;
        let mut verifier = Verifier::new(catalog.clone(), options);
        let completeness =
            records::each(source, &catalog, None, &mut |record| verifier.add(record)).await?;
        let (launch, troubles) = self.launch_and_troubles().await?;
        Ok(Verified {
            verdict: verifier.finish(&completeness, catalog.live, &troubles),
            catalog,
            launch,
        })
    }
}
