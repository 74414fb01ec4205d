"""Chromium drives the viewer: pages of Panda, Talos and the PUMA, sliders, a motion that plays, clicks into plots.

The page itself is asked where it has drawn a link; that must be where the robot's own `pose` has it, to 1e-6.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning

pytest.importorskip("viser", reason="the viewer is built on viser: pip install viser")
pytest.importorskip("selenium", reason="the page is driven by selenium: pip install selenium")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip(
        "chromium and chromedriver are not installed (Debian: chromium chromium-driver)", allow_module_level=True
    )

from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import TimeoutException, WebDriverException  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from linksweep.viewer import Viewer, show  # noqa: E402

BAR = 1e-6
PATIENCE = 240.0  # seconds: the page is drawn without graphics hardware, on machines with other things to do
FLAGS = (
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1100,700", "--use-gl=angle",
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
)  # fmt: skip
POSE = """
const nodes = window.__viserMutable ? window.__viserMutable.nodeRefFromName : {};
const node = nodes[arguments[0]];
if (!node || !nodes[""]) return null;
node.updateWorldMatrix(true, false);
return [nodes[""].matrixWorld.elements, node.matrixWorld.elements];
"""


class Page:
    """A browser on a page of the viewer."""

    def __init__(self, folder: Path):
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(PATIENCE)
        self.driver.set_page_load_timeout(PATIENCE)
        # selenium's own client gives up after a while; a page that draws slowly is not one that hangs
        executor: Any = self.driver.command_executor
        executor.client_config.timeout = PATIENCE

    def open(self, viewer: Viewer) -> None:
        """Load the page, and wait until every link is there."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(viewer.url)
        links = [viewer.first.node(link) for link in viewer.first.robot.link_names]
        until(lambda: all(self.pose(link) is not None for link in (links[0], links[-1])))

    def pose(self, node: str) -> np.ndarray | None:
        """Where the page draws a node, (4, 4) in the world."""
        try:
            found = self.driver.execute_script(POSE, node)
        except TimeoutException:
            return None
        if found is None:
            return None
        root, own = (np.array(entries, dtype=float).reshape(4, 4).T for entries in found)
        return np.linalg.solve(root, own)

    def miss(self, viewer: Viewer) -> float:
        """How far the farthest link in the page is from where `robot.pose` has it, with the robot's present q."""
        shown, far = viewer.first, 0.0
        q = shown.q
        for link in shown.robot.link_names:
            pose = self.pose(shown.node(link))
            if pose is None or not np.array_equal(q, shown.q):
                return np.inf
            far = max(far, float(np.abs(pose - shown.robot.pose(q, link)).max()))
        return far

    def find(self, selector: str) -> list[Any]:
        return [element for element in self.driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]

    def press(self, text: str) -> None:
        """Click the button with this text."""
        wanted: list[Any] = []

        def found() -> bool:
            wanted[:] = [button for button in self.find("button") if button.text.strip() == text]
            return bool(wanted)

        until(found)
        wanted[0].click()

    def tab(self, text: str) -> None:
        """Open the tab with this name."""
        until(lambda: any(tab.text.strip() == text for tab in self.find("[role=tab]")))
        next(tab for tab in self.find("[role=tab]") if tab.text.strip() == text).click()

    def check(self, label: str) -> None:
        """Click the box with this label."""
        boxes: list[Any] = []

        def found() -> bool:
            path = f"//label[normalize-space()='{label}']/ancestor::*[.//input[@type='checkbox']][1]//input"
            boxes[:] = self.driver.find_elements(By.XPATH, path)
            return bool(boxes)

        until(found)
        self.driver.execute_script("arguments[0].click()", boxes[0])

    def poses(self, *nodes: str) -> list[np.ndarray] | None:
        """Where the page draws several nodes in the same frame, each (4, 4) in the world."""
        code = f"return arguments[0].map((name) => (function () {{{POSE}}})(name));"
        drawn = self.driver.execute_script(code, list(nodes))
        if any(pair is None for pair in drawn):
            return None
        roots, own = np.array(drawn, dtype=float).reshape(len(nodes), 2, 4, 4).transpose(1, 0, 3, 2)
        return list(np.linalg.solve(roots, own))

    def type(self, label: str, value: str) -> None:
        """Write a number beside the slider with this label (not -0.5: the page turns "-0" into 0 as it is typed)."""
        inputs: list[Any] = []

        def found() -> bool:
            path = f"//label[normalize-space()='{label}']/ancestor::*[.//input[@type='text']][1]//input[@type='text']"
            inputs[:] = [each for each in self.driver.find_elements(By.XPATH, path) if each.is_displayed()]
            return bool(inputs)

        until(found)
        inputs[0].send_keys(Keys.CONTROL, "a")
        inputs[0].send_keys(value, Keys.TAB)

    def connected(self, on: bool) -> None:
        """Give the page a network, or none."""
        rate = -1 if on else 0
        conditions = {"offline": not on, "latency": 0, "downloadThroughput": rate, "uploadThroughput": rate}
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def complaints(self) -> list[str]:
        """Errors in the page's console."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if reached():
                return
        except WebDriverException:  # an element went while it was looked at
            pass
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    one = Page(tmp_path_factory.mktemp("chromium"))
    yield one
    one.driver.quit()


def keep(page: Page, name: str) -> None:
    """A picture to look at, where LINKSWEEP_PICTURES names a folder."""
    folder = os.environ.get("LINKSWEEP_PICTURES")
    if folder:
        for _ in range(5):
            try:
                page.driver.save_screenshot(str(Path(folder) / f"{name}.png"))
                return
            except WebDriverException:
                time.sleep(1.0)


def example(name: str) -> ls.Robot:
    from oracles import FILES

    path = next(path for key, path in FILES.items() if str(key).endswith(name) or str(path).endswith(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(path)


def shown(robot: ls.Robot, *arguments: Any, **options: Any) -> Viewer:
    return show(robot, *arguments, port=0, browser=False, plain=True, **options)


def drive(page: Page, robot: ls.Robot, joint: str, value: float) -> None:
    """Open a robot, move one slider, and see the page follow."""
    with shown(robot, robot.random(np.random.default_rng(0)) * 0.3) as viewer:
        page.open(viewer)
        until(lambda: page.miss(viewer) < BAR)
        place = list(robot.joint_names).index(joint)
        before = viewer.q
        page.type(joint, f"{value:.3f}")
        until(lambda: bool(abs(viewer.q[place] - value) < 1e-9))
        until(lambda: page.miss(viewer) < BAR)
        others = np.delete(np.arange(robot.nq), place)
        assert np.array_equal(viewer.q[others], before[others])
        keep(page, robot.name)
        assert page.complaints() == []


def test_puma_moves_with_its_slider(page: Page):
    drive(page, ls.robots.puma560(), "joint2", -1.234)


@pytest.mark.slow
def test_limits_hold_in_the_page(page: Page):
    robot = ls.robots.planar(2)
    from dataclasses import replace

    from linksweep.model.model import Limits

    links = tuple(
        replace(link, joint=replace(link.joint, limits=Limits(-0.5, 0.7654321))) for link in robot.model.links
    )
    with shown(ls.Robot(replace(robot.model, links=links)), [0.1, 0.2]) as viewer:
        page.open(viewer)
        page.type("joint2", "3")
        until(lambda: bool(viewer.q[1] == 0.7654321))
        until(lambda: page.miss(viewer) < BAR)


@pytest.mark.slow
def test_a_run_plays_and_a_click_into_the_plot_seeks(page: Page):
    robot = ls.robots.puma560()
    law = ls.simulation.PD(np.zeros(6), 100.0, 20.0)
    run = ls.simulate(robot, [0.3, -0.8, 0.3, 0.2, 0.6, 0.0], torque=law, duration=3.0, every=5)
    with run.show(port=0, browser=False, plain=True) as viewer:
        page.open(viewer)
        until(lambda: page.miss(viewer) < BAR)
        controls = viewer.time
        assert controls is not None
        page.press("play")
        until(lambda: controls.playing and controls.time > 0.2)
        page.press("pause")
        until(lambda: not controls.playing)
        until(lambda: page.miss(viewer) < BAR)
        until(lambda: bool(page.find(".u-over .linksweep-mark")))
        plot = page.find(".u-over")[0]
        for share in (0.25, 0.75):
            ActionChains(page.driver).move_to_element_with_offset(
                plot, round((share - 0.5) * plot.size["width"]), 10
            ).click().perform()
            wanted = share * run.t[-1]
            until(lambda wanted=wanted: abs(controls.time - wanted) < 0.03)
            until(lambda: page.miss(viewer) < BAR)
            until(lambda wanted=wanted: abs(_marked(page) - wanted) < 0.03)
        assert np.abs(viewer.q - viewer.motion.q_at(0, controls.time)).max() < 1e-12  # pyright: ignore
        keep(page, "run")
        assert page.complaints() == []


def _marked(page: Page) -> float:
    """The time at which the line stands in the plot, from where it is drawn."""
    return float(
        page.driver.execute_script(
            "const chart = Object.values(window.__viserTestpoints.uplots)[0].chart;"
            "const mark = chart.over.querySelector('.linksweep-mark').getBoundingClientRect();"
            "return chart.posToVal(mark.left + 1 - chart.over.getBoundingClientRect().left, 'x');"
        )
    )


@pytest.mark.slow
def test_a_recording_plays_without_python_and_network(page: Page, tmp_path: Path):
    robot = ls.robots.puma560()
    t = np.linspace(0.0, 2.0, 50)
    q = np.linspace(np.zeros(6), np.full(6, 0.5), 50)
    with shown(robot, q, t) as viewer:
        viewer.record(tmp_path / "run.html", fps=30)
        node, end = viewer.first.node("link6"), robot.pose(q[-1], "link6")
        start = robot.pose(q[0], "link6")
    page.driver.get("about:blank")
    page.driver.get_log("browser")
    page.connected(False)
    try:
        page.driver.get((tmp_path / "run.html").as_uri())
        seen: list[np.ndarray] = []

        def moved() -> bool:
            pose = page.pose(node)
            if pose is not None:
                seen.append(pose)
            return len(seen) > 3 and max(np.abs(pose - seen[0]).max() for pose in seen) > 0.02

        until(moved)
        span = np.abs(end - start).max()
        assert all(np.abs(pose - start).max() <= span + BAR for pose in seen)
        assert page.complaints() == []
    finally:
        page.connected(True)


@pytest.mark.slow
def test_a_picture_is_drawn_by_the_open_page(page: Page, tmp_path: Path):
    import imageio.v3 as imageio

    with shown(ls.robots.puma560()) as viewer:
        page.open(viewer)
        until(lambda: bool(viewer.scene.server.get_clients()))
        viewer.screenshot(tmp_path / "puma.png", 400, 300)
        pixels = imageio.imread(tmp_path / "puma.png")
        assert pixels.shape == (300, 400, 3) and pixels.std() > 5.0
        viewer.screenshot(tmp_path / "clear.png", 400, 300, transparent=True)
        assert imageio.imread(tmp_path / "clear.png").shape == (300, 400, 4)


CONNECT = """
const done = arguments[arguments.length - 1];
const socket = new WebSocket(arguments[0], [arguments[1]]);
socket.onmessage = () => { socket.close(); done("read"); };
socket.onerror = () => done("refused");
"""


@pytest.mark.slow
def test_a_page_of_another_origin_cannot_connect(page: Page, tmp_path: Path):
    """With the token and without; the viewer's own page can, and the page of another port or of a file cannot."""
    import functools
    import http.server
    import threading

    import viser

    (tmp_path / "index.html").write_text("<title>evil</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with shown(ls.robots.puma560()) as viewer, http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        address = viewer.url.replace("http://", "ws://").rstrip("/")
        without = address.rpartition("/")[0]
        protocol = f"viser-v{viser.__version__}"
        for place in (f"http://127.0.0.1:{other.server_port}/", (tmp_path / "index.html").as_uri()):
            page.driver.get(place)
            for target in (address, without):
                assert page.driver.execute_async_script(CONNECT, target, protocol) == "refused"
        assert not viewer.scene.server.get_clients()
        page.open(viewer)
        assert page.driver.execute_async_script(CONNECT, address, protocol) == "read"
        assert page.driver.execute_async_script(CONNECT, without, protocol) == "refused"
        other.shutdown()


@pytest.mark.slow
def test_a_picture_is_drawn_by_a_browser_of_its_own(tmp_path: Path):
    import imageio.v3 as imageio

    with shown(ls.robots.stanford()) as viewer:
        viewer.screenshot(tmp_path / "stanford.png", 400, 300)
    assert imageio.imread(tmp_path / "stanford.png").std() > 5.0


@pytest.mark.slow
def test_panda_with_its_meshes(page: Page):
    robot = example("panda.urdf")
    with shown(robot) as viewer:
        assert viewer.scene.meshes.triangles > 100_000
    drive(page, robot, "panda_joint4", -1.5)


@pytest.mark.slow
def test_talos_with_its_meshes(page: Page):
    drive(page, example("talos_reduced.urdf"), "arm_left_4_joint", -1.1)


@pytest.mark.slow
def test_the_handle_is_at_the_tool_of_a_run_and_of_the_sliders(page: Page):
    robot = ls.robots.puma560()
    with shown(robot, [0.3, -0.8, 0.3, 0.2, 0.6, 0.0]) as viewer:
        nodes = (viewer.first.node("link6"), f"/robots/{viewer.first.name}/target")
        start = viewer.q
        on_link = np.linalg.solve(robot.pose(start, "link6"), robot.pose(start, viewer.overlays.frame))
        page.open(viewer)
        page.tab("Live")
        page.press("Simulate")
        until(lambda: viewer.running and viewer.live is not None and viewer.live.t > 0.1)
        page.check("drag frame")
        until(lambda: page.pose(nodes[1]) is not None)
        page.tab("Joints")
        page.type("joint3", "1.5")  # the target; the robot follows
        seen: list[np.ndarray] = []

        def follows() -> bool:
            """In several frames of the page, with the tool in different places."""
            poses = page.poses(*nodes)
            assert poses is not None
            if np.abs(poses[0] @ on_link - poses[1]).max() < BAR:
                seen.append(poses[1][:3, 3])
            return len(seen) > 3 and bool(np.ptp([robot.pose(start, "tool")[:3, 3], *seen], axis=0).max() > 0.2)

        until(follows)
        keep(page, "handle_run")
        page.tab("Live")
        page.press("Stop")
        until(lambda: not viewer.running)
        page.tab("Joints")
        page.type("joint2", "-1.234")
        until(lambda: bool(abs(viewer.q[1] + 1.234) < 1e-9))
        tool = robot.pose(viewer.q, viewer.overlays.frame)
        until(lambda: bool(np.abs(page.poses(nodes[1])[0] - tool).max() < BAR))  # pyright: ignore
        keep(page, "handle_sliders")
        assert page.complaints() == []


@pytest.mark.slow
def test_eight_rollouts_are_side_by_side(page: Page):
    robot = ls.robots.puma560()
    starts = np.random.default_rng(0).uniform(-1.0, 1.0, (8, 6))
    run = ls.simulate(robot, starts, torque=ls.simulation.PD(np.zeros(6), 100.0, 20.0), duration=1.0, every=20)
    with run.show(port=0, browser=False, plain=True) as viewer:
        page.open(viewer)
        bases = [shown.node("base") for shown in viewer.robots]
        until(lambda: page.poses(*bases) is not None)
        viewer.seek(0.5)
        drawn = np.array([pose[:3, 3] for pose in page.poses(*bases)])  # pyright: ignore[reportOptionalIterable]
        apart = np.linalg.norm(drawn[:, None] - drawn[None], axis=2) + 1e3 * np.eye(8)
        assert apart.min() > (1.0 - BAR) * viewer.first.extent
        tips = [shown.node("link6") for shown in viewer.robots]
        places = np.array([shown.world("link6") for shown in viewer.robots])
        until(lambda: bool(np.abs(np.array(page.poses(*tips)) - places).max() < BAR))
        keep(page, "rollouts")
        assert page.complaints() == []


@pytest.mark.slow
def test_an_undriven_panda_stays_in_the_page_for_a_minute(page: Page):
    """60 simulated seconds; all but the last are stepped faster than the page would, and then it goes on by itself."""
    from linksweep.viewer import live

    with shown(example("panda.urdf")) as viewer:
        page.open(viewer)
        viewer.controls.drive.value = "unactuated"
        page.tab("Live")
        page.press("Simulate")
        until(lambda: viewer.running)
        until(lambda: viewer.live is not None and viewer.live.t > 1.0)
        simulation = viewer.live
        assert simulation is not None
        while simulation.t < 59.0:
            with viewer.scene.lock:
                for _ in range(20):
                    simulation.advance(live.LONGEST)
            assert viewer.running
        until(lambda: simulation.t > 60.0)
        assert viewer.running and np.isfinite(viewer.q).all() and np.abs(simulation.qd).max() < 1.0
        page.press("Stop")
        until(lambda: page.miss(viewer) < BAR)
        keep(page, "panda_after_a_minute")
        assert page.complaints() == []


SHOWN_TIMES = """
const thumb = document.getElementById(document.getElementById("linksweep-now").dataset.slider)
  .querySelector("[role=slider]");
const chart = Object.values(window.__viserTestpoints.uplots)[0].chart;
const mark = chart.over.querySelector(".linksweep-mark").getBoundingClientRect();
return [parseFloat(thumb.getAttribute("aria-valuenow")),
        chart.posToVal(mark.left + 1 - chart.over.getBoundingClientRect().left, "x")];
"""


@pytest.mark.slow
def test_slider_and_plots_show_the_same_time_under_load(page: Page):
    """Whenever the page is looked at, while it plays and two threads keep the processors busy."""
    import threading

    robot = ls.robots.puma560()
    t = np.linspace(0.0, 20.0, 2001)
    q = np.sin(t)[:, None] * np.ones(6)
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            sum(range(1000))

    with shown(robot, q, t, tau=q) as viewer:
        page.open(viewer)
        until(lambda: bool(page.find(".u-over .linksweep-mark")))
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        try:
            viewer.play()
            seen: list[tuple[float, float]] = []

            def enough() -> bool:
                seen.append(page.driver.execute_script(SHOWN_TIMES))
                return len({slider for slider, _ in seen}) > 15

            until(enough)
        finally:
            done.set()
        slider, plot = np.array(seen, dtype=float).T
        assert np.abs(slider - plot).max() < 1e-3 and np.ptp(slider) > 0.5
        assert page.complaints() == []
