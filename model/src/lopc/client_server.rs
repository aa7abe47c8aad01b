//! The work pile: P_s servers without threads, P − P_s clients that ask any of them.
//!
//! Guarantees: the utilisation comes from a quadratic with exactly one root in (0, 1), in the form
//! that loses no digits; the optimum is exact, not searched for.

use serde::{Deserialize, Serialize};

use super::kappa::kappa;
use super::variants::MAX_MVA_THREADS;
use crate::error::{ModelError, finite_result, invalid, non_negative, positive};

/// Inputs of the client–server model; times in any one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientServerInput {
    /// P ≥ 2, nodes in all.
    #[serde(rename = "P")]
    pub processors: u32,
    /// P_s, servers, 0 < P_s < P; may be fractional. Ignored by [`optimum`].
    #[serde(rename = "Ps", default = "one_server")]
    pub servers: f64,
    /// W ≥ 0, mean work of a client between requests.
    #[serde(rename = "W")]
    pub work: f64,
    /// S_o ≥ 0, mean handler time.
    #[serde(rename = "So")]
    pub handler: f64,
    /// S_l ≥ 0, mean one-way latency.
    #[serde(rename = "Sl")]
    pub latency: f64,
    /// C² ≥ 0 of the handler time.
    #[serde(rename = "C2", default)]
    pub c2: f64,
}

fn one_server() -> f64 {
    1.0
}

/// Results of the client–server model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientServerOutput {
    /// X = P_c/R, requests served per time.
    #[serde(rename = "X")]
    pub throughput: f64,
    /// R, mean cycle of a client.
    #[serde(rename = "R")]
    pub cycle: f64,
    /// R_s, queueing and service at a server.
    #[serde(rename = "Rs")]
    pub server: f64,
    /// Q_s, mean requests at a server.
    #[serde(rename = "Qs")]
    pub server_queue: f64,
    /// U_s, utilisation of a server.
    #[serde(rename = "Us")]
    pub server_utilisation: f64,
    /// P_c = P − P_s, clients.
    #[serde(rename = "Pc")]
    pub clients: f64,
    /// P_s, servers.
    #[serde(rename = "Ps")]
    pub servers: f64,
    /// R_w = W: nothing interrupts a client that computes.
    #[serde(rename = "Rw")]
    pub compute: f64,
    /// R_y = S_o: a reply finds its client idle.
    #[serde(rename = "Ry")]
    pub reply: f64,
    /// Cycle without contention: W + 2 S_l + 2 S_o.
    #[serde(rename = "R_logp")]
    pub logp_cycle: f64,
    /// R − R_logp = R_s − S_o.
    pub contention: f64,
}

/// The number of servers that maximises throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientServerOptimum {
    /// P_s*, as a real number.
    #[serde(rename = "Ps_opt")]
    pub servers: f64,
    /// R_s at the optimum.
    #[serde(rename = "Rs_opt")]
    pub server: f64,
    /// R at the optimum.
    #[serde(rename = "R_opt")]
    pub cycle: f64,
    /// X at the optimum.
    #[serde(rename = "X_opt")]
    pub throughput: f64,
    /// The best whole number of servers in \[1, P−1\].
    #[serde(rename = "Ps_best_int")]
    pub best_servers: u32,
    /// X with it.
    #[serde(rename = "X_best_int")]
    pub best_throughput: f64,
    /// P_s* rounded to the nearest whole number in \[1, P−1\].
    #[serde(rename = "Ps_rounded")]
    pub rounded_servers: u32,
    /// X with it.
    #[serde(rename = "X_rounded")]
    pub rounded_throughput: f64,
}

impl ClientServerInput {
    fn validate_times(&self) -> Result<(), ModelError> {
        if self.processors < 2 {
            return Err(invalid("P", f64::from(self.processors), "at least 2"));
        }
        non_negative("W", self.work)?;
        non_negative("So", self.handler)?;
        non_negative("Sl", self.latency)?;
        non_negative("C2", self.c2)?;
        if self.logp_cycle() == 0.0 {
            return Err(invalid("W", 0.0, "positive where So and Sl are 0"));
        }
        finite_result(
            "R_logp",
            self.logp_cycle() * f64::from(self.processors) * (1.0 + self.c2),
        )?;
        Ok(())
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the first field that is out of range.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.validate_times()?;
        if !(self.servers > 0.0 && self.servers < f64::from(self.processors)) {
            return Err(invalid(
                "Ps",
                self.servers,
                "greater than 0 and less than P",
            ));
        }
        Ok(())
    }

    fn logp_cycle(&self) -> f64 {
        self.work + 2.0 * self.latency + 2.0 * self.handler
    }

    /// Completes the output; `waiting` is R_s − S_o.
    fn output(&self, waiting: f64) -> Result<ClientServerOutput, ModelError> {
        let server = self.handler + waiting;
        let clients = f64::from(self.processors) - self.servers;
        let cycle = self.work + 2.0 * self.latency + self.handler + server;
        let throughput = finite_result("X", clients / cycle)?;
        Ok(ClientServerOutput {
            throughput,
            cycle,
            server,
            server_queue: finite_result("Qs", throughput * server / self.servers)?,
            server_utilisation: finite_result("Us", throughput * self.handler / self.servers)?,
            clients,
            servers: self.servers,
            compute: self.work,
            reply: self.handler,
            logp_cycle: self.logp_cycle(),
            contention: waiting,
        })
    }
}

/// Throughput with a given number of servers.
///
/// With A = W + 2 S_l + S_o and ρ = P_c S_o/P_s, the utilisation solves
/// (A − κS_o) U² − (A + S_o + ρ) U + ρ = 0, positive at 0 and negative at 1; then
/// R_s = S_o (1+κU)/(1−U). Equations (10)–(14).
///
/// # Errors
/// [`ModelError::Invalid`] naming the field that is out of range.
pub fn solve(input: &ClientServerInput) -> Result<ClientServerOutput, ModelError> {
    input.validate()?;
    let (so, k) = (input.handler, kappa(input.c2));
    if so == 0.0 {
        return input.output(0.0);
    }
    // In units of S_o, which keeps the squares in range.
    let rest = (input.work + 2.0 * input.latency + so) / so;
    let load = (f64::from(input.processors) - input.servers) / input.servers;
    if rest > 1e100 {
        // Squares would overflow, and the servers are idle to any digit.
        return input.output(so * (1.0 + k) * (load / rest));
    }
    let b = rest + 1.0 + load;
    // The discriminant b² − 4 (A − κ) ρ, written so that it is visibly positive: slack² + 4 g ρ.
    let slack = 2.0 * load - b;
    let root = (slack * slack + 4.0 * load * (1.0 + k)).sqrt();
    let utilisation = 2.0 * load / (b + root);
    // 1 − U = (root − slack)/(b + root); the difference is rationalised where servers are busy.
    let idle = if slack > 0.0 {
        4.0 * load * (1.0 + k) / ((root + slack) * (b + root))
    } else {
        (root - slack) / (b + root)
    };
    // R_s − S_o = S_o (1+κ) U/(1−U): without the difference, which would lose its digits.
    let waiting = so * (1.0 + k) * utilisation / idle;
    input.output(finite_result("Rs", waiting)?)
}

/// MVA on the number of clients: R_s = S_o (1 + Q + κU) with Q, U from one client fewer.
/// Exact for C² = 1.
///
/// # Errors
/// [`ModelError::Invalid`] if a field is out of range or P − P_s is not a whole number from 1 to ten million;
/// [`ModelError::Unphysical`] where the recursion leaves its range.
pub fn mva(input: &ClientServerInput) -> Result<ClientServerOutput, ModelError> {
    input.validate()?;
    let clients = f64::from(input.processors) - input.servers;
    if clients.fract() != 0.0 {
        return Err(invalid("Ps", input.servers, "a whole number for MVA"));
    }
    if clients > f64::from(MAX_MVA_THREADS) {
        let most = "at most 10,000,000 more than Ps for MVA";
        return Err(invalid("P", f64::from(input.processors), most));
    }
    let (so, k) = (input.handler, kappa(input.c2));
    let rest = input.work + 2.0 * input.latency + so;
    let (mut queue, mut utilisation, mut server) = (0.0, 0.0, so);
    let mut population = 1.0;
    while population <= clients {
        server = so * (1.0 + queue + k * utilisation);
        if !(server >= 0.0 && rest + server > 0.0) {
            return Err(ModelError::Unphysical {
                field: "Rs".to_owned(),
                value: server,
            });
        }
        let per_server = population / (rest + server) / input.servers;
        queue = per_server * server;
        utilisation = per_server * so;
        population += 1.0;
    }
    // Nothing but rounding makes it negative.
    input.output((server - so).max(0.0))
}

/// The number of servers with the highest throughput, as a real and as a whole number.
///
/// With h = √((C²+1)/2): R_s* = S_o (1+h), R* = W + 2S_l + R_s* + S_o,
/// P_s* = P R_s*/(R* + R_s*), X* = P_s*/R_s*: equations (12), (16)–(18) with their misprints
/// corrected. One customer per server (Q_s = 1) is exactly the stationary point. Throughput is
/// unimodal in P_s, so that the best whole number is a neighbour of P_s*. `Ps` of the input is not
/// used.
///
/// # Errors
/// [`ModelError::Invalid`] naming the field that is out of range; S_o must be positive, as without
/// it any number of servers does.
pub fn optimum(input: &ClientServerInput) -> Result<ClientServerOptimum, ModelError> {
    input.validate_times()?;
    positive("So", input.handler)?;
    let h = ((input.c2 + 1.0) / 2.0).sqrt();
    let server = input.handler * (1.0 + h);
    let cycle = input.work + 2.0 * input.latency + server + input.handler;
    let servers = f64::from(input.processors) * server / (cycle + server);
    let with = |servers: f64| -> Result<(u32, f64), ModelError> {
        let whole = servers.clamp(1.0, f64::from(input.processors - 1));
        let output = solve(&ClientServerInput {
            servers: whole,
            ..*input
        })?;
        // Within [1, P−1], so the conversion is exact.
        Ok((whole as u32, output.throughput))
    };
    let (below, above) = (with(servers.floor())?, with(servers.ceil())?);
    let best = if above.1 > below.1 { above } else { below };
    let rounded = with(servers.round())?;
    Ok(ClientServerOptimum {
        servers,
        server,
        cycle,
        throughput: servers / server,
        best_servers: best.0,
        best_throughput: best.1,
        rounded_servers: rounded.0,
        rounded_throughput: rounded.1,
    })
}
