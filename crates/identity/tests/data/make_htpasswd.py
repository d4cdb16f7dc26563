#!/usr/bin/env python3
"""Writes htpasswd.txt: hashes of known passwords, each made by the tool that its comment names.

Usage: make_htpasswd.py. Needs htpasswd (apache2-utils), openssl, mkpasswd (whois), and for Python bcrypt,
argon2-cffi and passlib. A line of the output is `PASSWORD<tab>USER:HASH`; the password is percent-encoded.
"""

import crypt
import pathlib
import subprocess
import urllib.parse

import argon2
import bcrypt
from passlib import hash as passlib

PLAIN = "correct horse battery staple"
UNICODE = "pässwörd \N{SNOWMAN}"
LONG_72 = "x" * 71 + "y"
LONG = "0123456789" * 20


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()


def htpasswd(password, *flags):
    return run("htpasswd", "-nbB", *flags, "user", password).partition(":")[2]


def argon2_hash(password, kind, version=19, **cost):
    cost = {"time_cost": 2, "memory_cost": 1024, "parallelism": 1, "hash_len": 32, **cost}
    return argon2.low_level.hash_secret(
        password.encode(), b"salt of a user..", type=kind, version=version, **cost
    ).decode()


def cases():
    for name, password in [("plain", PLAIN), ("unicode", UNICODE), ("long72", LONG_72)]:
        yield "htpasswd -B", f"apache-{name}", password, htpasswd(password)
        yield "bcrypt 2b", f"pybcrypt-{name}", password, bcrypt.hashpw(
            password.encode(), bcrypt.gensalt(5)).decode()
    yield "htpasswd -B -C 10", "apache-cost10", PLAIN, htpasswd(PLAIN, "-C", "10")
    yield "bcrypt 2a", "pybcrypt-2a", PLAIN, bcrypt.hashpw(
        PLAIN.encode(), bcrypt.gensalt(4, prefix=b"2a")).decode()
    yield "passlib bcrypt", "passlib-bcrypt", UNICODE, passlib.bcrypt.using(rounds=5).hash(UNICODE)
    yield "htpasswd -B, no password", "apache-empty", "", htpasswd("")

    kinds = argon2.low_level.Type
    for name, kind in [("id", kinds.ID), ("i", kinds.I), ("d", kinds.D)]:
        yield f"argon2-cffi {name}", f"argon2{name}", UNICODE, argon2_hash(UNICODE, kind)
    yield "argon2-cffi defaults", "argon2-defaults", PLAIN, argon2.PasswordHasher().hash(PLAIN)
    yield "argon2-cffi v16", "argon2-v16", PLAIN, argon2_hash(PLAIN, kinds.I, version=16)
    yield "argon2-cffi lanes", "argon2-lanes", LONG, argon2_hash(LONG, kinds.ID, parallelism=4, hash_len=64)
    yield "passlib argon2", "passlib-argon2", PLAIN, passlib.argon2.using(
        rounds=2, memory_cost=512).hash(PLAIN)

    for name, password in [("plain", PLAIN), ("unicode", UNICODE), ("long", LONG), ("empty", "")]:
        for number, method in [("5", crypt.METHOD_SHA256), ("6", crypt.METHOD_SHA512)]:
            salt = f"${number}$saltofauser{number}"
            yield f"crypt {number}", f"crypt{number}-{name}", password, crypt.crypt(password, salt)
    for number in ["5", "6"]:
        yield f"openssl passwd -{number}", f"openssl{number}", PLAIN, run(
            "openssl", "passwd", f"-{number}", "-stdin", text=PLAIN)
    yield "htpasswd -5", "apache5", PLAIN, run("htpasswd", "-nb5", "user", PLAIN).partition(":")[2]
    yield "htpasswd -2", "apache2", PLAIN, run("htpasswd", "-nb2", "user", PLAIN).partition(":")[2]
    yield "mkpasswd sha256crypt", "mkpasswd5", PLAIN, run(
        "mkpasswd", "-m", "sha256crypt", "-R", "1000", PLAIN)
    yield "mkpasswd sha512crypt", "mkpasswd6", UNICODE, run(
        "mkpasswd", "-m", "sha512crypt", "-R", "12345", UNICODE)
    yield "passlib sha512_crypt", "passlib6", UNICODE, passlib.sha512_crypt.using(rounds=1001).hash(UNICODE)
    # Of the vectors in Drepper's specification.
    yield "Drepper", "drepper6", "Hello world!", (
        "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/"
        "UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.")


def main():
    here = pathlib.Path(__file__).resolve().parent
    with open(here / "htpasswd.txt", "w") as out:
        for tool, user, password, hash_ in cases():
            out.write(f"# {tool}\n{urllib.parse.quote(password)}\t{user}:{hash_}\n")


main()
