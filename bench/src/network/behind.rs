//! Clusters whose processes are reached through slow links only.

use std::time::Duration;

use anyhow::Context;
use dosmos_testkit::SlowLink;
use tempfile::TempDir;

/// The links to memory processes `mp0`, `mp1` and so on; they end with this.
pub(crate) struct Behind {
    place: TempDir,
    links: Vec<SlowLink>,
}

impl Behind {
    /// Links to that many memory processes, each longer by `delay` in both directions.
    pub(crate) fn links(delay: Duration, processes: usize) -> anyhow::Result<Self> {
        let place = tempfile::tempdir().context("no place for sockets")?;
        let links =
            (0..processes).map(|i| SlowLink::to(&place.path().join(format!("mp{i}")), delay));
        let links = links.collect::<Result<_, _>>().context("no ports")?;
        Ok(Self { place, links })
    }

    /// A cluster file whose memory processes of these names listen behind the links, and advertise them.
    pub(crate) fn cluster(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (i, link) in self.links.iter().enumerate() {
            let socket = self.place.path().join(format!("mp{i}"));
            let name = format!("[[mp]]\nname = \"mp{i}\"\n");
            let (socket, address) = (socket.display(), link.address());
            let behind = format!("{name}listen = \"unix:{socket}\"\nadvertise = \"{address}\"\n");
            text = text.replacen(&name, &behind, 1);
        }
        text
    }
}
