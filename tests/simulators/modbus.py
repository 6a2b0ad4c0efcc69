"""pymodbus' own server, over TCP and over a serial line of two pseudo terminals, with registers of
a function. It is other people's program; it does not tell how true the watts of a real meter are.
"""

import asyncio
import importlib
import os
import select
import struct
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pymodbus.datastore as store

from tests.waiting import free_port, until

IS_OLD = hasattr(store, "ModbusSlaveContext")
"""Version 3.0, as in Debian 12."""
servers: Any = importlib.import_module("pymodbus.server.async_io" if IS_OLD else "pymodbus.server")

Registers = Callable[[str, int, int], Sequence[int] | None]
"""Of a table (`input`, `holding`), an address and a count; None where there are no registers."""
TABLES = {3: "holding", 4: "input"}


def registers_of(value: float, layout: str = "f") -> list[int]:
    """The number, most significant register first."""
    raw = struct.pack(f">{layout}", value)
    return list(struct.unpack(f">{len(raw) // 2}H", raw))


def sdm(power_w: Callable[[], float], register: int = 0x0C) -> Registers:
    """An SDM meter with its power in an input register, and no other registers."""

    def read(table: str, address: int, count: int) -> Sequence[int] | None:
        if (table, address, count) != ("input", register, 2):
            return None
        return registers_of(power_w())

    return read


def _context(registers: Registers, device_id: int) -> Any:
    if IS_OLD:

        class Context(store.ModbusSlaveContext):  # type: ignore[misc,name-defined]
            def validate(self, code: int, address: int, count: int = 1) -> bool:
                return registers(TABLES[code], address, count) is not None

            def getValues(self, code: int, address: int, count: int = 1) -> Sequence[int]:  # noqa: N802
                return list(registers(TABLES[code], address, count) or ())

        return store.ModbusServerContext({device_id: Context()}, single=False)
    from pymodbus.constants import ExcCodes
    from pymodbus.simulator import DataType, SimData, SimDevice

    async def action(
        code: int, start: int, address: int, count: int, current: list[int], _: Any
    ) -> Any:
        values = registers(TABLES[code], address, count)
        if values is None:
            return ExcCodes.ILLEGAL_ADDRESS
        current[address - start : address - start + count] = list(values)
        return None

    data = SimData(0, count=1000, values=0, datatype=DataType.REGISTERS)
    return SimDevice(device_id, simdata=[data], action=action)


@contextmanager
def _running(make: Callable[[], Any]) -> Iterator[None]:
    """A server in a loop of its own, until the end of the block."""
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    made: list[Any] = []

    async def serve() -> None:
        server = make()
        made.append(server)
        task = asyncio.ensure_future(server.serve_forever())
        await ended.wait()
        await server.shutdown()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        # What arrives before that is lost on a serial line.
        until(lambda: made and (made[0].server if IS_OLD else made[0].transport))
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@contextmanager
def over_tcp(registers: Registers, device_id: int = 1, port: int | None = None) -> Iterator[str]:
    """HOST:PORT of a device."""
    address = ("127.0.0.1", port or free_port())
    # Version 3.0 would wait for the end of the last connection to that port.
    again = {"allow_reuse_address": True} if IS_OLD else {}
    context = _context(registers, device_id)
    with _running(lambda: servers.ModbusTcpServer(context, address=address, **again)):
        yield f"{address[0]}:{address[1]}"


class Cable:
    """Two pseudo terminals; what one end gets, the other sends. `on_answer` changes the bytes on
    the way to the client."""

    def __init__(self) -> None:
        self._masters, self._slaves = zip(os.openpty(), os.openpty(), strict=True)
        for slave in self._slaves:
            tty.setraw(slave)
        self.device, self.client = (os.ttyname(slave) for slave in self._slaves)
        self.on_answer: Callable[[bytes], bytes] = lambda data: data
        self.requests: list[bytes] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        device, client = self._masters
        while not self._ended.is_set():
            for end in select.select([device, client], [], [], 0.02)[0]:
                data = os.read(end, 4096)
                if end == client:
                    self.requests.append(data)
                    os.write(device, data)
                else:
                    os.write(client, self.on_answer(data))

    def close(self) -> None:
        """Unplug it."""
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            for end in (*self._masters, *self._slaves):
                os.close(end)


@contextmanager
def over_serial(registers: Registers, device_id: int = 1, baud: int = 9600) -> Iterator[Cable]:
    """The cable to a device."""
    cable = Cable()
    try:
        with _running(
            lambda: servers.ModbusSerialServer(
                _context(registers, device_id), port=cable.device, baudrate=baud
            )
        ):
            yield cable
    finally:
        cable.close()
