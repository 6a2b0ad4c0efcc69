"""What the report's page costs: the time to make it, its size, and its first paint.

Usage: python -m benchmarks.page_scale [--directory DIR]     from the top of the repository

Made campaigns: 54 experiments of 6 runs of a minute, 10 readings a second of two power domains,
once and twice; 1667 experiments of 6 runs; 10 000 experiments of one run. Each is stored, with its
samples file, and reported by `eeio report --format html` in a process of its own: seconds of wall
time from its start to its end, the page's bytes, and in a headless Chromium the median of three of
the first paint, and of the time until everything is drawn, from the start of the navigation.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eeio.record.store import Store
from eeio_power.meters import Channel
from eeio_power.samples import MeterInfo, header_line

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.page.made import campaign

_CASES = (
    ("54 experiments x 6 runs", 54, 6, 1),
    ("54 experiments x 6 runs, two campaigns", 54, 6, 2),
    ("1667 experiments x 6 runs", 1667, 6, 1),
    ("10000 experiments x 1 run", 10_000, 1, 1),
)
_OPENED = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    for label, experiments, repetitions, campaigns in _CASES:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
            folders = [
                stored(Path(name) / f"c{number}", experiments, repetitions)
                for number in range(campaigns)
            ]
            page = Path(name) / "page.html"
            took_s = report(folders, page)
            size = page.stat().st_size
            paint, ready = opened(page)
        print(
            f"{label}: made in {took_s:.2f} s, {size / 1e6:.2f} MB, first paint {paint:.2f} s, "
            f"drawn {ready:.2f} s",
            flush=True,
        )


def stored(folder: Path, experiments: int, repetitions: int) -> Path:
    """A campaign with its samples."""
    made = campaign(experiments, repetitions, name=folder.name, folder=folder)
    store = Store(folder)
    store.create(made.design)
    store.write_machine(made.machine)
    store.write_idle(made.idle, None)
    store.append_all(list(made.runs))
    channels = tuple(
        Channel(f"made:{domain}", domain, "power_w") for domain in ("system", "package")
    )
    info = MeterInfo("meter", "made", "measured", 0.1, 0.1, channels)
    end_s = made.runs[-1].started_monotonic_s + made.runs[-1].duration_s
    with subprocess.Popen(
        ["gzip", "-1"], stdin=subprocess.PIPE,
        stdout=(folder / "samples/power-0001.csv.gz").open("wb"), text=True,
    ) as gzip:  # fmt: skip
        assert gzip.stdin is not None
        gzip.stdin.write(header_line([info], 0.0, "2026-01-01T00:00:00+00:00"))
        for step in range(round(10 * end_s)):
            at_s, watts = 0.1 * step, 45 + 0.001 * (step * 7919 % 4001)
            gzip.stdin.write(f"{at_s!r},0,{watts!r}\n{at_s!r},1,{watts / 2!r}\n")
    return folder


def report(folders: list[Path], page: Path) -> float:
    """Wall seconds of `eeio report --format html`."""
    begun_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "eeio", "report", *map(str, folders), "--format", "html",
         "--output", str(page)],
        check=True, timeout=600, stdout=subprocess.DEVNULL, env={**os.environ},
    )  # fmt: skip
    return time.monotonic() - begun_s


def opened(page: Path) -> tuple[float, float]:
    """Medians of the first paint and of everything drawn, s."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(word)
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    paints, readies = [], []
    try:
        for _ in range(_OPENED):
            driver.get("about:blank")
            driver.get(page.as_uri())
            end_s = time.monotonic() + 60
            while time.monotonic() < end_s:
                paint, ready = driver.execute_script(
                    "return [performance.getEntriesByName('first-contentful-paint')[0]?.startTime,"
                    " performance.getEntriesByName('drawn')[0]?.startTime]"
                )
                if paint is not None and ready is not None:
                    break
                time.sleep(0.05)
            paints.append(paint / 1e3)
            readies.append(ready / 1e3)
    finally:
        driver.quit()
    return statistics.median(paints), statistics.median(readies)


if __name__ == "__main__":
    main()
