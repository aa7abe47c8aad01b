//! How long a message is under way.

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, Sampler};
use super::random::Random;
use crate::error::{ModelError, invalid};

/// Shape of the network latency; its mean over distinct pairs of nodes is always S_l.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyModel {
    /// S_l for every message.
    #[default]
    Constant,
    /// Exponential with mean S_l.
    Exponential,
    /// Proportional to the Manhattan distance on a mesh, row by row with `columns` nodes each.
    Mesh {
        /// Nodes in a row, 1 to P.
        columns: usize,
    },
}

/// Mean Manhattan distance over distinct pairs of `nodes` nodes on a mesh with `columns` columns.
///
/// # Errors
/// [`ModelError::Invalid`] under `P` for fewer than two nodes, under `columns` unless 1 ≤ columns ≤ P.
pub fn mesh_mean_hops(nodes: usize, columns: usize) -> Result<f64, ModelError> {
    if nodes < 2 {
        return Err(invalid("P", nodes as f64, "at least 2"));
    }
    if columns == 0 || columns > nodes {
        return Err(invalid("columns", columns as f64, "between 1 and P"));
    }
    let mut total = 0;
    for from in 0..nodes {
        total += (0..nodes).map(|to| hops(from, to, columns)).sum::<usize>();
    }
    Ok(total as f64 / (nodes * (nodes - 1)) as f64)
}

fn hops(from: usize, to: usize, columns: usize) -> usize {
    (from % columns).abs_diff(to % columns) + (from / columns).abs_diff(to / columns)
}

/// The network, ready to be asked.
pub(super) enum Network {
    Same(Sampler),
    Mesh { columns: usize, per_hop: f64 },
}

impl Network {
    pub(super) fn new(model: LatencyModel, nodes: usize, mean: f64) -> Result<Self, ModelError> {
        Ok(match model {
            LatencyModel::Constant => Self::Same(Distribution::Constant.sampler(mean)),
            LatencyModel::Exponential => Self::Same(Distribution::Exponential.sampler(mean)),
            LatencyModel::Mesh { columns } => Self::Mesh {
                columns,
                per_hop: mean / mesh_mean_hops(nodes, columns)?,
            },
        })
    }

    /// Time from `from` to `to`.
    pub(super) fn latency(&self, from: usize, to: usize, random: &mut Random) -> f64 {
        match self {
            Self::Same(sampler) => sampler.draw(random),
            Self::Mesh { columns, per_hop } => per_hop * hops(from, to, *columns) as f64,
        }
    }
}
