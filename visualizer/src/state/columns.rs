//! What each view shows and what its columns mean, for the help.

use super::screen::Screen;

/// What a view shows: the names on it and their meaning.
pub(super) fn of(screen: Screen) -> &'static [(&'static str, &'static str)] {
    match screen {
        Screen::Overview => &[
            (
                "first line",
                "share of the processes' time that was computing, and where most of the rest went",
            ),
            (
                "ACCESSES",
                "accesses so far; of a link process: messages forwarded",
            ),
            (
                "NOW/s, MEAN/s",
                "accesses per second: recently; over a finished run",
            ),
            ("LOCAL INTRA INTER", "shares of the accesses by origin"),
            (
                "DROPPED",
                "records dropped because the buffer was full; – is not known, ≥ a part of it is not",
            ),
            (
                "BUSY FAULT LOCK BARR",
                "shares of the time: computing, other processes' memory, locks, barriers",
            ),
            (
                "PHASE",
                "with the key of phases: what processes did between two barriers (of each group, if groups have their own), the one that lost most marked; EFFICIENCY share of their time that was computing = BALANCE (mean over longest computing time) × COMMUNICATION (longest computing time over the time); what most of the rest was lost to",
            ),
            (
                "EVENT MANAGER",
                "records received, not on disk yet, bytes on disk, chunks, hand-overs of meta-objects, processor time",
            ),
        ],
        Screen::Variables => &[
            (
                "TIME, SHARE",
                "time that its accesses took, and the share of all process time",
            ),
            (
                "P99, MAX",
                "99 of 100 accesses took at most this; the longest",
            ),
            ("OBJ, COPIES", "objects; copies there are now"),
            (
                "READS, CACHED",
                "all reads; those of them served from copies",
            ),
            ("WRITES, ACQ", "writes, acquires"),
            ("DELAY", "acquires that had to wait"),
            (
                "WAIT, HOLD",
                "mean wait of an acquire; mean time from grant to release",
            ),
            ("INTER", "share of the accesses that left their group"),
        ],
        Screen::Histogram => &[
            (
                "bars",
                "accesses per column of time by origin: local at the bottom, inter-group on top",
            ),
            (
                "last lines",
                "sums over the time shown; with a cursor: what its column counts",
            ),
        ],
        Screen::VariableHistory | Screen::ProcessHistory => &[
            (
                "lanes",
                "4: one per process; 5: one per object; `all …`: too many accesses to tell them apart, zoom in",
            ),
            (
                "x + *",
                "one read, cached read, write; plain, underlined, reversed: local, intra-group, inter-group",
            ),
            (
                "▂ … █, ░ ▒ ▓",
                "several accesses, the higher the more; shaded: all cached; without colours a digit n: 2^n or more",
            ),
            (
                "on the line",
                "█ waiting for a lock, ▄ for a release, ▒ at a barrier; [──] holding, = short sections",
            ),
            (
                "below",
                "sums over the time shown; with a cursor: its column, and the event there: who, where from, how long, waited for whom",
            ),
        ],
        Screen::Findings => &[
            (
                "LOST, TIME",
                "share of all processes' time that was lost; the same as time",
            ),
            (
                "GAIN",
                "projected saving of the run time; ~: an estimate from the costs of accesses",
            ),
            (
                "KIND, TARGET, WHO",
                "what is wrong, with what, whose accesses",
            ),
            (
                "below",
                "advice, change of the cluster file, and the numbers behind it",
            ),
            (
                "PATH, DOES",
                "with the key of the path: share of the critical path (the chain that determined how long this part of the run took), and what was done there: local, remote are reads and writes",
            ),
            (
                "LOST, BECAUSE IT",
                "share of all processes' time that others waited for a process, and what it did meanwhile; below: who waited, and why that process waited itself",
            ),
        ],
        Screen::Groups => &[
            ("numbers", "accesses of a process to a variable"),
            ("green", "an owner is in the group of the process"),
            ("red, X", "all owners are in other groups"),
            ("→", "would be moved by the proposed groups"),
        ],
        Screen::Health => &[
            (
                "RECORDS, NOW/s",
                "records made or received; recently, per second",
            ),
            ("DROPPED, LAG", "records dropped; age of the last record"),
            (
                "PENDING",
                "event manager: records not on disk yet; process: bytes not acknowledged",
            ),
            (
                "CPU, MONITOR",
                "shares of a processor, recently: in all; used for monitoring",
            ),
            ("CLOCK", "error bound of the process's clock"),
        ],
    }
}

/// What the same words mean in every view.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("local", "served by the process's own memory process"),
    (
        "intra-group",
        "served by another memory process of the group",
    ),
    (
        "inter-group",
        "served outside the group, through link processes",
    ),
    (
        ":record",
        "[all|counters|off] [op=read,…] [var=grid*,…] [ap=ap0,…] [every=N]",
    ),
    (
        "header",
        "`6: 1 high, 2 low`: findings by the share of time they cost: high from 20 %, medium from 5 %",
    ),
];
