"""The site in a browser: every page, light and dark, wide and narrow. Slow: `make test-all` runs it.

It needs mkdocs-material, selenium and Chromium with its driver, and builds the site first; a folder with a built one,
named by LINKSWEEP_SITE, saves that.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scale import at_scale

ROOT = Path(__file__).parents[2]
SCHEMES = {"light": "default", "dark": "slate"}
WIDTHS = (1280, 390)
WIDER = """
const page = document.documentElement;
if (page.scrollWidth <= page.clientWidth) return [];
return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > page.clientWidth + 1)
  .slice(0, 3).map(e => e.tagName + '.' + e.className + ': ' + (e.textContent || '').slice(0, 60));
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("LINKSWEEP_SITE"):
        return Path(os.environ["LINKSWEEP_SITE"])
    for package in ("material", "latex2mathml"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the site is built with {package}: pip install 'linksweep[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver: Any = pytest.importorskip(
        "selenium.webdriver", reason="selenium drives the browser: pip install selenium"
    )
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("there is no Chromium with its driver here: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


def pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")


def set_window(browser: Any, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    dark = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})


def asked_elsewhere(browser: Any, home: str) -> list[str]:
    """Addresses beyond the site that the page asked for."""
    import json

    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((home, "data:", "blob:", "about:", "chrome:")):
                found.append(url)
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page(browser: Any, site: Path, address: str, scheme: str):
    """No message in the console, no page wider than its window, nothing asked of the network."""
    wrong = []
    for page in pages(site)[:: at_scale(2, 1) if scheme == "light" else 6]:  # dark alone: a matter of the style sheet
        for width in WIDTHS:  # the page is loaded once, and then made narrow
            set_window(browser, width, scheme)
            if width == WIDTHS[0]:
                browser.get(f"{address}/{page}")
                # said to the page itself: what an earlier one kept in the browser's storage may come late
                browser.execute_script("document.body.dataset.mdColorScheme = arguments[0]", SCHEMES[scheme])
            wrong += [f"{page} is wider than {width}: {what}" for what in browser.execute_script(WIDER)]
        wrong += [f"{page}: {entry['message']}" for entry in browser.get_log("browser")]
        wrong += [f"{page} asks for {url}" for url in asked_elsewhere(browser, address)]
    assert not wrong, "\n".join(wrong)
    assert len(pages(site)) > 60


@pytest.mark.parametrize("from_disk", [False, True])
def test_search_finds(browser: Any, site: Path, address: str, from_disk: bool):
    """From a server, and from the disk, where browsers start no worker."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    set_window(browser, 1280, "light")
    browser.get(f"{site.resolve().as_uri()}/index.html" if from_disk else f"{address}/index.html")
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys("articulated inertia")
    results = ".md-search-result__item"
    WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.CSS_SELECTOR, results))
    assert "inertia" in browser.find_element(By.CSS_SELECTOR, results).get_attribute("textContent").lower()


def test_formulas_are_drawn(browser: Any, site: Path, address: str):
    """MathML takes place on the page; a browser that does not know it would leave a heap of letters."""
    set_window(browser, 1280, "light")
    browser.get(f"{address}/algorithms/papers.html")
    heights = browser.execute_script(
        "return [...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
    )
    assert len(heights) > 50 and min(heights) > 5
    assert browser.execute_script("return document.querySelector('math msup').getBoundingClientRect().width") > 5
