"""What `ipmitool ... exec FILE` says on its pipes, without a BMC: run as the tool itself.

    install_fake_ipmitool(folder, "watts.txt")   # folder goes on PATH

The answers are read from a file at each question, so that a test can change them:

- `301`           a DCMI reading of 301 W, measurement active
- `off 301`       the same with the measurement switched off
- `no`            DCMI is refused with completion code 0xc1; sensors answer
- `nm 301 120 -`  the Node Manager's platform, CPU and memory power, W; `-`: it refuses the domain;
                  `nm off`: with its measurement switched off
- `garbage TEXT`  TEXT
- `hang`          nothing, for ever
- `die`           the process ends

Lines after the first one are the sensors, as `ipmitool -c sdr` prints them, instead of `SENSORS`.
"""

import struct
import sys
import threading
import time
from pathlib import Path

SENSORS = "CPU1 Power,40.0,Watts,ok\nPwr Consumption,88.0,Watts,ok\nFan1,3000,RPM,ok"


def install_fake_ipmitool(folder: Path, answers: Path) -> None:
    """Put an executable `ipmitool` into the folder that reads its answers from a file."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "ipmitool"
    paths = repr([p for p in sys.path if p])
    script.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path[:0] = {paths}\n"
        "from pathlib import Path\n"
        "from tests.simulators.ipmitool import shell\n"
        f"shell(Path({str(answers)!r}))\n",
        encoding="utf-8",
    )
    script.chmod(0o755)


def dcmi_line(power_w: int, active: bool = True) -> str:
    """The bytes of a power reading as `raw` prints them, 16 a line."""
    state = 0x40 if active else 0
    data = b"\xdc" + struct.pack("<HHHHIIB", power_w, 1, 999, power_w, 1, 1000, state)
    octets = [f"{byte:02x}" for byte in data]
    return f" {' '.join(octets[:16])}\n {' '.join(octets[16:])}"


def node_manager_line(power_w: int, domain: int, active: bool = True) -> str:
    """Get Node Manager Statistics, mode 1, as `raw` prints it (Intel's NM 3.0 specification)."""
    state = domain | (0x50 if active else 0)
    data = struct.pack("<HHHHIIB", power_w, 1, 999, power_w, 1, 60, state)
    printed = [f"{byte:02x}" for byte in b"\x57\x01\x00" + data]
    return f" {' '.join(printed[:16])}\n {' '.join(printed[16:])}"


def _node_manager(line: str, watts: str) -> str:
    domain = int(line.split()[7], 16)
    if watts == "off":
        return node_manager_line(0, domain, active=False)
    found = [*watts.split(), "-", "-"][domain]
    if found == "-":
        return "Unable to send RAW command (channel=0x0 netfn=0x2e lun=0x0 cmd=0xc8 rsp=0x81)"
    return node_manager_line(int(found), domain)


def _named(line: str, sensors: list[str]) -> str:
    names = line.split('"')[1::2]
    return "\n".join(s for n in names for s in sensors if s.startswith(f"{n},"))


def shell(answers: Path) -> None:
    """Answer lines on stdin until it ends."""
    for raw in sys.stdin:
        line = raw.strip()
        if line.startswith("raw eeio"):
            print(f'Given netfn "{line.split()[1]}" is invalid.', flush=True)
            continue
        while not (text := answers.read_text(encoding="utf-8").strip()):
            time.sleep(0.001)  # a test is writing it
        first, *rows = text.splitlines()
        sensors = rows or SENSORS.splitlines()
        word, _, rest = first.partition(" ")
        if word == "hang":
            threading.Event().wait()
        elif word == "die":
            sys.exit("Get Device ID command failed")
        elif word == "garbage":
            print(rest, flush=True)
        elif line.startswith("raw 0x2e 0xc8") and word == "nm":
            print(_node_manager(line, rest), flush=True)
        elif word in ("no", "nm") and line.startswith("raw"):
            print("Unable to send RAW command (channel=0x0 netfn=0x2c lun=0x0 cmd=0x2 rsp=0xc1)")
        elif line.startswith("sdr elist"):
            print("\n".join(sensors))
        elif line.startswith("sdr get"):
            print(_named(line, sensors))
        else:
            print(dcmi_line(int(rest or word), active=word != "off"))
