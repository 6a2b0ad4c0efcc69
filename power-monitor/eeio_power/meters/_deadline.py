"""Requests and answers on a socket with one time limit for all their bytes.

A socket's own limit is for each part that arrives: an answer that drips in would never end.
"""

import socket
import time


class Exchange:
    """One request and its answer. All methods raise OSError, and TimeoutError after the limit."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self._connection, self._timeout_s = connection, timeout_s
        self._end_s = time.monotonic() + timeout_s

    def send(self, data: bytes) -> None:
        """All of it."""
        self._limit()
        self._connection.sendall(data)

    def part(self, most: int) -> bytes:
        """The bytes that come next, at least one. ConnectionResetError after the last one."""
        self._limit()
        try:
            data = self._connection.recv(most)
        except TimeoutError as error:
            raise self._late() from error
        if not data:
            raise ConnectionResetError("the connection was closed")
        return data

    def exactly(self, count: int) -> bytes:
        """So many bytes."""
        data = bytearray()
        while len(data) < count:
            data += self.part(count - len(data))
        return bytes(data)

    def _limit(self) -> None:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0.0:
            raise self._late()
        self._connection.settimeout(left_s)

    def _late(self) -> TimeoutError:
        return TimeoutError(f"no complete answer in {self._timeout_s:g} s")
