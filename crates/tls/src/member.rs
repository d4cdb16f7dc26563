//! TLS between the members of a fleet: each presents a certificate that authorities for members alone have signed.

use std::sync::Arc;
use std::time::Duration;

use model::FleetTls;
use rustls::client::{Resumption, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, Error, ServerConfig};

use crate::any_name::{Accepted, AnyName};
use crate::facts::certified;
use crate::{Mistake, Part, pem, provider};

/// The protocol of the members' connections.
const MEMBER_ALPN: &[u8] = b"weir-fleet/1";

/// Both sides of connections between members.
#[derive(Clone, Debug)]
pub struct MemberTls {
    /// For connections of other members. Their certificates are required and verified.
    pub server: Arc<ServerConfig>,
    /// For connections to other members. Which name their certificates have does not count here.
    pub client: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl MemberTls {
    /// Returns whether the other side of a connection has presented a certificate that is for the name that members'
    /// certificates have, if the configuration has one.
    pub fn has_member_name(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        let Some(leaf) = certificates.and_then(<[_]>::first) else { return false };
        self.name.as_ref().is_none_or(|name| {
            let leaf = ParsedCertificate::try_from(leaf);
            leaf.is_ok_and(|leaf| verify_server_name(&leaf, name).is_ok())
        })
    }
}

/// Returns both sides of connections between members. TLS 1.3 only, and every connection verifies certificates: no
/// session is resumed.
///
/// # Errors
/// The first error in the certificate, its key, or the authorities, or that these have not signed the certificate, or
/// that it is not for the members' name. The period in which it is valid is not looked at: that changes with time.
pub fn member(tls: &FleetTls) -> Result<MemberTls, Mistake> {
    let (own, facts) = certified(&tls.certificate)?;
    let roots = Arc::new(pem::roots(&tls.ca)?);
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider());
    let clients = clients.build().map_err(|error| {
        Mistake::new(Part::Ca, format!("these authorities cannot verify members: {error}"))
    })?;
    let servers = Arc::new(AnyName::new(Accepted::SignedBy(roots), provider()));
    let name = tls.name.as_deref().map(|name| ServerName::try_from(name.to_owned()));
    let name = name.transpose().map_err(|_| {
        Mistake::new(Part::Chain, "the name of the members' certificates is no DNS name")
    })?;
    let begins = Duration::from_secs(facts.not_before.max(0).cast_unsigned());
    check_accepted(&own.cert, &*clients, &servers, UnixTime::since_unix_epoch(begins))?;

    let own_certificate = own.cert.clone();
    let own = Arc::new(SingleCertAndKey::from(own));
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::clone(&own) as Arc<_>);
    server.alpn_protocols = vec![MEMBER_ALPN.to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        // "Dangerous" because any verifier may be given here.
        .dangerous()
        .with_custom_certificate_verifier(servers)
        .with_client_cert_resolver(own);
    client.alpn_protocols = vec![MEMBER_ALPN.to_vec()];
    client.resumption = Resumption::disabled();
    // Members are known by address.
    client.enable_sni = false;
    let member = MemberTls { server: Arc::new(server), client: Arc::new(client), name };
    if !member.has_member_name(Some(&own_certificate)) {
        let name = tls.name.as_deref().unwrap_or_default();
        let message = format!("this certificate is not valid for {name}, the `name` of members");
        return Err(Mistake::new(Part::Chain, message)
            .help("issue one with this DNS name, or change `name`"));
    }
    Ok(member)
}

fn unusable(error: Error) -> Mistake {
    Mistake::new(Part::Chain, format!("TLS cannot be set up: {error}"))
}

/// Checks that other members accept this certificate, on either side of a connection.
fn check_accepted(
    chain: &[CertificateDer<'static>],
    clients: &dyn ClientCertVerifier,
    servers: &AnyName,
    now: UnixTime,
) -> Result<(), Mistake> {
    let Some((leaf, rest)) = chain.split_first() else {
        return Err(Mistake::new(Part::Chain, "there is no certificate"));
    };
    let sides = [
        ("server", servers.verify(leaf, rest, now)),
        ("client", clients.verify_client_cert(leaf, rest, now).map(drop)),
    ];
    for (side, verified) in sides {
        match verified {
            Ok(())
            | Err(Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            )) => {}
            Err(error) => {
                let message = format!(
                    "this certificate cannot be verified for {side} authentication: {error}"
                );
                return Err(Mistake::new(Part::Chain, message)
                    .help("have an authority in `ca` sign it, with serverAuth and clientAuth"));
            }
        }
    }
    Ok(())
}
