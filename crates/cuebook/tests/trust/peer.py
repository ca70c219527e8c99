"""Signs and checks items with another implementation of Ed25519.

Reads {"check": [{name, extension, text, public_pem}], "sign": [{name, extension, text}], "private_pem": ...} and writes
{"checked": {name: fingerprint or null}, "signed": {name: text}, "public_pem": ..., "private_pem": ..., "loaded": ...}.
"""

import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

COMMENTS = {"md": ("<!-- ", " -->"), "js": ("// ", ""), "ts": ("// ", ""), "mjs": ("// ", ""), "cjs": ("// ", "")}


def public_pem(key):
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form)


def fingerprint(pem):
    return hashlib.sha256(pem).hexdigest()[:16]


def taken_apart(text, extension):
    """The signature's fields, the text that it covers, and the bytes of everything else."""
    before, after = COMMENTS.get(extension, ("# ", ""))
    lines = text.encode().split(b"\n")
    at = 1 if lines[0].startswith(b"#!") else 0
    line = lines.pop(at).decode().removeprefix(before)
    line = line.removesuffix(after) if after else line
    *time, digest, signature, signer = line.split(":")
    signer, _, purpose = signer.partition("|cuebook@")
    message = digest
    if purpose:
        message = f"cuebook signature 1\n{purpose}\n{':'.join(time[2:])}\n{digest}"
    return digest, message, signature, signer, b"\n".join(lines)


def check(item):
    pem = item["public_pem"].encode()
    key = serialization.load_pem_public_key(pem)
    digest, message, signature, signer, rest = taken_apart(item["text"], item["extension"])
    if hashlib.sha256(rest).hexdigest() != digest or fingerprint(pem) != signer:
        return None
    try:
        key.verify(base64.urlsafe_b64decode(signature), message.encode())
    except InvalidSignature:
        return None
    return signer


def sign(item, key):
    before, after = COMMENTS.get(item["extension"], ("# ", ""))
    text = item["text"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    signature = base64.urlsafe_b64encode(key.sign(digest.encode())).decode()
    signer = fingerprint(public_pem(key.public_key()))
    line = f"{before}rye:signed:2026-02-26T00:00:00Z:{digest}:{signature}:{signer}{after}\n"
    if text.startswith("#!"):
        first, rest = text.split("\n", 1)
        return f"{first}\n{line}{rest}"
    return line + text


def main():
    asked = json.load(sys.stdin)
    key = Ed25519PrivateKey.generate()
    ours = serialization.load_pem_private_key(asked["private_pem"].encode(), password=None)
    pkcs8 = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    json.dump(
        {
            "checked": {item["name"]: check(item) for item in asked["check"]},
            "signed": {item["name"]: sign(item, key) for item in asked["sign"]},
            "public_pem": public_pem(key.public_key()).decode(),
            "private_pem": key.private_bytes(serialization.Encoding.PEM, *pkcs8).decode(),
            "loaded": fingerprint(public_pem(ours.public_key())),
        },
        sys.stdout,
    )


main()
