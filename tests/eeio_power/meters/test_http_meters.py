"""Redfish, Shelly and Tasmota against HTTP doubles on loopback."""

import base64
import http.client
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.simulators import http as doubles
from tests.simulators.http import FakeHttp

from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters


def watts(value: Any = 87.5) -> Any:
    return lambda: value


def opened(name: str, fake: FakeHttp, options: str = "") -> Meter:
    return one_meter(f"{name}:{fake.address}{options}")


CASES = [
    ("redfish", doubles.redfish),
    ("shelly", doubles.shelly),
    ("shelly", doubles.shelly_first_generation),
    ("tasmota", doubles.tasmota),
]


@pytest.mark.parametrize(("name", "paths"), CASES)
def test_each_reads_power_and_only_gets(name: str, paths: Any) -> None:
    with FakeHttp(paths(watts())) as fake:
        meter = opened(name, fake)
        assert meter.read()[0] == 87.5
        connection = meter.client._connection  # type: ignore[attr-defined]
        assert meter.kind == "measured"
        assert [c.domain for c in meter.channels if c.in_domain_total] == ["system"]
        assert all(request.startswith("GET ") for request in fake.requests)
        before = len(fake.requests)
        meter.read()
        assert meter.client._connection is connection, "and one connection"  # type: ignore[attr-defined]
        assert len(fake.requests) == before + 1, "one request a reading"


def test_redfish_prefers_the_newer_place() -> None:
    with FakeHttp(doubles.redfish(watts(301), environment_metrics=True)) as fake:
        assert opened("redfish", fake).read() == [301.0]
        assert fake.requests[-1].endswith("/Self/EnvironmentMetrics")


def test_shelly_records_its_counter_without_adding_it() -> None:
    with FakeHttp(doubles.shelly(watts(), lambda: 2.0)) as fake:
        meter = opened("shelly", fake)
        assert meter.read() == [87.5, 7200.0]
        assert [c.in_domain_total for c in meter.channels] == [True, False]


@pytest.mark.parametrize(("name", "paths"), CASES)
@pytest.mark.parametrize("power", [None, "87", True, [], {}, 10**400, [87.5, None], [None, 87.5]])
def test_what_is_no_number_is_never_zero(name: str, paths: Any, power: Any) -> None:
    value = [87.5]
    with FakeHttp(paths(lambda: value[0])) as fake:
        meter = opened(name, fake)
        value[0] = power
        with pytest.raises(PowerError):
            meter.read()
        value[0] = 90
        assert meter.read()[0] == 90.0


def test_a_plugs_channels_are_added_up() -> None:
    with FakeHttp(doubles.tasmota(watts([87.5, 2]))) as fake:
        assert opened("tasmota", fake).read() == [89.5]


def test_a_reading_that_the_plug_calls_invalid_is_none() -> None:
    answers = doubles.shelly_first_generation(watts())
    with FakeHttp(answers) as fake:
        meter = opened("shelly", fake)
        fake.answers["/status"] = {"meters": [{"power": 87.5, "is_valid": False}]}
        with pytest.raises(PowerError, match="self-check of its meter failed"):
            meter.read()


def test_a_named_chassis_that_gives_nothing_reports_why() -> None:
    with (
        FakeHttp(doubles.redfish(watts()), authorization="Basic other") as fake,
        pytest.raises(PowerError, match=r"HTTP 401 .*check user= and the password"),
    ):
        opened("redfish", fake, ",chassis=Self")


@pytest.mark.parametrize(("name", "paths"), CASES)
def test_garbage_and_an_error_page_are_failed_reads(name: str, paths: Any) -> None:
    with FakeHttp(paths(watts())) as fake:
        meter = opened(name, fake)
        (path,) = {r.removeprefix("GET ") for r in fake.requests[-1:]}
        for answer in (b"<html>busy</html>", b"\xff\xfe", b"NaN", b"[]", b"x" * (2 << 20)):
            fake.answers[path] = answer
            with pytest.raises(PowerError):
                meter.read()
        del fake.answers[path]
        with pytest.raises(PowerError, match="HTTP 404"):
            meter.read()


@pytest.mark.parametrize(("name", "paths"), CASES)
def test_a_server_that_hangs_is_given_up(
    name: str, paths: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeHttp(paths(watts())) as fake:
        meter = opened(name, fake)
        meter.client._timeout_s = 0.05  # type: ignore[attr-defined]
        meter.client.close()  # type: ignore[attr-defined]
        fake.flowing.clear()
        with pytest.raises(PowerError, match="timed out"):
            meter.read()
        fake.flowing.set()
        meter.client._timeout_s = 2.0  # type: ignore[attr-defined]
        meter.client.close()  # type: ignore[attr-defined]
        assert meter.read()[0] == 87.5


def test_a_connection_that_comes_late_is_ended_too() -> None:
    """The time may be over before there is a socket: a name that is looked up for long."""
    connection = http.client.HTTPConnection("127.0.0.1", 1)
    done = threading.Event()
    watch = threading.Thread(
        target=http_json._hang_up_late, args=(connection, [], done, 0.0), daemon=True
    )
    watch.start()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection.sock = ours
        theirs.settimeout(10.0)
        assert theirs.recv(1) == b""
    done.set()
    watch.join(10.0)
    assert not watch.is_alive()


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\nX: ",
        # Without a length it ends with the connection.
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_answer_that_drips_without_end_is_given_up(begin: bytes) -> None:
    ended = threading.Event()

    def drip(server: socket.socket) -> None:
        while not ended.is_set():
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(begin)
                    while not ended.wait(0.01):
                        connection.sendall(b"a")

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        failed: list[PowerError] = []

        def opens() -> None:
            try:
                open_meters([f"shelly:127.0.0.1:{server.getsockname()[1]},timeout_s=0.1"])
            except PowerError as error:
                failed.append(error)

        opener = threading.Thread(target=opens, daemon=True)
        opener.start()
        opener.join(10.0)
        ended.set()
        thread.join()
    assert failed and "no complete answer in 0.1 s" in str(failed[0])


def test_a_dropped_connection_is_made_again() -> None:
    with FakeHttp(doubles.shelly(watts())) as fake:
        meter = opened("shelly", fake)
        meter.client._connection.sock.close()  # type: ignore[attr-defined]
        assert meter.read()[0] == 87.5


def test_passwords_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "correct horse"
    (tmp_path / "password").write_text(f"{secret}\n")
    token = base64.b64encode(f"me:{secret}".encode()).decode()
    monkeypatch.delenv(http_json.PASSWORD_VARIABLE, raising=False)
    with FakeHttp(doubles.redfish(watts()), authorization=f"Basic {token}") as fake:
        with pytest.raises(PowerError, match="check user= and the password"):
            opened("redfish", fake)
        with pytest.raises(PowerError, match="no password; give password_file"):
            opened("redfish", fake, ",user=me")
        meter = opened("redfish", fake, f",user=me,password_file={tmp_path / 'password'}")
        assert meter.read() == [87.5]
        assert secret not in repr(meter) and secret not in meter.spec
        meter.close()
        monkeypatch.setenv(http_json.PASSWORD_VARIABLE, secret)
        opened("redfish", fake, ",user=me").close()
    with pytest.raises(PowerError, match="no passwords in addresses") as caught:
        open_meters([f"redfish:http://me:{secret.replace(' ', '')}@host"])
    assert "no passwords" in str(caught.value)


def test_tasmotas_password_is_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(http_json.PASSWORD_VARIABLE, "hunter2")
    path = "/cm?user=admin&password=hunter2&cmnd=Status%208"
    with FakeHttp(doubles.tasmota(watts(), path)) as fake:
        meter = opened("tasmota", fake, ",user=admin")
        assert meter.read() == [87.5]
        fake.answers.clear()
        with pytest.raises(PowerError) as failed:
            meter.read()
        assert "hunter2" not in str(failed.value)
        with pytest.raises(PowerError) as caught:
            opened("tasmota", fake, ",user=admin")
        assert "hunter2" not in str(caught.value)
        assert "hunter2" not in repr(meter)


def test_shelly_is_answered_by_digest_and_the_password_is_never_sent(tmp_path: Path) -> None:
    """The challenge of a Shelly 1 Mini Gen3, from the tests of Matterbridge's integration."""
    (tmp_path / "password").write_text("hunter2\n")
    option = f",password_file={tmp_path / 'password'}"
    with FakeHttp(doubles.shelly(watts()), digest=("admin", "hunter2")) as fake:
        with pytest.raises(PowerError, match=r"401.*check user= and the password"):
            opened("shelly", fake)
        meter = opened("shelly", fake, option)
        assert meter.read()[0] == 87.5
        before = len(fake.requests)
        assert meter.read()[0] == 87.5
        assert len(fake.requests) == before + 1, "one request a reading, with the nonce kept"
        fake.nonce = "1716559999"
        assert meter.read()[0] == 87.5, "and a new nonce is taken up"
        assert "hunter2" not in repr(meter) and "hunter2" not in repr(vars(meter.client))  # type: ignore[attr-defined]
        meter.close()
        (tmp_path / "password").write_text("wrong\n")
        with pytest.raises(PowerError, match="401") as caught:
            opened("shelly", fake, option)
        assert "wrong" not in str(caught.value)


def test_a_digest_that_is_not_known_is_reported() -> None:
    credentials = http_json.Credentials("admin", "x")
    for challenge, message in (
        ('Digest realm="a", nonce="b", qop="auth"', "'MD5'; eeio supports only SHA-256"),
        ('Digest realm="a", nonce="b", algorithm=SHA-256', "without qop=auth"),
        ('Digest realm="a\x01", nonce="b", qop="auth", algorithm=SHA-256', "a header cannot"),
    ):
        wanted = http_json.parameters(challenge)
        assert wanted is not None
        with pytest.raises(PowerError, match=message):
            http_json.Digest(credentials, wanted)
    assert http_json.parameters('Basic realm="Shelly"') is None


def test_rfc_7616s_own_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 3.9.1."""
    monkeypatch.setattr(
        http_json.secrets, "token_hex", lambda _: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    )
    wanted = http_json.parameters(
        'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, '
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", '
        'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    )
    assert wanted is not None
    digest = http_json.Digest(http_json.Credentials("Mufasa", "Circle of Life"), wanted)
    message = digest.authorization("GET", "/dir/index.html")
    assert "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1" in message


def metrics(power_w: float) -> dict[str, Any]:
    return {"PowerWatts": {"Reading": power_w}}


def control(*parts: tuple[float, str | None]) -> dict[str, Any]:
    return {
        "PowerControl": [
            {"MemberId": str(k), "PowerConsumedWatts": power_w}
            | ({} if context is None else {"PhysicalContext": context})
            for k, (power_w, context) in enumerate(parts)
        ]
    }


# The names of a GB200's chassis (HGX_ProcessorModule_0, HGX_CPU_0 with EnvironmentMetrics), as its
# BMC shows them; the watts are made up. The first that answers is a processor module.
GB200: dict[str, tuple[str, Any]] = {
    "HGX_ProcessorModule_0": ("Module", metrics(1800.0)),
    "HGX_CPU_0": ("Component", metrics(210.0)),
    "HGX_GPU_0": ("Component", metrics(760.0)),
    "BMC_0": ("Module", None),
    "Chassis_0": ("RackMount", metrics(4210.0)),
}


def test_redfish_takes_the_systems_chassis_and_no_module() -> None:
    systems = {"System_0": ["Chassis_0", "HGX_ProcessorModule_0"], "HGX_Baseboard_0": ["HGX_CPU_0"]}
    for linked in (systems, {"System_0": []}, {}):
        with FakeHttp(doubles.redfish_of(GB200, linked)) as fake:
            assert opened("redfish", fake).read() == [4210.0], linked
            with pytest.raises(PowerError, match="HGX_ProcessorModule_0 is a Module"):
                opened("redfish", fake, ",chassis=HGX_ProcessorModule_0")


def test_redfish_lists_several_systems_with_their_watts() -> None:
    nodes = {f"Node{k}": ("Blade", control((200.0 + k, None))) for k in range(2)}
    paths = doubles.redfish_of(nodes, {f"Node{k}": [f"Node{k}"] for k in range(2)})
    with FakeHttp(paths) as fake:
        with pytest.raises(PowerError, match=r"Node0 200 W, Node1 201 W; select.*chassis=Node0"):
            opened("redfish", fake)
        assert opened("redfish", fake, ",chassis=Node1").read() == [201.0]


@pytest.mark.parametrize(
    ("answer", "power_w"),
    [
        # As Lenovo's XCC lists them: the server, then its processors and its memory.
        (control((343.0, "Chassis"), (150.0, "CPU"), (40.0, "Memory")), 343.0),
        (control((150.0, "CPU"), (40.0, "Memory"), (343.0, "Chassis")), 343.0),
        (control((150.0, "CPU")), None),
        (control((100.0, None), (120.0, None)), None),
        ({"PowerWatts": {"Reading": 90.0, "PhysicalContext": "GPU"}}, None),
        ({"PowerWatts": {"Reading": 90.0, "DataSourceUri": "/redfish/v1/sensor"}}, None),
    ],
)
def test_redfish_looks_at_what_a_reading_is_of(
    answer: dict[str, Any], power_w: float | None
) -> None:
    paths = doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})
    with FakeHttp({**paths, "/redfish/v1/sensor": {"PhysicalContext": "CPU"}}) as fake:
        if power_w is None:
            with pytest.raises(PowerError, match="1 has no power of the complete chassis"):
                opened("redfish", fake)
        else:
            assert opened("redfish", fake).read() == [power_w]


def doubt_of(answer: dict[str, Any]) -> str | None:
    """Of the power of a chassis with this answer."""
    with FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake:
        (channel,) = opened("redfish", fake).channels
    return channel.doubt


def supplies(*inputs_w: float | None) -> dict[str, Any]:
    return {"PowerSupplies": [{"PowerInputWatts": power_w} for power_w in inputs_w]}


@pytest.mark.parametrize(
    ("answer", "power_w"),
    [
        # Cisco's CIMC gives its only entry the context of the supplies.
        (control((216.0, "PowerSupply")) | supplies(119.0, 124.0), 216.0),
        (control((119.0, "PowerSupply")) | supplies(119.0, 124.0), 243.0),
        (control((216.0, "PowerSupply")), 216.0),
        (supplies(88.0, 92.0), 180.0),
        (supplies(88.0, None), None),
    ],
)
def test_redfish_of_older_controllers_adds_the_supplies(
    answer: dict[str, Any], power_w: float | None
) -> None:
    paths = doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})
    with FakeHttp(paths) as fake:
        if power_w is None:
            with pytest.raises(
                PowerError, match=r"no power of the complete chassis|1 of 2 supplies"
            ):
                opened("redfish", fake)
        else:
            meter = opened("redfish", fake)
            assert meter.read() == [power_w]
            is_assumed = "PowerControl" in answer and "PowerSupplies" not in answer
            assert ("assumed" in (meter.channels[0].doubt or "")) is is_assumed


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "the supply PSU0 is assumed to be the only one"),
        ({"PowerSupplies@odata.count": 1}, "the supply PSU0 is assumed to be the only one"),
        ({"PowerSupplies@odata.count": 2}, None),
        ({"Redundancy": [{"RedundancySet": [
            {"@odata.id": f"/redfish/v1/Chassis/1/Power#/PowerSupplies/{n}"} for n in (0, 1)]}]},
         None),
    ],
)  # fmt: skip
def test_a_single_supply_of_an_older_controller_is_doubtful_or_one_of_several(
    more: dict[str, Any], message: str | None
) -> None:
    answer = {"PowerSupplies": [{"Name": "PSU0", "PowerInputWatts": 59.0}], **more}
    with FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake:
        if message is None:
            with pytest.raises(PowerError, match="1 of 2 supplies are listed"):
                opened("redfish", fake)
            return
        meter = opened("redfish", fake)
        assert (meter.read(), meter.channels[0].doubt) == ([59.0], message)


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        (control((118.0, None)) | {"PowerSupplies": [
            {"LastPowerOutputWatts": 118}, {"LastPowerOutputWatts": 106}]}, "its supplies 224 W"),
        (control((83.0, None)) | supplies(89.0, 77.62), "its supplies 166.62 W"),
        (control((105.0, "Chassis")) | {"PowerSupplies": [
            {"PowerOutputWatts": 105}, {"PowerOutputWatts": 141}]}, "its supplies 246 W"),
        (control((165.0, None)) | supplies(89.0, 77.62), None),
        (control((165.0, None)) | supplies(89.0, None), None),
    ],
)  # fmt: skip
def test_redfish_doubts_a_power_below_that_of_its_supplies(
    answer: dict[str, Any], doubt: str | None
) -> None:
    found = doubt_of(answer)
    assert (found is None) if doubt is None else (doubt in str(found))


def sensors_of(chassis: str, sensors: dict[str, dict[str, Any]]) -> dict[str, Any]:
    folder = f"/redfish/v1/Chassis/{chassis}/Sensors"
    return {
        folder: {"Members": [{"@odata.id": f"{folder}/{name}"} for name in sensors]},
        **{f"{folder}/{n}": {"ReadingType": "Power", **body} for n, body in sensors.items()},
    }


def test_redfish_reads_all_sensors_of_a_long_list() -> None:
    """Four supplies, the last two behind forty voltages."""
    names = [f"PSU{n}_Input_Power" for n in range(4)]
    powers = {name: {"Reading": 300.0} for name in names}
    voltages = {f"Voltage{n}": {"ReadingType": "Voltage", "Reading": 12.0} for n in range(40)}
    every = {names[0]: powers[names[0]], names[1]: powers[names[1]], **voltages, **powers}
    paths = doubles.redfish_of({"1": ("RackMount", None)}, {"1": ["1"]}) | sensors_of("1", every)
    with FakeHttp(paths) as fake:
        assert opened("redfish", fake).read() == [1200.0]


def test_redfish_reads_a_sensor_that_the_user_names() -> None:
    """Cray's nodes: the power of the node is a sensor of a voltage regulator."""
    sensors = {
        "NodeInputPower": {"Name": "Node", "PhysicalContext": "VoltageRegulator", "Reading": 747.0},
        "CPU0Power": {"Name": "CPU0", "PhysicalContext": "CPU", "Reading": 157.0},
    }
    paths = doubles.redfish_of({"N": ("RackMount", None)}, {"N": ["N"]})
    paths |= sensors_of("N", sensors)
    with FakeHttp(paths) as fake:
        with pytest.raises(PowerError, match=r"of parts: Node 747 W, CPU0 157 W"):
            opened("redfish", fake)
        for name in ("Node", "NodeInputPower"):
            assert opened("redfish", fake, f",chassis=N,sensor={name}").read() == [747.0]
        wrong = {
            ",sensor=Node": "requires chassis=",
            ",chassis=N,sensor=Attic": "0 sensors have the name Attic",
        }
        for options, why in wrong.items():
            with pytest.raises(PowerError, match=why):
                opened("redfish", fake, options)


@pytest.mark.parametrize(
    ("name", "more", "domain", "doubt"),
    [
        ("Total_Power", {}, "system", None),
        ("Node Power", {"PhysicalContext": "VoltageRegulator"}, "system", "is of VoltageReg"),
        ("Node Power", {"PhysicalContext": "Chassis"}, "system", None),
        ("12V_Power", {}, "system", "does not say what it contains"),
        ("PS1 Output Power", {"PhysicalContext": "PowerSupply"}, "system", "is of Power"),
        ("NVSwitch_0_Power", {"PhysicalContext": "Switch"}, "system", "is of Switch"),
        ("VDDCR_SOC_Power", {}, "package", "does not say what it contains"),
        ("CPU_A Power", {}, "package", "does not say what it contains"),
        ("Total Memory Power", {}, "dram", None),
        ("Total Power", {"AveragingInterval": "PT1H"}, None, "gives no power"),
        ("Total Power", {"AveragingInterval": "PT1S"}, "system", None),
        ("CPU1_Power", {"PhysicalContext": "CPU"}, "package", "does not say what it contains"),
        ("CPU Power", {}, "package", None),
        ("System Member Power", {}, "system", "does not say what it contains"),
        ("Peak Power", {}, None, "is not the power of a time"),
        ("Total Power Limit", {}, None, "is not the power of a time"),
        ("CPU and Memory Power", {}, None, "of several parts"),
        ("Fan Power", {}, None, "is of a part"),
        ("Total Power", {"ReadingBasis": "Headroom"}, None, "gives no power"),
        ("Total Power", {"Status": {"State": "Absent"}}, None, "gives no power"),
    ],
)
def test_redfish_judges_a_sensor_that_the_user_names(
    name: str, more: dict[str, Any], domain: str | None, doubt: str | None
) -> None:
    paths = doubles.redfish_of({"N": ("RackMount", None)}, {"N": ["N"]})
    paths |= sensors_of("N", {"Power1": {"Name": name, "Reading": 210.0, **more}})
    with FakeHttp(paths) as fake:
        if domain is None:
            with pytest.raises(PowerError, match=str(doubt)):
                opened("redfish", fake, f",chassis=N,sensor={name}")
            return
        meter = opened("redfish", fake, f",chassis=N,sensor={name}")
        (channel,) = meter.channels
        assert (channel.domain, meter.read()) == (domain, [210.0])
        assert (channel.doubt is None) == (doubt is None) and str(doubt) in str(channel.doubt)


def test_redfish_takes_a_rack_that_one_system_links_to() -> None:
    """As Cisco's servers call themselves."""
    rack = {"1": ("Rack", control((324.0, None)))}
    with FakeHttp(doubles.redfish_of(rack, {"1": ["1"]})) as fake:
        assert opened("redfish", fake).read() == [324.0]
    with (
        FakeHttp(doubles.redfish_of(rack, {})) as fake,
        pytest.raises(PowerError, match="1 is a Rack"),
    ):
        opened("redfish", fake)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"PowerSupplies": [{"PowerInputWatts": 13, "PowerOutputWatts": 0},
                            {"PowerInputWatts": 14, "PowerOutputWatts": 0}]}, "the machine is off"),
        ({"PowerSupplies": [{"PowerOutputWatts": 201}, {"PowerOutputWatts": 0}]}, "201 W, 0 W"),
    ],
)  # fmt: skip
def test_redfish_reports_what_supplies_give(answer: dict[str, Any], why: str) -> None:
    with (
        FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake,
        pytest.raises(PowerError, match=why),
    ):
        opened("redfish", fake)


def test_redfish_offers_the_board_that_has_the_power() -> None:
    """Intel's controllers: the system is in RackMount, and Baseboard, a card, has its power."""
    chassis = {"Baseboard": ("Card", control((124.0, None))), "RackMount": ("RackMount", {})}
    paths = doubles.redfish_of(chassis, {"1": ["RackMount"]})
    members = paths["/redfish/v1/Chassis"]["Members"]
    members.append({"@odata.id": "/redfish/v1/Chassis/DeadLink404"})
    with FakeHttp(paths) as fake:
        with pytest.raises(PowerError, match=r"Baseboard 124 W; name .* chassis=Baseboard"):
            opened("redfish", fake)
        assert opened("redfish", fake, ",chassis=Baseboard").read() == [124.0]


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        (control((378.0, "PowerSupply")) | supplies(180.0, 70.0), "its PowerControl is 378 W"),
        ({"PowerSupplies": [{"Name": f"PS{n}", "PowerInputWatts": 246.0} for n in (1, 3, 4)]},
         "by their numbers, a supply is missing"),
        ({"PowerSupplies": [{"Name": f"PS{n}", "PowerInputWatts": 246.0} for n in (1, 2)]}, None),
        ({"PowerSupplies": [{"Name": "PS1", "PowerInputWatts": 0.0, "PowerOutputWatts": 67.0},
                            {"Name": "PS2", "PowerInputWatts": 89.0, "PowerOutputWatts": 80.0}]},
         "PS1 draws 0 W and gives 67 W"),
    ],
)  # fmt: skip
def test_redfish_doubts_sums_that_other_figures_contradict(
    answer: dict[str, Any], doubt: str | None
) -> None:
    found = doubt_of(answer)
    assert (found is None) if doubt is None else (doubt in str(found))
