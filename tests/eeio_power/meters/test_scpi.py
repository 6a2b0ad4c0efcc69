"""Laboratory power meters in pyvisa-sim, with the answers that their manuals show."""

import json
import socket
import threading
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters

pytest.importorskip("pyvisa_sim", reason="pyvisa-sim is not installed")

WT = {
    "*IDN?": "YOKOGAWA,WT310E,C3QA01234,F1.03",
    ":NUM:FORM ASC": None,
    ":NUM:NORM:NUM 2": None,
    ":NUM:NORM:ITEM1 P,1": None,
    ":NUM:NORM:ITEM2 WH,1": None,
    ":VOLT:RANG?": ":INPUT:VOLTAGE:RANGE 300.0E+00",
    ":CURR:RANG?": "2.0E+00",
    ":NUM:NORM:VAL?": "87.654E+00,12.345E+00",
}
LMG600 = {
    "*IDN?": "ZES ZIMMER Electronic Systems GmbH,LMG670,01234567,7.001",
    "*zlang short": None,
    "urng1?": "250.0",
    "irng1?": "1.2",
    "p1?": "5.462500E+01",
}
LMG95 = {
    "*IDN?": "ZES ZIMMER Electronic Systems GmbH,LMG95,01234567,3.148",
    "syst:lang short": None,
    "urng?": "250",
    "irng?": "1.2",
    "p?": "54.625",
}
HIOKI = {
    "*IDN?": "HIOKI,PW3335,140000000,V1.00",
    ":HEAD OFF": None,
    ":VOLT:RANG?": "300",
    ":CURR:RANG?": "1",
    ":MEAS? P,WP": "+041.25E+0;+0007.50E-3",
}


def opened(folder: Path, answers: dict[str, str | None], options: str = "") -> Meter:
    """The meter with these answers; None is none, as to a setting."""
    dialogues = [
        {"q": question} if answer is None else {"q": question, "r": answer}
        for question, answer in answers.items()
    ]
    resource = "TCPIP0::192.0.2.8::5025::SOCKET"
    (folder / "sim.yaml").write_text(
        json.dumps(
            {
                "spec": "1.0",
                "devices": {
                    "one": {
                        "eom": {"TCPIP SOCKET": {"q": "\n", "r": "\n"}},
                        "error": "ERROR",
                        "dialogues": dialogues,
                    }
                },
                "resources": {resource: {"device": "one"}},
            }
        )
    )
    return one_meter(f"scpi:{resource},backend={folder}/sim.yaml@sim{options}")


@pytest.mark.parametrize(
    ("answers", "values", "accuracy", "limit_w"),
    [
        (WT, [87.654, 12.345 * 3600], 0.001, 0.3),
        (LMG600, [54.625], 0.0007, 0.6),
        (LMG95, [54.625], 0.0007, 0.6),
        (HIOKI, [41.25, 27.0], 0.001, 0.15),
    ],
)
def test_instruments(
    tmp_path: Path,
    answers: dict[str, str | None],
    values: list[float],
    accuracy: float,
    limit_w: float,
) -> None:
    meter = opened(tmp_path, answers)
    assert meter.read() == pytest.approx(values)
    power, *energy = meter.channels
    assert power.domain == "system" and power.accuracy_relative == accuracy
    assert power.resolution / 2 == pytest.approx(limit_w)
    assert not any(channel.in_domain_total for channel in energy)


@pytest.mark.parametrize(
    ("answers", "change", "why"),
    [
        (WT, {":NUM:NORM:VAL?": "INF,1.0E+00"}, "no data or over range"),
        (WT, {":NUM:NORM:VAL?": "NAN,NAN"}, "no data or over range"),
        (WT, {":NUM:NORM:VAL?": "9.9E+37,1"}, "no data or over range"),
        (LMG600, {"p1?": "9.910000E+37"}, "no data or over range"),
        (HIOKI, {":MEAS? P,WP": "+9999.9E+99;0"}, "no data or over range"),
        (WT, {":NUM:NORM:VAL?": "ERROR"}, "no data or over range"),
        (WT, {":VOLT:RANG?": "INF"}, "it states no ranges"),
        (WT, {"*IDN?": "ACME,Scope,1,2"}, "is 'ACME,Scope,1,2', none of: Yokogawa"),
    ],
)
def test_answers_that_are_no_power(
    tmp_path: Path, answers: dict[str, str | None], change: dict[str, str | None], why: str
) -> None:
    with pytest.raises(PowerError, match=why):
        opened(tmp_path, {**answers, **change})


def test_without_an_integration_its_energy_is_missing(tmp_path: Path) -> None:
    meter = opened(tmp_path, {**WT, ":NUM:NORM:VAL?": "87.654E+00,NAN"}, ",domain=device")
    assert meter.read() == [87.654, None] and meter.channels[0].domain == "device"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("scpi", "give the resource"),
        ("scpi:TCPIP0::127.0.0.1::1::SOCKET,element=x", "give the resource"),
        ("scpi:TCPIP0::127.0.0.1::1::SOCKET,domain=rack", "domain=rack is not one of"),
        ("scpi:nonsense", "check the resource"),
        ("scpi:TCPIP0::none.invalid::5025::SOCKET", "could not connect"),
        ("scpi:TCPIP0::127.0.0.1::1::SOCKET,timeout_s=1", "check the resource|refused"),
    ],
)
def test_specs_that_cannot_be(spec: str, why: str) -> None:
    pytest.importorskip("pyvisa_py", reason="pyvisa-py is not installed")
    with pytest.raises(PowerError, match=why):
        open_meters([spec])


def test_by_pyvisa_py_over_a_socket_and_silence() -> None:
    """The real backend, against a socket that answers as the instrument does, and then not."""
    pytest.importorskip("pyvisa_py", reason="pyvisa-py is not installed")
    silent = threading.Event()

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                answer = WT.get(line.decode().strip())
                if answer is not None and not silent.is_set():
                    connection.sendall(f"{answer}\n".encode())

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        meter = one_meter(f"scpi:TCPIP0::127.0.0.1::{port}::SOCKET,timeout_s=0.5")
        assert meter.read() == pytest.approx([87.654, 12.345 * 3600])
        silent.set()
        with pytest.raises(PowerError, match="Timeout"):
            meter.read()
