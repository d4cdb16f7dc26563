#!/usr/bin/env python3
"""Writes tokens.txt and tokens.jwks.json: tokens by other libraries, and the keys that verify them.

Usage: make_tokens.py. Needs PyJWT, cryptography and jwcrypto. A line of tokens.txt is
`LIBRARY ALGORITHM<tab>TOKEN`. The private keys are thrown away.
"""

import json
import pathlib

import jwt
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwcrypto import jwk, jws

CLAIMS = {
    "iss": "https://issuer.example",
    "aud": ["weir", "other"],
    "sub": "anna",
    "iat": 1_700_000_000,
    "nbf": 1_700_000_000,
    "exp": 4_102_444_800,
    "realm_access": {"roles": ["admin", "user"]},
}
KINDS = {
    "RS256": {"kty": "RSA", "size": 2048},
    "RS384": {"kty": "RSA", "size": 3072},
    "RS512": {"kty": "RSA", "size": 2048},
    "PS256": {"kty": "RSA", "size": 2048},
    "PS384": {"kty": "RSA", "size": 2048},
    "PS512": {"kty": "RSA", "size": 4096},
    "ES256": {"kty": "EC", "crv": "P-256"},
    "ES384": {"kty": "EC", "crv": "P-384"},
    "ES512": {"kty": "EC", "crv": "P-521"},
    "EdDSA": {"kty": "OKP", "crv": "Ed25519"},
    "HS256": {"kty": "oct", "size": 256},
    "HS384": {"kty": "oct", "size": 384},
    "HS512": {"kty": "oct", "size": 512},
}


def main():
    here = pathlib.Path(__file__).resolve().parent
    keys = []
    with open(here / "tokens.txt", "w") as out:
        for name, kind in KINDS.items():
            key = jwk.JWK.generate(kid=name.lower(), use="sig", **kind)
            secret = key.kty == "oct"
            keys.append(json.loads(key.export() if secret else key.export_public()))
            raw = jwt.utils.base64url_decode(key.get_op_key("sign")) if secret else key.get_op_key("sign")
            if not secret:
                raw = raw.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            token = jwt.encode(CLAIMS, raw, algorithm=name, headers={"kid": name.lower()})
            out.write(f"PyJWT {name}\t{token}\n")
            signed = jws.JWS(json.dumps(CLAIMS, indent=1).encode())
            header = json.dumps({"alg": name, "kid": name.lower(), "typ": "at+jwt"})
            signed.add_signature(key, None, header)
            out.write(f"jwcrypto {name}\t{signed.serialize(compact=True)}\n")
    (here / "tokens.jwks.json").write_text(json.dumps({"keys": keys}, indent=1) + "\n")


main()
