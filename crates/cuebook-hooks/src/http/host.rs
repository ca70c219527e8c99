//! Which hosts hooks may ask: all public ones, and those that the user names.
//!
//! What counts is the address that a name leads to, never the name: `internal.example.com` may well be `10.0.0.7`. Every
//! range of the special-purpose registries of IANA that is not the public internet is refused, and so are addresses of IPv6
//! that only wrap such an address of IPv4. A network's own NAT64 prefix cannot be distinguished from any other public prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host as a URL or a setting names it. Two spellings of one address or one name are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    pub(super) fn new(text: &str) -> Host {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        match bare.parse() {
            Ok(address) => Host::Address(address),
            // `localhost.` is `localhost`, spelled absolutely.
            Err(_) => Host::Name(bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The hosts that hooks may ask although they are not public, each with one port or with all.
#[derive(Debug, Clone, Default)]
pub(super) struct AllowedHosts {
    listed: Vec<(Host, Option<u16>)>,
    every: bool,
    /// Whether public hosts need an entry as well.
    only: bool,
}

impl AllowedHosts {
    /// Reads entries like `localhost`, `localhost:8080`, `10.0.0.7`, `::1` and `[::1]:80`.
    pub(super) fn new(entries: &[String]) -> AllowedHosts {
        let entry = |text: &String| {
            let text = text.trim();
            // `::1` ends in what looks like a port.
            if text.parse::<Ipv6Addr>().is_err()
                && let Some((host, port)) = text.rsplit_once(':')
                && let Ok(port) = port.parse()
            {
                return (Host::new(host), Some(port));
            }
            (Host::new(text), None)
        };
        AllowedHosts { listed: entries.iter().map(entry).collect(), every: false, only: false }
    }

    /// The hosts of these entries and no others; the entry `*` stands for every public host.
    pub(super) fn only(entries: &[String]) -> AllowedHosts {
        let only = !entries.iter().any(|entry| entry.trim() == "*");
        AllowedHosts { only, ..AllowedHosts::new(entries) }
    }

    /// An error for a host that is not allowed at all, whatever its address.
    pub(super) fn refusal(&self, host: &Host, port: u16) -> Option<String> {
        (self.only && !self.contain(host, port)).then(|| format!("the tool may not reach {host}:{port}"))
    }

    /// All hosts there are.
    pub(super) fn every() -> AllowedHosts {
        AllowedHosts { listed: Vec::new(), every: true, only: false }
    }

    pub(super) fn contain(&self, host: &Host, port: u16) -> bool {
        self.every
            || self.listed.iter().any(|(allowed, on)| allowed == host && on.is_none_or(|on| on == port))
    }
}

/// What an address is, if it is not a public one.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("this machine"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("in a private network"),
        // Here the metadata services of clouds hand out credentials: 169.254.169.254, and that of Azure, which alone has a
        // public address.
        [169, 254, ..] => Some("a link-local address"),
        [168, 63, 129, 16] => Some("the platform service of a cloud"),
        [100, 64..=127, ..] => Some("in a carrier's private network"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("an address for documentation"),
        [198, 18..=19, ..] => Some("an address for benchmarks"),
        [224..=239, ..] => Some("a multicast address"),
        [255, 255, 255, 255] => Some("the broadcast address"),
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // Mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96) and 6to4 (2002::/16): what is wrapped decides.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            not_public_v4(v4(high, low))
        }
        [0x2002, high, low, ..] => not_public_v4(v4(high, low)),
        [0xfc00..=0xfdff, ..] => Some("in a private network"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        // 2001::/23 holds Teredo, which wraps IPv4 in a way of its own, and other protocols; no web server lives there.
        [0x2001, 0..=0x1ff, ..] => Some("a reserved address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classified_by_what_they_reach() {
        for (kind, addresses) in [
            (
                None,
                "1.1.1.1 8.8.8.8 93.184.215.14 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
                 128.0.0.1 168.63.129.15 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 \
                 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 \
                 2001:4860:4860::8888 2001:200:: 2a00:1450:4001::1 3fff:1000:: ::ffff:8.8.8.8 64:ff9b::808:808 \
                 2002:808:808::1",
            ),
            (Some("an unspecified address"), "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0"),
            (
                Some("this machine"),
                "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1",
            ),
            (
                Some("in a private network"),
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 fc00:: fd00:ec2::254 \
                 fdff:ffff:: ::ffff:10.0.0.1 64:ff9b::c0a8:1 2002:c0a8:1::",
            ),
            (
                Some("a link-local address"),
                "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 febf::1 ::ffff:169.254.169.254 \
                 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::",
            ),
            (Some("the platform service of a cloud"), "168.63.129.16"),
            (
                Some("in a carrier's private network"),
                "100.64.0.0 100.100.100.200 100.127.255.255 ::ffff:100.64.0.1",
            ),
            (
                Some("an address for documentation"),
                "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1 3fff:fff::",
            ),
            (Some("an address for benchmarks"), "198.18.0.0 198.19.255.255"),
            (Some("a multicast address"), "224.0.0.1 239.255.255.255 ff02::1 ::ffff:224.0.0.1"),
            (Some("the broadcast address"), "255.255.255.255 ::ffff:255.255.255.255"),
            (
                Some("a reserved address"),
                "192.0.0.1 192.0.0.192 192.88.99.1 240.0.0.1 255.255.255.254 ::2 ::7f00:1 ::ffff:0:7f00:1 \
                 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:10::1 2001:1ff:: 4000::1 5f00::1 fe00::1 fec0::1",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(not_public(address.parse().unwrap()), kind, "{address}");
            }
        }
    }

    #[test]
    fn an_entry_allows_a_host_on_one_port_or_on_all() {
        let entries = ["LocalHost:8080", "intranet", "10.0.0.7:80", "[::1]:80", "fd00::2", " 127.0.0.1 "];
        let allowed = AllowedHosts::new(&entries.map(String::from));
        for (host, port, wanted) in [
            ("localhost", 8080, true),
            ("LOCALHOST.", 8080, true),
            ("localhost", 80, false),
            ("intranet", 1, true),
            ("intranet.example", 1, false),
            ("10.0.0.7", 80, true),
            ("10.0.0.7", 443, false),
            ("[::1]", 80, true),
            ("[0:0:0:0:0:0:0:1]", 80, true),
            ("[::1]", 81, false),
            ("[fd00::2]", 9, true),
            ("127.0.0.1", 9, true),
            ("2130706433", 9, false),
            ("", 80, false),
        ] {
            assert_eq!(allowed.contain(&Host::new(host), port), wanted, "{host}:{port}");
        }
    }

    #[test]
    fn a_host_is_written_as_in_a_url() {
        for (text, written) in
            [("Example.COM.", "example.com"), ("[0::1]", "[::1]"), ("127.0.0.1", "127.0.0.1")]
        {
            assert_eq!(Host::new(text).to_string(), written);
        }
    }
}
