//! Certificates and answers to challenges, as they pass between members.
//!
//! ```text
//! reply      length (4)  catalogue
//! catalogue  challenges (8)  count (2)  challenge × count  entry × …
//! challenge  kind: 1 HTTP-01, 2 TLS-ALPN-01 (1)  length (2)  token or name  length (2)  authorization or digest
//! entry      id (16)  not before, s (8)  not after, s (8)  digest (16): all zero without a version
//! wanted     count (2)  id × count, from the side that asks
//! reply      length (4)  private key and chain, PEM: for each; empty: there is none any more
//! ```
//!
//! Numbers are little-endian. The side that asks reads the catalogue, and then asks for what it lacks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use keyring::certificates::{CERTIFICATES_MAX, Catalogue};
use model::{ByteReader, CertificateId, CertificateVersion};
use tls::Answer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::wire;

/// Maximum number of challenges of one member. An order has at most 100 names.
const CHALLENGES_MAX: usize = 256;
/// Maximum length of a token, a name, or an answer.
const TEXT_MAX_BYTES: usize = 512;
/// Maximum length of a catalogue with its challenges.
const CATALOGUE_MAX_BYTES: usize =
    10 + CHALLENGES_MAX * (5 + 2 * TEXT_MAX_BYTES) + CERTIFICATES_MAX * ENTRY_BYTES;
const ENTRY_BYTES: usize = 48;
/// Maximum length of a certificate with its key, as in the state directory.
const PEM_MAX_BYTES: usize = 256 * 1024;
/// Maximum number of certificates on one connection; further ones come with the next.
const AT_ONCE_MAX: usize = 32;

const HTTP_01: u8 = 1;
const TLS_ALPN_01: u8 = 2;

/// The certificates that a member needs, with the versions that it has.
pub(in crate::fleet) type Versions = BTreeMap<CertificateId, Option<CertificateVersion>>;

/// What other members may fetch.
#[derive(Debug, Default)]
pub(in crate::fleet) struct Offer {
    pub(in crate::fleet) catalogue: Catalogue,
    pub(in crate::fleet) challenges: (u64, Vec<Answer>),
    pub(in crate::fleet) pems: HashMap<CertificateId, Pem>,
}

/// What was fetched.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::fleet) struct Received {
    pub(in crate::fleet) catalogue: Catalogue,
    pub(in crate::fleet) challenges: (u64, Vec<Answer>),
    pub(in crate::fleet) certificates: Vec<(CertificateId, CertificateVersion, Pem)>,
}

/// A private key with its chain, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::fleet) struct Pem(pub(in crate::fleet) Arc<[u8]>);

/// Without the key.
impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pem(..)")
    }
}

/// Returns the catalogue with these entries.
pub(in crate::fleet) fn catalogue(entries: Versions) -> Catalogue {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    put_entries(&entries, &mut bytes);
    // The digest of an empty catalogue is all zero, so that no member fetches one.
    let digest = if entries.is_empty() { [0; 16] } else { first_bytes(&bytes) };
    Catalogue { digest, entries }
}

fn first_bytes(bytes: &[u8]) -> [u8; 16] {
    digest(&SHA256, bytes).as_ref().first_chunk().copied().unwrap_or_default()
}

/// Answers a request whose first bytes have been read.
pub(super) async fn answer(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    offer: &Offer,
) -> Result<(), String> {
    put_block(stream, &write(offer)).await?;
    let count = stream.read_u16_le().await.map_err(|error| error.to_string())?;
    if usize::from(count) > AT_ONCE_MAX {
        return Err(format!("too many certificates at once: {count}"));
    }
    let mut ids = Vec::with_capacity(count.into());
    for _ in 0..count {
        let mut id = [0; 16];
        stream.read_exact(&mut id).await.map_err(|error| error.to_string())?;
        ids.push(CertificateId(id));
    }
    for id in ids {
        put_block(stream, offer.pems.get(&id).map_or(&[], |pem| &pem.0)).await?;
    }
    Ok(())
}

/// Fetches the catalogue, the answers to challenges, and the certificates that are newer than those in `wanted`.
pub(super) async fn fetch(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    wanted: &Versions,
) -> Result<Received, String> {
    stream.write_all(&wire::CERTIFICATES).await.map_err(|error| error.to_string())?;
    let bytes = block(stream, CATALOGUE_MAX_BYTES).await?;
    let (catalogue, challenges) = read(&bytes).ok_or("its catalogue is malformed")?;
    let is_newer = |id: &CertificateId, version: &CertificateVersion| {
        wanted.get(id).is_some_and(|own| own.is_none_or(|own| own < *version))
    };
    let has = catalogue.entries.iter().filter_map(|(id, version)| Some((*id, (*version)?)));
    let lacked: Vec<_> =
        has.filter(|(id, version)| is_newer(id, version)).take(AT_ONCE_MAX).collect();
    let mut request = (lacked.len() as u16).to_le_bytes().to_vec();
    request.extend(lacked.iter().flat_map(|(id, _)| id.0));
    stream.write_all(&request).await.map_err(|error| error.to_string())?;
    let mut certificates = Vec::with_capacity(lacked.len());
    for (id, version) in lacked {
        let pem = block(stream, PEM_MAX_BYTES).await?;
        if !pem.is_empty() {
            certificates.push((id, version, Pem(pem.into())));
        }
    }
    Ok(Received { catalogue, challenges, certificates })
}

async fn put_block(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), String> {
    let length = u32::try_from(bytes.len()).map_err(|_| "too long to be sent")?;
    stream.write_u32_le(length).await.map_err(|error| error.to_string())?;
    stream.write_all(bytes).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())
}

async fn block(stream: &mut (impl AsyncRead + Unpin), max: usize) -> Result<Vec<u8>, String> {
    let length = stream.read_u32_le().await.map_err(|error| error.to_string())?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > max {
        return Err(format!("its answer is too long: {length} bytes"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn put_entries(entries: &Versions, into: &mut Vec<u8>) {
    for (id, version) in entries {
        let none = CertificateVersion { not_before_s: 0, not_after_s: 0, digest: [0; 16] };
        let CertificateVersion { not_before_s, not_after_s, digest } = version.unwrap_or(none);
        into.extend(id.0);
        into.extend(not_before_s.to_le_bytes());
        into.extend(not_after_s.to_le_bytes());
        into.extend(digest);
    }
}

fn write(offer: &Offer) -> Vec<u8> {
    let (number, answers) = &offer.challenges;
    let mut bytes = number.to_le_bytes().to_vec();
    // Longer ones are no valid answers.
    let fits = |(_, key, value): &(u8, &[u8], &[u8])| key.len().max(value.len()) <= TEXT_MAX_BYTES;
    let answers: Vec<_> = answers.iter().map(parts).filter(fits).take(CHALLENGES_MAX).collect();
    bytes.extend((answers.len() as u16).to_le_bytes());
    for (kind, key, value) in answers {
        bytes.push(kind);
        for text in [key, value] {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text);
        }
    }
    put_entries(&offer.catalogue.entries, &mut bytes);
    bytes
}

fn parts(answer: &Answer) -> (u8, &[u8], &[u8]) {
    match answer {
        Answer::Http { token, key_authorization } => {
            (HTTP_01, token.as_bytes(), key_authorization.as_bytes())
        }
        Answer::Tls { name, digest } => (TLS_ALPN_01, name.as_bytes(), digest),
    }
}

fn read(bytes: &[u8]) -> Option<(Catalogue, (u64, Vec<Answer>))> {
    let mut from = ByteReader::new(bytes);
    let (number, count) = (from.u64()?, usize::from(from.u16()?));
    (count <= CHALLENGES_MAX).then_some(())?;
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = from.u8()?;
        let (key, value) = (text(&mut from)?, text(&mut from)?);
        let key = String::from_utf8(key).ok()?;
        answers.push(match kind {
            HTTP_01 => {
                Answer::Http { token: key, key_authorization: String::from_utf8(value).ok()? }
            }
            TLS_ALPN_01 => Answer::Tls { name: key, digest: value },
            _ => return None,
        });
    }
    let mut entries = Versions::new();
    while !from.is_empty() {
        let id = CertificateId(from.array()?);
        let (not_before_s, not_after_s) = (from.u64()?.cast_signed(), from.u64()?.cast_signed());
        let digest: [u8; 16] = from.array()?;
        let version =
            (digest != [0; 16]).then_some(CertificateVersion { not_before_s, not_after_s, digest });
        (entries.len() < CERTIFICATES_MAX && entries.insert(id, version).is_none()).then_some(())?;
    }
    Some((catalogue(entries), (number, answers)))
}

fn text(from: &mut ByteReader<'_>) -> Option<Vec<u8>> {
    let length = usize::from(from.u16()?);
    (length <= TEXT_MAX_BYTES).then_some(())?;
    from.slice(length).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests;
