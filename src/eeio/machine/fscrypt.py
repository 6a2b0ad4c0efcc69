"""Encrypts a new folder of ext4 by fscrypt, with a random key that ends with the mount.

The ioctls and structures are those of linux/fscrypt.h.
"""

import errno
import fcntl
import os
import struct
from pathlib import Path

from eeio.errors import EeioError

# fscrypt_add_key_arg: key_spec (type 2: by identifier), raw_size, key_id, reserved, raw.
_ADD_KEY = 0xC0506617
_KEY = struct.Struct("II32s II32s 64s")
_BY_IDENTIFIER = 2
_IDENTIFIER = slice(8, 24)
# fscrypt_policy_v2: AES-256-XTS for contents, AES-256-CTS for names.
_SET_POLICY = 0x800C6613
_POLICY = struct.Struct("BBBB4s16s")
_VERSION, _XTS, _CTS = 2, 1, 4


def encrypt(folder: Path) -> None:
    """Raises EeioError if the kernel or the file system cannot encrypt."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        key = bytearray(_KEY.pack(_BY_IDENTIFIER, 0, b"", 64, 0, b"", os.urandom(64)))
        fcntl.ioctl(descriptor, _ADD_KEY, key)
        policy = _POLICY.pack(_VERSION, _XTS, _CTS, 0, b"", bytes(key[_IDENTIFIER]))
        fcntl.ioctl(descriptor, _SET_POLICY, policy)
    except OSError as error:
        reason = "the kernel has no fscrypt" if error.errno == errno.EOPNOTSUPP else error.strerror
        raise EeioError(f"{folder}: cannot be encrypted: {reason}") from error
    finally:
        os.close(descriptor)
