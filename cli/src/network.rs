//! Which of a host's addresses the others use.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use anyhow::{Context, bail};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Environment variable with a network, instead of that of the cluster file.
pub(crate) const ENV_NETWORK: &str = "DOSMOS_NETWORK";

/// A network: `10.1.0.0/16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u32,
}

/// A text that is not a network.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network; write ADDRESS/BITS, such as 10.1.0.0/16")]
pub struct InvalidNetwork(String);

impl fmt::Debug for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;
    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let invalid = || InvalidNetwork(text.to_owned());
        let (base, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let base: IpAddr = base.parse().map_err(|_| invalid())?;
        let prefix: u32 = prefix.parse().map_err(|_| invalid())?;
        if prefix > bits(base).1 {
            return Err(invalid());
        }
        Ok(Self { base, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Network {
    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((own, width), (other, other_width)) = (bits(self.base), bits(address));
        let differing = own ^ other;
        width == other_width && differing.checked_shr(width - self.prefix).unwrap_or(0) == 0
    }
}

fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(a) => (u128::from(a.to_bits()), 32),
        IpAddr::V6(a) => (a.to_bits(), 128),
    }
}

/// The address at which the processes of this host listen: the one in `network`; without one, the loopback address if no
/// other host takes part, otherwise the first of an interface that is up.
///
/// # Errors
/// If there is none; names those that there are.
pub(crate) fn own_address(network: Option<&Network>, alone: bool) -> anyhow::Result<IpAddr> {
    if network.is_none() && alone {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    choose(&addresses()?, network)
}

/// Addresses of the interfaces that are up, and whether each is of the loopback interface.
fn addresses() -> anyhow::Result<Vec<(IpAddr, bool)>> {
    let interfaces = getifaddrs().context("cannot list the network interfaces of this host")?;
    let mut found = Vec::new();
    for interface in interfaces {
        if !interface.flags.contains(InterfaceFlags::IFF_UP) {
            continue;
        }
        let Some(address) = interface.address else {
            continue;
        };
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let v6 = address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
        if let Some(address) = v4.or(v6) {
            let loopback = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
            found.push((address, loopback));
        }
    }
    Ok(found)
}

fn choose(all: &[(IpAddr, bool)], network: Option<&Network>) -> anyhow::Result<IpAddr> {
    let link_local = |a: IpAddr| match a {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    let fits = |(address, loopback): &&(IpAddr, bool)| match network {
        Some(network) => network.contains(*address),
        None => !loopback && !link_local(*address),
    };
    let mut fitting: Vec<IpAddr> = all.iter().filter(fits).map(|(a, _)| *a).collect();
    // Stable: IPv4 first, each in the order of the interfaces.
    fitting.sort_by_key(IpAddr::is_ipv6);
    let Some(first) = fitting.first() else {
        let known: Vec<String> = all.iter().map(|(a, _)| a.to_string()).collect();
        let known = known.join(", ");
        match network {
            Some(network) => bail!("this host has no address in {network}; it has {known}"),
            None => bail!(
                "this host has no address that other hosts can reach; it has {known}. Set network in [launch], or {ENV_NETWORK}"
            ),
        }
    };
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_with_it() {
        for (network, inside, outside) in [
            ("10.1.0.0/16", "10.1.2.3", "10.2.0.1"),
            ("127.0.0.0/8", "127.9.9.9", "128.0.0.1"),
            ("192.168.7.4/32", "192.168.7.4", "192.168.7.5"),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "2001::1", "1.2.3.4"),
        ] {
            let n: Network = network.parse().unwrap();
            assert!(n.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!n.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(n.to_string(), network);
        }
        for bad in [
            "",
            "10.1.0.0",
            "10.1/16",
            "10.0.0.0/33",
            "::/129",
            "a/8",
            "1.2.3.4/-1",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_address_that_others_can_reach_is_chosen() {
        let all: Vec<(IpAddr, bool)> = [
            ("127.0.0.1", true),
            ("169.254.1.1", false),
            ("fd00::7", false),
            ("10.1.0.7", false),
            ("10.2.0.7", false),
        ]
        .map(|(a, l)| (a.parse().unwrap(), l))
        .to_vec();
        let chosen = |network: Option<&str>| {
            let network = network.map(|n| n.parse().unwrap());
            choose(&all, network.as_ref()).map(|a| a.to_string())
        };
        assert_eq!(chosen(None).unwrap(), "10.1.0.7");
        assert_eq!(chosen(Some("10.2.0.0/16")).unwrap(), "10.2.0.7");
        assert_eq!(chosen(Some("127.0.0.0/8")).unwrap(), "127.0.0.1");
        assert_eq!(chosen(Some("fd00::/8")).unwrap(), "fd00::7");
        let error = chosen(Some("10.3.0.0/16")).unwrap_err().to_string();
        assert!(
            error.contains("10.3.0.0/16") && error.contains("10.2.0.7"),
            "{error}"
        );
        let only_loopback = [("127.0.0.1".parse().unwrap(), true)];
        let error = choose(&only_loopback, None).unwrap_err().to_string();
        assert!(error.contains(ENV_NETWORK), "{error}");
    }
}
