"""Broken descriptions made from real ones, and what becomes of them; run as a program by test_mutations.py.

    python mutations.py FIRST LAST        mutants FIRST..LAST-1; one line of JSON for each

Mutant k is the same in every run. Each is loaded from a file as users do: it must be refused with one sentence, or be a
robot whose inverse dynamics is finite (or refused with one sentence), within 2 s of processor time. A busy machine is
no hang, and what waits for ever is ended by whoever started this.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT = 20.0  # seconds of processor time for a mutant: more is a hang
URDFS = (
    "ur_description/urdf/ur5_robot.urdf", "panda_description/urdf/panda.urdf", "kinova_description/robots/kinova.urdf",
    "solo_description/robots/solo12.urdf", "so_arm_description/urdf/so100.urdf", "iris_description/robots/iris.urdf",
    "double_pendulum_description/urdf/double_pendulum.urdf", "z1_description/urdf/z1.urdf",
    "hector_description/robots/quadrotor_base.urdf", "finger_edu_description/robots/finger_edu.urdf",
    "quadruped_description/urdf/quadruped.urdf", "ur_description/urdf/ur3_gripper.urdf",
    "talos_data/robots/talos_left_arm.urdf", "bolt_description/robots/bolt.urdf",
)  # fmt: skip
ODD_NUMBERS = (
    "1e308", "-1e308", "1e400", "nan", "-inf", "inf", "-0", "0", "1e-320", "9" * 400, "1e29", "-1e15", "1e15", "0x10",
    "1,5", "--1", "1e", "", " ", "١", "1_0", "true", "1 2 3", "1e999999999",
)  # fmt: skip
BOMB = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
OUTSIDE = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])", re.IGNORECASE)
ATTRIBUTE = re.compile(r'([\w:]+)="([^"]*)"')
ELEMENT = re.compile(r"<(\w+)\b[^<>]*/>|<(\w+)\b[^<>]*>.*?</\2>", re.DOTALL)

Mutation = Callable[[random.Random, str], str | bytes]


# ---- of any text -------------------------------------------------------------------------------------------


def truncated(rng: random.Random, text: str) -> bytes:
    data = text.encode()
    return data[: rng.randrange(len(data))]


def flipped_bytes(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 2, 8, 64))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def flipped_bits(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 3))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut_out(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text))
    return text[:start] + text[start + rng.choice((1, 10, 200, 2000)) :]


def lines_swapped(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def line_deleted(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def line_repeated(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    line = rng.choice(lines)
    lines[rng.randrange(len(lines)) : 0] = [line] * rng.choice((1, 2, 1000))
    return "".join(lines)


def odd_number(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 3))):
        text = _replaced(rng, NUMBER, text, lambda match: rng.choice(ODD_NUMBERS))
    return text


def scaled_number(rng: random.Random, text: str) -> str:
    def change(match: re.Match[str]) -> str:
        return repr(float(match[0]) * rng.choice((-1.0, 1e-30, 1e-9, 1e9, 1e25, 1e29)))

    for _ in range(rng.choice((1, 2, 10))):
        text = _replaced(rng, NUMBER, text, change)
    return text


def numbers_swapped(rng: random.Random, text: str) -> str:
    found = list(NUMBER.finditer(text))
    return _swapped(text, rng.sample(found, 2)) if len(found) > 1 else text


# ---- of XML -------------------------------------------------------------------------------------------------


def values_swapped(rng: random.Random, text: str) -> str:
    return _swapped(text, rng.sample(list(ATTRIBUTE.finditer(text)), 2), group=2)


def attribute_deleted(rng: random.Random, text: str) -> str:
    return _replaced(rng, ATTRIBUTE, text, lambda match: "")


def attribute_changed(rng: random.Random, text: str) -> str:
    odd = ("", " ", "x" * 100_000, "${x}", "&#10;", "\u0000", "&lt;", "a b", "nan nan nan", "1e300 1e300 1e300")
    return _replaced(rng, ATTRIBUTE, text, lambda match: f'{match[1]}="{rng.choice(odd)}"')


def element_deleted(rng: random.Random, text: str) -> str:
    return _replaced(rng, _elements(rng), text, lambda match: "")


def element_repeated(rng: random.Random, text: str) -> str:
    return _replaced(rng, _elements(rng), text, lambda match: match[0] * rng.choice((2, 2, 50)))


def other_parent(rng: random.Random, text: str) -> str:
    """A loop, a second parent, a link that hangs on itself."""
    links = re.findall(r'<link\s[^>]*name="([^"]*)"', text) or ["x"]
    ends = re.compile(r'<(parent|child)\s+link="[^"]*"')
    for _ in range(rng.choice((1, 2))):
        text = _replaced(rng, ends, text, lambda match: f'<{match[1]} link="{rng.choice(links)}"')
    return text


def same_name(rng: random.Random, text: str) -> str:
    names = re.findall(r'<(?:link|joint)\s[^>]*name="([^"]*)"', text) or ["x"]
    tag = re.compile(r'(<(?:link|joint)\s[^>]*)name="[^"]*"')
    return _replaced(rng, tag, text, lambda match: f'{match[1]}name="{rng.choice(names)}"')


def second_root(rng: random.Random, text: str) -> str:
    extra = '<link name="lonely"/>' * rng.choice((1, 2))
    return text.replace("</robot>", extra + "</robot>")


def other_type(rng: random.Random, text: str) -> str:
    kinds = ("floating", "planar", "spherical", "fixed", "continuous", "prismatic", "revolute", "Revolute", "screw")
    for _ in range(rng.choice((1, 3))):
        text = _replaced(rng, re.compile(r'type="\w+"'), text, lambda match: f'type="{rng.choice(kinds)}"')
    return text


def other_axis(rng: random.Random, text: str) -> str:
    axes = ("0 0 0", "1e-12 0 0", "1 1 1", "1e29 1e29 1e29", "1e200 0 0", "0 0", "1 0 0 0", "nan 0 1", "-0 -0 -1")
    return _replaced(rng, re.compile(r"<axis[^>]*/>"), text, lambda match: f'<axis xyz="{rng.choice(axes)}"/>')


def bomb(rng: random.Random, text: str) -> str:
    head = rng.choice((BOMB, OUTSIDE, "<!DOCTYPE robot>"))
    use = rng.choice(("&i;", "&x;", ""))
    body = re.sub(r"<\?xml.*?\?>", "", text, flags=re.DOTALL)
    return head + _replaced(rng, ATTRIBUTE, body, lambda match: f'{match[1]}="{use}"')


def mimicking(rng: random.Random, text: str) -> str:
    joints = re.findall(r'<joint\s[^>]*name="([^"]*)"', text) or ["x"]
    for _ in range(rng.choice((1, 2, 4))):
        law = f'<mimic joint="{rng.choice(joints)}" multiplier="{rng.choice(("-1", "0", "x", "1e29"))}"/>'
        text = _replaced(rng, re.compile("</joint>"), text, lambda match, law=law: law + match[0])
    return text


def deep(rng: random.Random, text: str) -> str:
    depth = rng.choice((10, 190, 100_000))
    return text.replace("</robot>", "<a>" * depth + "</a>" * depth + "</robot>")


# ---- of TOML ------------------------------------------------------------------------------------------------


def value_changed(rng: random.Random, text: str) -> str:
    odd = (
        "nan", "-inf", "true", '"x"', "[]", "[[1]]", "{}", "1979-05-27", '"""\n"""', "9" * 5000, "[" * 5000, "1e400",
        "{a=" * 200 + "1" + "}" * 200, "'P'", '"R"', "-1", "[1, 2]", "[nan, 0, 0]", "[1e29, 1e29, 1e29]", '"\\n"',
    )  # fmt: skip
    line = re.compile(r"^(\w+) *= *[^\n]*$", re.MULTILINE)
    return _replaced(rng, line, text, lambda match: f"{match[1]} = {rng.choice(odd)}")


def key_changed(rng: random.Random, text: str) -> str:
    keys = ("mass", "alpha", "name", "link", "links", "base", "tool", "é", '"a b"', "a.b", "convention", "angles")
    return _replaced(rng, re.compile(r"^\w+(?= *=)", re.MULTILINE), text, lambda match: rng.choice(keys))


def table_repeated(rng: random.Random, text: str) -> str:
    blocks = text.split("[[links]]")
    blocks[1:1] = [rng.choice(blocks[1:])] * rng.choice((1, 3))
    return "[[links]]".join(blocks)


COMMON: tuple[Mutation, ...] = (
    truncated, flipped_bytes, flipped_bits, cut_out, lines_swapped, line_deleted, line_repeated, odd_number,
    scaled_number, numbers_swapped,
)  # fmt: skip
OF_XML: tuple[Mutation, ...] = (
    values_swapped, attribute_deleted, attribute_changed, element_deleted, element_repeated, other_parent, same_name,
    second_root, other_type, other_axis, bomb, mimicking, deep,
)  # fmt: skip
OF_TOML: tuple[Mutation, ...] = (value_changed, key_changed, table_repeated)


def _replaced(rng: random.Random, pattern: re.Pattern[str], text: str, new: Callable[[re.Match[str]], str]) -> str:
    """`text` with one match of the pattern, chosen at random, replaced."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + new(match) + text[match.end() :]


def _swapped(text: str, matches: list[re.Match[str]], group: int = 0) -> str:
    (i, j), (k, m) = sorted(match.span(group) for match in matches)
    return text[:i] + text[k:m] + text[j:k] + text[i:j] + text[m:]


def _elements(rng: random.Random) -> re.Pattern[str]:
    if rng.random() < 0.5:
        return ELEMENT
    tag = rng.choice(("joint", "link", "inertial", "parent", "child", "limit", "mass", "inertia"))
    return re.compile(rf"<{tag}\b[^<>]*/>|<{tag}\b[^<>]*>.*?</{tag}>", re.DOTALL)


# ---- what becomes of them -----------------------------------------------------------------------------------


def sources() -> dict[str, list[str]]:
    """The files to start from, by suffix; of gymnasium's MJCF files those that stand alone, without meshes."""
    from linksweep.model.formats import bundled as robots

    urdf = [
        Path(str(file.locate())).read_text(encoding="utf-8")
        for file in importlib.metadata.files("example-robot-data") or []
        if str(file).endswith(URDFS)
    ]
    assert len(urdf) == len(URDFS)
    folder = Path(robots.__file__).parent
    toml = [(folder / f"{name}.toml").read_text(encoding="utf-8") for name in robots.names()]
    files = (str(file.locate()) for file in importlib.metadata.files("gymnasium") or [] if file.suffix == ".xml")
    texts = (Path(file).read_text(encoding="utf-8") for file in sorted(files))
    mjcf = [text for text in texts if "<mujoco" in text and "<mesh" not in text and "<include" not in text]
    assert len(mjcf) >= 8
    return {".urdf": urdf, ".toml": toml, ".xml": mjcf}


def mutant(index: int, texts: dict[str, list[str]]) -> tuple[str, str, bytes, str]:
    """Suffix, name of the mutation, content of the file, and the base to load it on."""
    rng = random.Random(index)
    suffix = {0: ".toml", 1: ".xml"}.get(index % 5, ".urdf")
    text = rng.choice(texts[suffix])
    mutation = rng.choice(COMMON + (OF_TOML if suffix == ".toml" else OF_XML))
    changed = mutation(rng, text)
    content = changed.encode("utf-8", "surrogatepass") if isinstance(changed, str) else changed
    return suffix, mutation.__name__, content, "fixed" if suffix == ".xml" else rng.choice(("fixed", "floating"))


class TooSlow(BaseException):
    pass


def outcome(file: Path, base: str, mimic: Any) -> str:
    """ "refused", "robot" or "no dynamics"; anything else is an exception."""
    import numpy as np

    import linksweep as ls

    def has_message(error: ls.LinksweepError) -> None:
        assert 0 < len(str(error)) < 10_000, f"message: {str(error)[:300]!r}"

    try:
        robot = ls.load(file, base=base, mimic=mimic)
    except ls.LinksweepError as error:
        has_message(error)
        return "refused"
    rng = np.random.default_rng(0)
    q = robot.random(rng) if hasattr(robot, "random") else rng.uniform(-1, 1, robot.nv)
    v = rng.uniform(-1, 1, robot.nv)
    try:
        tau = robot.inverse_dynamics(q, v, v)
    except ls.LinksweepError as error:
        has_message(error)
        return "no dynamics"
    assert np.isfinite(tau).all(), f"torques {tau}"
    return "robot"


def main(first: int, last: int) -> None:
    import mujoco  # noqa: F401  (its import takes longer than a mutant may)

    texts = sources()
    warnings.simplefilter("ignore")

    def stop(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(first, last):
            suffix, mutation, content, base = mutant(index, texts)
            file = Path(folder) / f"mutant{suffix}"
            file.write_bytes(content)
            start = time.process_time()
            problem = result = ""
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            try:
                result = outcome(file, base, "couple" if index % 3 == 0 and suffix == ".urdf" else "free")
            except TooSlow:
                problem = f"more than {LIMIT} s"
            except BaseException as error:
                problem = f"{type(error).__name__}: {error}"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
            took = time.process_time() - start
            line = {"index": index, "mutation": mutation, "suffix": suffix, "result": result, "problem": problem}
            print(json.dumps(line | {"took": took}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
