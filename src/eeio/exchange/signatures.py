"""Signatures by SSH keys, which `ssh-keygen -Y` makes and verifies (OpenSSH 8.9 or newer)."""

import re
import subprocess
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.units.external_text import shown

NAMESPACE = "eeio"
"""A signature for another purpose is not valid for a bundle."""
_MISSING = "ssh-keygen is not installed (Debian: openssh-client)"
_KEY = re.compile(r"with ([\w-]+ key SHA256:[\w+/=]+)")
_TIMEOUT_S = 60.0


def name_of(signed: str) -> str:
    return f"{signed}.sig"


def check_key(key: Path) -> None:
    if not key.is_file():
        raise RejectedError(f"--sign {key}: no such file")


def sign(file: Path, key: Path) -> None:
    """Writes the signature next to the file. ssh-keygen asks for the key's passphrase."""
    try:
        done = subprocess.run(
            ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file)],
            stdout=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError as error:
        raise EeioError(f"{file}: not signed: {_MISSING}") from error
    if done.returncode != 0:
        raise EeioError(f"{file}: not signed with {key}: ssh-keygen failed")


def signer_of(file: Path, signers: Path | None) -> tuple[str | None, str | None]:
    """Who signed the file, and what is wrong with its signature; (None, None) without one. With a
    file of allowed `signers`, the file must be signed by one of them."""
    if signers is not None and not signers.is_file():
        raise RejectedError(f"--signers {signers}: no such file")
    signature = file.with_name(name_of(file.name))
    if signature.is_symlink() or (signature.exists() and not signature.is_file()):
        return None, "the signature is not a file"
    if not signature.exists():
        return None, None if signers is None else "the bundle is not signed"
    verify = ("-n", NAMESPACE, "-s", str(signature))
    try:
        if signers is None:
            done = _run(file, "check-novalidate", *verify)
            key = _KEY.search(done.stdout)
            if done.returncode != 0 or key is None:
                return None, f"the signature is not valid: {_why(done)}"
            return key[1], None
        done = _run(file, "find-principals", "-s", str(signature), "-f", str(signers))
        if done.returncode != 0 or not done.stdout.strip():
            return None, f"the key of the signature is not in {signers.name}"
        signer = done.stdout.splitlines()[0].strip()
        done = _run(file, "verify", "-I", signer, "-f", str(signers), *verify)
        if done.returncode != 0:
            return None, f"the signature is not valid: {_why(done)}"
        return signer, None
    except FileNotFoundError:
        return None, _MISSING
    except subprocess.TimeoutExpired:
        return None, "ssh-keygen does not end"


def _run(file: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    with file.open("rb") as signed:
        return subprocess.run(
            ["ssh-keygen", "-Y", *arguments],
            stdin=signed,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )


def _why(done: "subprocess.CompletedProcess[str]") -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    if lines:
        return shown(lines[-1])
    return "ssh-keygen failed"
