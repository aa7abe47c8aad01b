//! Stores that are damaged, whose disk is full, whose writer is killed.
#![allow(clippy::unwrap_used)] // a test that cannot go on should say where

mod common;
mod damage;
mod disk_full;
mod killed_writer;
