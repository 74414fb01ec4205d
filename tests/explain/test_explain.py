"""`robot.explain`: numbers as `details=True` has them, equations as the source has them, frames as it says."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots_for_tests import freely_moving, robot

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.explain import EXPLAINED, Explanation
from linksweep.explain.formula import equations, latex, mathml
from linksweep.explain.steps import CITES, PASSED, statements
from linksweep.functions.functions import FUNCTIONS
from linksweep.joints import KINDS
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import BASE, Inertial, Joint, Placement

ROBOTS = ("puma560", "stanford", "mixed5", "tree9", "urdf", "freely moving")
PAIRS = [(function, method) for function in EXPLAINED[:2] for method in FUNCTIONS[function].methods]
FACTORS = ("U", "U_plus", "columns", "d", "d_plus")  # triangular in the frame in which the recursion runs


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Details of so many robots without compiling them: tests/tracing/test_details.py compares with machine code."""
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")


def named(name: str) -> ls.Robot:
    return freely_moving() if name == "freely moving" else robot(name)


def sample(bot: ls.Robot, function: str, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    given = {"q": bot.random(random), "qd": random.uniform(-1, 1, bot.nv)}
    return given | {"tau" if function == "forward_dynamics" else "qdd": random.uniform(-1, 1, bot.nv)}


def both(bot: ls.Robot, function: str, method: str, **options: Any) -> tuple[Explanation, dict[str, np.ndarray]]:
    """What is explained, and what `details=True` says, of the same sample."""
    given = sample(bot, function)
    call = getattr(bot, function)
    _, details = call(*given.values(), method=method, details=True, **options)
    return bot.explain(function, method, **given, **options), dict(details)


# ---- numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "method"), PAIRS)
@pytest.mark.parametrize("name", ROBOTS)
def test_numbers_are_those_of_the_details(name: str, function: str, method: str):
    bot = named(name)
    if method not in bot.methods(function):
        with pytest.raises(ArgumentError, match="needs"):
            bot.explain(function, method)
        return
    found, details = both(bot, function, method)
    assert list(found.quantities) == list(details)
    for quantity, values in details.items():
        close(found.quantities[quantity], values, quantity)
    shown = {name for _, _, line in found.lines for name in line.values}
    # of the last frame; of all triples and pairs of joints; sums over links that only `details` computes
    missing = set(details) - shown - {"alpha_tip", "P", "I"} - {"P_k", "L_k", "P1", "P2", "P3"}
    assert not missing, f"{missing} are nowhere to be seen"
    for link, name, value in last_values(found):
        if name in details and name not in ("M", "T_bias", "T_free"):
            close(value, of_link(bot, name, details[name], link), f"{name} of {link}")


def last_values(found: Explanation) -> Iterator[tuple[str, str, np.ndarray]]:
    """What each link has in the end, under each name, in its own frame."""
    last = {
        (part.link, name): value
        for _, part, line in found.lines
        for name, value in line.values.items()
        if part.link and not part.of and line.frame == "link" and line.use != PASSED
    }
    yield from ((link, name, value) for (link, name), value in last.items())


def of_link(bot: ls.Robot, name: str, values: np.ndarray, link: str) -> np.ndarray:
    """The row of a link, or the rows of its rates, or its block of a matrix of rates."""
    row = bot.link_names.index(link)
    start = sum(freedoms(bot, before) for before in bot.link_names[:row])
    own = slice(start, start + freedoms(bot, link))
    if name == "D" and values.ndim == 2:
        return values[own, own]
    return values[own] if values.shape[0] == bot.nv and bot.nv != len(bot.link_names) else values[row]


def freedoms(bot: ls.Robot, link: str) -> int:
    (found,) = (each for each in bot.model.links if each.name == link)
    return KINDS[found.joint.kind].nv


def close(a: np.ndarray, b: np.ndarray, what: str) -> None:
    a, b = np.ravel(a), np.ravel(b)
    assert a.shape == b.shape, what
    assert np.abs(a - b).max(initial=0.0) <= 1e-11 * max(1.0, np.abs(b).max(initial=0.0)), what


@pytest.mark.slow
def test_options_are_explained_too():
    bot = robot("urdf")
    given = sample(bot, "inverse_dynamics")
    options: dict[str, Any] = {"f_ext": {"hand": [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]}, "dissipation": True}
    options["base_motion"] = np.linspace(-0.5, 0.5, 9)
    for function, method in (("inverse_dynamics", "kane"), ("forward_dynamics", "fd3")):
        found, details = both(bot, function, method, **options)
        close(found.result[1], next(iter(details.values())), function)
        assert {"f_ext", "base_motion"} <= set(found.given)
        assert any("dissipative_force" in line.statement.text for _, _, line in found.lines)
    zero = {"qdd": np.zeros(bot.nv)}
    torques = bot.explain("bias_forces", q=given["q"], qd=given["qd"]).result[1]
    close(torques, bot.inverse_dynamics(**{**given, **zero}), "bias forces")
    close(bot.explain("gravity_forces", "kane", q=given["q"]).result[1], bot.gravity_forces(given["q"]), "gravity")


def test_at_rest_the_first_link_passes_the_weight_on_to_the_base():
    """What goes on to the base is in the base's frame: it carries the robot."""
    bot = robot("puma560")
    q = bot.random(np.random.default_rng(3))
    for method in ("newton_euler", "boundary_value", "kane", "khalil_kleinfinger"):
        lines = [line for _, part, line in bot.explain("inverse_dynamics", method, q=q).lines if part.link == "link1"]
        (wrench,) = lines[-1].values.values()
        weight = -sum(link.inertial.mass for link in bot.model.links) * np.array(bot.gravity)
        close(wrench, np.concatenate([np.cross(bot.center_of_mass(q), weight), weight]), method)


# ---- frames --------------------------------------------------------------------------------------------------


def turned_links(bot: ls.Robot, turns: list[np.ndarray]) -> ls.Robot:
    """The same robot, the frame of each link turned by a rotation of its own."""
    links = []
    for link, turn in zip(bot.model.links, turns, strict=True):
        outer = np.eye(3) if link.parent == BASE else turns[link.parent]
        place, body = link.joint.placement, link.inertial
        placement = Placement(rows(outer.T @ np.array(place.rotation) @ turn), vector(outer.T @ place.position))
        inertia = turn.T @ np.array(body.inertia) @ turn
        joint = replace(link.joint, placement=placement, axis=vector(turn.T @ link.joint.axis))
        inertial = replace(body, com=vector(turn.T @ body.com), inertia=rows((inertia + inertia.T) / 2))
        links.append(replace(link, joint=joint, inertial=inertial))
    return ls.Robot(replace(bot.model, links=tuple(links)))


def vector(values: Any) -> Any:
    return tuple(float(x) for x in values)


def rows(values: Any) -> Any:
    return tuple(vector(row) for row in values)


@pytest.mark.parametrize(("function", "method"), PAIRS)
@pytest.mark.parametrize("name", ["mixed5", "tree9"])
def test_every_number_has_the_frame_that_is_said(name: str, function: str, method: str):
    """Turn the frames of the links, and vectors and matrices turn with those they are said to be in."""
    from scipy.spatial.transform import Rotation

    bot = robot(name)
    if method not in bot.methods(function):
        return
    turns = list(Rotation.from_quat(np.random.default_rng(1).normal(size=(len(bot.model.links), 4))).as_matrix())
    given = sample(bot, function)
    one = list(bot.explain(function, method, **given).lines)
    other = list(turned_links(bot, turns).explain(function, method, **given).lines)
    index = {link.name: k for k, link in enumerate(bot.model.links)}
    compared = 0
    for (_, part, line), (_, _, again) in zip(one, other, strict=True):
        assert line.statement is again.statement and line.frame == again.frame
        k = index.get(part.link, BASE)
        turn = {"link": k, "inner": bot.model.links[k].parent, "first": 0}.get(line.frame, BASE)
        for key, value in line.values.items():
            if not (method == "filter_smoother_ud" and key.rpartition(".")[2] in FACTORS):
                by = np.eye(3) if turn == BASE else turns[turn]
                close(again.values[key], seen_from(by, value), f"{key} of {part.link}: {line.statement.text}")
                compared += 1
    assert compared > 10


def seen_from(turn: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Vectors and matrices in a frame that is turned; numbers of joints stay as they are."""
    six = np.kron(np.eye(2), turn)
    if value.shape in ((3,), (6,)):
        return (turn if value.shape == (3,) else six).T @ value
    if value.shape in ((3, 3), (6, 6)):
        by = turn if value.shape == (3, 3) else six
        return by.T @ value @ by
    return value @ six if value.ndim == 2 and value.shape[1] == 6 else value


# ---- equations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_no_equation_is_left_out(function: str, method: str):
    """Every line with an equation, of every function that ran, is shown, or heads the sweep that it starts."""
    bot = robot("mixed5")
    found = bot.explain(function, method, **sample(bot, function), dissipation=True)
    shown = {line.equation for _, _, line in found.lines} | {stage.equation for stage in found.stages}
    called = {line.statement for _, _, line in found.lines}
    algorithm = FUNCTIONS[function].methods[method].algorithm
    module = sys.modules[getattr(algorithm, "func", algorithm).__module__]  # a form of it is a partial function
    known = set(statements(str(module.__file__)).values())
    cited = {s for s in known if CITES.search(s.comment) and s.targets and not isinstance(s.node, ast.AnnAssign)}
    assert len(cited) > 2 or method == "fd2"  # which is fd1, and more of it kept
    assert not {s.text for s in cited if s not in called and s.comment not in shown and not starts_a_sweep(s.node)}


def starts_a_sweep(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "sweep" for part in ast.walk(node))


def formula(code: str) -> str:
    (found,) = equations(ast.parse(code).body[0])
    assert mathml(found)
    return latex(found)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("V = link.phi_T(parent.V) + link.H_T @ qd", r"V = {\phi}^{T}\,{V}_{\mathrm{inner}} + {H}^{T}\,\dot{q}"),
        ("dw = a - (b - c)", r"\dot{\omega} = a - \left(b - c\right)"),
        ("z_plus = z + G @ innovation", r"{z}^{+} = z + G\,\mathrm{innovation}"),
        ("D = JointInertia(link.H_T, P_H, link.armature)", r"D = H\,P\,{H}^{T} + R"),
        ("hd = link.I_com @ at.dw + at.w.cross(link.I_com @ at.w)",
         r"\dot{h} = {I}_{c}\,\dot{\omega} + \omega\,\times\,\left({I}_{c}\,\omega\right)"),
        ("nu = D.solve(innovation)", r"\nu = {D}^{- 1}\,\mathrm{innovation}"),
        ("n = local_bias_acceleration(link, V_plus, qd)", r"n = {V}^{+}\,\times\,\left({H}^{T}\,\dot{q}\right)"),
        ("b = local_bias_force(link, at.V)", r"b = V\,\times^{*}\,\left(M\,V\right)"),
        ("P = link.phi(P_plus)", r"P = \phi\,{P}^{+}\,{\phi}^{T}"),
        ("z = (0.0,) * 6", r"z = \mathtt{(0.0,)\ *\ 6}"),
        ("x = [i for i in y if i_1]", r"x = \mathtt{[i\ for\ i\ in\ y\ if\ i\_1]}"),
        ("qdd = kept.nu - Span(free.G).transpose_times(carried)", r"\ddot{q} = \nu - {G}^{T}\,\mathrm{carried}"),
    ],
)  # fmt: skip
def test_formulas(code: str, wanted: str):
    assert formula(code) == wanted


# ---- symbols -------------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_symbols_give_the_same_numbers(function: str, method: str):
    sp = pytest.importorskip("sympy", reason="symbols are SymPy's: pip install sympy")
    bot = ls.robots.planar(2)
    if method == "filter_smoother_ud":
        with pytest.raises(ArgumentError, match="contains comparisons"):
            bot.explain(function, method, symbols=True, parameters=())
        return
    found = bot.explain(function, method, symbols=True, parameters=())
    given = sample(bot, function)
    names = [symbol for name in given for symbol in found.given[name]]
    assert [str(name) for name in names[:3]] == ["q1", "q2", "qd1"]
    values = dict(zip(names, np.concatenate(list(given.values())).tolist(), strict=True))
    numbers = bot.explain(function, method, **given)
    for (_, part, line), (_, _, again) in zip(found.lines, numbers.lines, strict=True):
        assert line.statement is again.statement
        for name, expressions in line.values.items():
            inserted = np.array([float(sp.sympify(x).subs(values)) for x in expressions.ravel()])
            close(inserted, again.values[name], f"{name} of {part.link}")
    dotted = r"\ddot{q}_{1}" if function == "inverse_dynamics" else r"\dot{q}_{1}"
    assert "sin(q2)" in str(found) and dotted in found.markdown()
    parsed(found.html())


def test_symbols_take_no_numbers_and_have_a_limit():
    pytest.importorskip("sympy", reason="symbols are SymPy's: pip install sympy")
    with pytest.raises(ArgumentError, match="takes no values, got qd"):
        ls.robots.planar(2).explain("inverse_dynamics", symbols=True, qd=[0.0, 0.0])
    with pytest.raises(ArgumentError, match="more than limit=500"):
        ls.robots.puma560().explain("inverse_dynamics", symbols=True, limit=500)
    found = ls.robots.planar(1).explain("inverse_dynamics", symbols=True, dissipation=True)
    assert "sin(q1)" in str(found) or "cos(q1)" in str(found)
    tau = ls.robots.planar(2).explain("gravity_forces", "kane", symbols=True, parameters=()).result[1]
    assert [str(x) for x in tau] == ["2943*cos(q1)/200 + 981*cos(q1 + q2)/200", "981*cos(q1 + q2)/200"]


# ---- what is shown -------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Checks that tags are closed as they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "br", "mspace"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    return tags


@pytest.mark.quick
def test_as_text():
    found = ls.robots.planar(2).explain("inverse_dynamics", method="kane", q=[0.3, 0.5], qd=[1, 2], qdd=[0.1, 0.2])
    text = str(found)
    assert "Inverse dynamics of planar2 by kane" in text and "J. Angeles, O. Ma and A. Rojas" in text
    assert "    (12)               w = w_inner + rate.angular\n                       w = [0 0 1]\n" in text
    assert "w       angular velocity\n" in text and text.endswith("Result:\n  tau = [15.9663 3.80094]\n")
    assert max(map(len, text.splitlines())) < 160 and "-0 " not in text
    assert "kane" in repr(found) and "\n" not in repr(found)


def test_in_a_notebook_and_as_a_page(tmp_path: Path):
    bot = robot("mixed5")
    found = bot.explain("forward_dynamics", **sample(bot, "forward_dynamics"))
    for html in (found.html(), found._repr_html_()):
        tags = parsed(html)
        assert {"math", "mover", "msup", "table", "details"} <= tags.seen and "script" not in tags.seen
        assert "http" not in html and "(38), (3.49)" in tags.text
    assert found._repr_latex_().startswith("$$\\begin{array}") and r"{H}^{T}\,\dot{q}" in found._repr_latex_()
    for ending in ("html", "md", "txt"):
        found.save(tmp_path / f"a.{ending}")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == found.html()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == str(found)
    markdown = (tmp_path / "a.md").read_text(encoding="utf-8")
    assert markdown.count("$$") % 2 == 0 and r"\begin{bmatrix}" in markdown and "## Symbols" in markdown
    with pytest.raises(ArgumentError, match=r"expected \.html, \.md or \.txt"):
        found.save(tmp_path / "a.pdf")


def test_one_link_alone():
    bot = robot("puma560")
    found = bot.explain("inverse_dynamics", q=bot.neutral()).of("link3")
    assert {part.link for _, part, _ in found.lines} == {"link3"}
    assert "link3 (joint joint3, revolute, on link2)" in str(found) and "link4" not in str(found)
    with pytest.raises(ArgumentError, match="did you mean 'link3'"):
        found.of("lnk3")


def test_names_are_no_markup():
    bot = ls.robots.planar(1)
    (link,) = bot.model.links
    joint = replace(link.joint, name="<b>$x$</b>")
    odd = ls.Robot(replace(bot.model, name="<script>alert(1)</script>", links=(replace(link, joint=joint),)))
    found = odd.explain("inverse_dynamics")
    tags = parsed(found.html())
    assert not {"script", "b"} & tags.seen and "<script>alert(1)</script>" in tags.text
    assert "\\<script\\>" in found.markdown() and "<script>" not in found.markdown()


@pytest.mark.slow
def test_a_long_robot_and_the_trace_of_a_debugger():
    bot = ls.robots.chain(300)

    def debugger(frame: Any, event: str, arg: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        found = bot.explain("inverse_dynamics", q=np.full(300, 0.1))
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert sum(1 for _ in found.lines) > 300 * 8
    parsed(found.html())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"function": "inverse_dynamic"}, "did you mean 'inverse_dynamics'"),
        ({"function": "mass_matrix"}, "expected one of inverse_dynamics"),
        ({"function": 3}, "expected one of inverse_dynamics"),
        ({"function": "inverse_dynamics", "method": "kan"}, "did you mean 'kane'"),
        ({"function": "inverse_dynamics", "q": [0.1]}, "q has shape"),
        ({"function": "inverse_dynamics", "q": "abc"}, "expected finite numbers"),
        ({"function": "inverse_dynamics", "q": np.zeros((2, 6))}, "for one sample"),
        ({"function": "inverse_dynamics", "qd": [np.nan] * 6}, "expected finite numbers"),
        ({"function": "inverse_dynamics", "tau": np.zeros(6)}, "takes q, qd, qdd, got tau"),
        ({"function": "gravity_forces", "qd": np.zeros(6)}, "takes q, got qd"),
        ({"function": "inverse_dynamics", "f_ext": {"tol": np.zeros(6)}}, "did you mean 'tool'"),
        ({"function": "inverse_dynamics", "f_ext": np.zeros(6)}, "f_ext has shape"),
        ({"function": "inverse_dynamics", "dissipation": "yes"}, "expected True or False"),
    ],
)
def test_bad_input_is_one_sentence(words: dict[str, Any], said: str):
    with pytest.raises(ArgumentError, match=said) as caught:
        ls.robots.puma560().explain(**words)
    assert "\n" not in str(caught.value)


def test_division_by_zero_is_a_sentence():
    """Quaternions without length, and a ball on a thread that hangs in the axis of the joint that would turn it."""
    floating = freely_moving()
    with pytest.raises(ArgumentError, match="divides by 0"):
        floating.explain("inverse_dynamics", q=np.zeros(floating.nq))
    ball = Inertial(1.0)  # a point
    parts = [
        Part("fork", "base", Joint("turn", "revolute", axis=(0.0, 0.0, 1.0)), measured=True),
        Part("slide", "fork", Joint("out", "prismatic", axis=(1.0, 0.0, 0.0)), ball, measured=True),
    ]
    bot = ls.Robot(assemble("ball", parts, base="base"))
    assert np.isfinite(bot.explain("forward_dynamics", q=[0.0, 0.5]).result[1]).all()
    with pytest.raises(ArgumentError, match="divides by 0"):
        bot.explain("forward_dynamics", q=[0.0, 0.0])


# ---- the command ---------------------------------------------------------------------------------------------


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "linksweep", "explain", *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_the_command(tmp_path: Path):
    run = command("puma560", "--method", "kane", "--q", "0.1,0.2,0.3,0.4,0.5,0.6", "--link", "link2", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "(53)" in run.stdout and "link2 (joint" in run.stdout and "link3 (joint" not in run.stdout
    run = command("puma560", "forward_dynamics", "-o", "page.html", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "wrote page.html\n"), run.stderr
    parsed((tmp_path / "page.html").read_text(encoding="utf-8"))
    for words, said in (
        (("puma560", "--q", "a,b"), "expected numbers separated by commas"),
        (("puma560", "--q", "1,2"), "expected finite numbers of shape (6,)"),
        (("puma560", "-o", "page.pdf"), "expected .html, .md or .txt"),
        (("puma560", "nothing"), "expected one of inverse_dynamics"),
    ):
        run = command(*words, cwd=tmp_path)
        assert run.returncode == 2 and said in run.stderr and run.stderr.count("\n") == 1, run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html"]


def test_constraints_are_not_explained():
    bars = ls.robots.four_bars(1)
    with pytest.raises(ls.ArgumentError, match="solved for all links together"):
        bars.explain("forward_dynamics", method="closed_chain")
    assert list(bars.without_constraints().explain("forward_dynamics").lines)
