//! What is predicted.

/// What is run unless told otherwise: the applications, at sizes of about a second on four processes.
pub(super) const PROGRAMS: [&str; 13] = [
    "sor --rows 2000 --columns 1000 --iterations 100",
    "is --keys 1048576 --buckets 512 --iterations 100",
    "barnes --bodies 16384 --theta 0.57 --iterations 6",
    "sphere --rows 384 --columns 768 --iterations 100",
    "water --molecules 500 --iterations 60",
    "raytrace --rows 480 --columns 640 --iterations 2",
    "spmv --rows 13000 --per-row 50 --iterations 400",
    "workpile --servers 0 --chunks 8000",
    "fft --side 1024 --iterations 8",
    "lu --n 1024 --block 64 --iterations 4",
    "radix --keys 1048576 --bits 10 --iterations 12",
    "edge --rows 1024 --columns 1024 --iterations 5",
    "random --operations 4000",
];

/// On that many processes, but where a case says otherwise.
pub(super) const PROCESSES: usize = 4;
