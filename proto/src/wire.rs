//! Generated messages and services of package `dosmos.v1`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

tonic::include_proto!("dosmos.v1");
