//! The twelve applications at the sizes of the papers.

/// An application of the DVSM paper with its speed-up there on 8 processors: Fast Ethernet, ATM.
pub(crate) struct Application {
    pub(crate) name: &'static str,
    /// Of which size: the paper's where a run takes long enough to be measured, larger where it would not.
    size: &'static [&'static str],
    /// How much of it; with it, the same whatever the number of processes.
    amount: [&'static str; 2],
    pub(crate) paper: Option<(f64, f64)>,
}

impl Application {
    /// With `quick`: small, and once.
    pub(crate) fn command(&self, quick: bool) -> Vec<&'static str> {
        let [option, amount] = self.amount;
        let mut command = vec![self.name, option];
        if quick {
            command.push("1");
        } else {
            command.push(amount);
            command.extend(self.size);
        }
        command
    }
}

const fn application(
    name: &'static str,
    size: &'static [&'static str],
    amount: [&'static str; 2],
    paper: Option<(f64, f64)>,
) -> Application {
    Application {
        name,
        size,
        amount,
        paper,
    }
}

/// Those of the paper first.
pub(crate) const APPLICATIONS: [Application; 12] = [
    application(
        "sor",
        &["--rows", "2000", "--columns", "1000"],
        ["--iterations", "20"],
        Some((6.9, 6.9)),
    ),
    application(
        "is",
        &["--keys", "1048576", "--buckets", "512"],
        ["--iterations", "20"],
        Some((5.5, 5.5)),
    ),
    application(
        "barnes",
        &["--bodies", "16384", "--theta", "0.57"],
        ["--iterations", "4"],
        Some((3.6, 3.8)),
    ),
    application(
        "sphere",
        &["--rows", "384", "--columns", "768"],
        ["--iterations", "40"],
        Some((3.7, 4.0)),
    ),
    application(
        "water",
        &["--molecules", "1000"],
        ["--iterations", "40"],
        Some((3.1, 3.1)),
    ),
    application(
        "raytrace",
        &["--rows", "480", "--columns", "640"],
        ["--iterations", "2"],
        Some((5.6, 5.7)),
    ),
    application(
        "spmv",
        &["--rows", "13000", "--per-row", "50"],
        ["--iterations", "100"],
        None,
    ),
    application("workpile", &["--servers", "0"], ["--chunks", "4000"], None),
    application("fft", &["--side", "1024"], ["--iterations", "4"], None),
    application(
        "lu",
        &["--n", "1024", "--block", "64"],
        ["--iterations", "2"],
        None,
    ),
    application(
        "radix",
        &["--keys", "1048576", "--bits", "10"],
        ["--iterations", "5"],
        None,
    ),
    application(
        "edge",
        &["--rows", "1024", "--columns", "1024"],
        ["--iterations", "2"],
        None,
    ),
];
