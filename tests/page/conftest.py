"""A headless Chromium, as the system's packages have it: nothing is downloaded."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_S = 60


class Reader:
    """A reader with a page open. Widths in pixels."""

    def __init__(self, driver: Any, shots: Path | None) -> None:
        self.driver = driver
        self._shots = shots

    def open(self, page: Path, *, width: int = 1400, dark: bool = False) -> None:
        """Waits until the page's script has drawn everything."""
        self.resize(width)
        self.media(dark=dark)
        self.driver.get(page.as_uri())
        self.until("return document.documentElement.dataset.ready === 'all'")

    def resize(self, width: int, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def media(self, *, dark: bool = False, kind: str = "") -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": kind, "features": [scheme, still]}
        )

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> Any:
        """What the script gives, once that is true."""
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            if found := self.run(script, *arguments):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never came true: {script}; {self.complaints()}")

    def press(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def keys(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def choose(self, label: str, option: str) -> None:
        """An option of the select with that label."""
        self.run(
            """
            const label = [...document.querySelectorAll("label")]
              .find((one) => one.firstChild.textContent === arguments[0]);
            const select = label.querySelector("select");
            select.value = [...select.options].find((one) => one.text === arguments[1]).value;
            select.dispatchEvent(new Event("change"));
            """,
            label,
            option,
        )

    def names(self) -> list[str]:
        """Of the experiments that the table shows, in its order."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll('#experiments tbody > tr')]"
            ".filter((row) => !row.hidden && !row.matches('.detail'))"
            ".map((row) => row.cells[0].querySelector('button').textContent)"
        )
        return found

    def cells(self) -> list[list[str]]:
        """The text of every cell of the table but the names."""
        found: list[list[str]] = self.run(
            "return [...document.querySelectorAll('#experiments tbody > tr')].map((row) =>"
            " [...row.cells].slice(1).map((cell) => `${cell.className}|${cell.innerText}`))"
        )
        return found

    def complaints(self) -> list[str]:
        """What the console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def keep(self, name: str) -> None:
        """A picture of what is on screen, where EEIO_PAGE_SHOTS names a folder."""
        if self._shots is not None:
            self.driver.save_screenshot(str(self._shots / f"{name}.png"))


def _driver(downloads: Path, *, scripts: bool = True) -> Any:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.common.utils import is_url_connectable

    browser, server = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or server is None:
        pytest.skip("needs chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--disable-dev-shm-usage", "--force-color-profile=srgb",
                 "--remote-debugging-pipe"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    preferences: dict[str, Any] = {"download.default_directory": str(downloads)}
    if not scripts:
        preferences["profile.managed_default_content_settings.javascript"] = 2
    options.add_experimental_option("prefs", preferences)

    class Service(webdriver.ChromeService):  # type: ignore[misc, name-defined]
        @property
        def service_url(self) -> str:
            """By its address: where there is no /etc/hosts, `localhost` is nobody."""
            return f"http://127.0.0.1:{self.port}"

        def is_connectable(self) -> bool:
            found: bool = is_url_connectable(self.port, host="127.0.0.1")
            return found

    driver = webdriver.Chrome(options=options, service=Service(server))
    driver.set_page_load_timeout(_PATIENCE_S)
    driver.set_script_timeout(_PATIENCE_S)
    return driver


def _shots() -> Path | None:
    named = os.environ.get("EEIO_PAGE_SHOTS")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path) -> Iterator[Any]:
    driver = _driver(downloads)
    yield driver
    driver.quit()


@pytest.fixture
def reader(browser: Any) -> Iterator[Reader]:
    """Whatever the console says is a failure."""
    found = Reader(browser, _shots())
    found.complaints()  # of the test before
    yield found
    assert found.complaints() == []


@pytest.fixture
def reader_without_scripts(tmp_path: Path) -> Iterator[Reader]:
    driver = _driver(tmp_path, scripts=False)
    yield Reader(driver, _shots())
    driver.quit()


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a page into a file."""

    def to_file(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file
