//! Version 2 of the PROXY protocol, binary (section 2.2 of `HAProxy`'s `doc/proxy-protocol.txt`):
//! signature, version and command, family and transport, length, addresses, then fields (`tlv`).

use std::net::{IpAddr, SocketAddr};

use super::{
    Header, OneFamily, Origin, Parsed, ProxyError, V2_MAX_BYTES, VALUE_MAX_BYTES, canonical,
    in_one_family, tlv,
};

/// The start of a header.
pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const START_BYTES: usize = 16;

const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;

const UNSPEC: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// Everything that [`write_v2`] writes can be parsed.
const _: () = {
    const ADDRESSES: usize = 36;
    const FIELDS: usize = 3 * (3 + VALUE_MAX_BYTES) + (3 + super::UNIQUE_ID_MAX_BYTES);
    const SSL: usize = 3 + 5 + 3 * (3 + VALUE_MAX_BYTES);
    assert!(START_BYTES + ADDRESSES + FIELDS + SSL <= V2_MAX_BYTES);
};

/// Parses the header at the start of `input`, which begins with [`SIGNATURE`] as far as it goes.
pub(super) fn parse(input: &[u8]) -> Result<Parsed<'_>, ProxyError> {
    // Each byte is checked as soon as it arrives, so that Weir does not wait for invalid input.
    match input.get(12) {
        None | Some(&(LOCAL | PROXY)) => {}
        Some(version) if version >> 4 != 2 => return Err(ProxyError::BadVersion),
        Some(_) => return Err(ProxyError::BadCommand),
    }
    let Some((start, _)) = input.split_first_chunk::<START_BYTES>() else {
        return Ok(Parsed::Partial);
    };
    let (command, family) = (start[12], start[13]);
    let len = START_BYTES + usize::from(u16::from_be_bytes([start[14], start[15]]));
    // An unassigned family does not matter in LOCAL, which says to ignore it.
    if command == PROXY && (family >> 4 > 3 || family & 0xf > 2) {
        return Err(ProxyError::BadFamily);
    }
    if len > V2_MAX_BYTES {
        return Err(ProxyError::HeaderTooLong);
    }
    let addresses_len = match family >> 4 {
        1 => 12,
        2 => 36,
        3 => 216,
        _ => 0,
    };
    if command == PROXY && START_BYTES + addresses_len > len {
        return Err(ProxyError::AddressesCutOff);
    }
    let Some(whole) = input.get(..len) else {
        return Ok(Parsed::Partial);
    };

    let mut header = Header::default();
    if command == LOCAL {
        header.origin = Origin::Local;
    } else if family >> 4 != UNSPEC {
        // Without a family it is unknown where the fields begin: what follows is skipped.
        let block = &whole[START_BYTES..];
        let origin = match family {
            TCP4 => tcp::<4>(block),
            TCP6 => tcp::<16>(block),
            _ => Some(Origin::Unknown),
        };
        header.origin = origin.ok_or(ProxyError::AddressesCutOff)?;
        tlv::read(whole, START_BYTES + addresses_len, &mut header)?;
    }
    Ok(Parsed::Complete { consumed: len, header })
}

/// Parses what follows [`START_BYTES`]: two addresses of `N` bytes each, then their ports.
fn tcp<const N: usize>(block: &[u8]) -> Option<Origin>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = block.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, _) = rest.split_first_chunk::<2>()?;
    Some(Origin::Tcp {
        source: canonical((*source).into(), u16::from_be_bytes(*source_port)),
        destination: canonical((*destination).into(), u16::from_be_bytes(*destination_port)),
    })
}

/// Appends a header. Addresses of two families are both written as IPv6; a LOCAL or unknown origin
/// is written alone, as a receiver would skip anything that followed. A value longer than
/// [`VALUE_MAX_BYTES`] (an identifier: [`super::UNIQUE_ID_MAX_BYTES`]) is left out, so that the
/// header has at most [`V2_MAX_BYTES`]. No checksum is written: TCP has its own.
pub fn write_v2(out: &mut Vec<u8>, header: &Header<'_>) {
    out.extend_from_slice(SIGNATURE);
    let start = out.len();
    match header.origin {
        Origin::Local => out.extend_from_slice(&[LOCAL, UNSPEC, 0, 0]),
        Origin::Unknown => out.extend_from_slice(&[PROXY, UNSPEC, 0, 0]),
        Origin::Tcp { source, destination } => {
            out.push(PROXY);
            put_addresses(out, source, destination);
            tlv::write(out, header);
            // Fits: see the bound above.
            let len = (out.len() - start - 4) as u16;
            out[start + 2..start + 4].copy_from_slice(&len.to_be_bytes());
        }
    }
}

/// Appends the family, room for the length, both addresses, both ports.
fn put_addresses(out: &mut Vec<u8>, source: SocketAddr, destination: SocketAddr) {
    match in_one_family(source, destination) {
        OneFamily::V4(one, other) => {
            out.extend_from_slice(&[TCP4, 0, 0]);
            out.extend_from_slice(&one);
            out.extend_from_slice(&other);
        }
        OneFamily::V6(one, other) => {
            out.extend_from_slice(&[TCP6, 0, 0]);
            out.extend_from_slice(&one.octets());
            out.extend_from_slice(&other.octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}
