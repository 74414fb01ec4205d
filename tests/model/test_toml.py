"""DH tables in TOML files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from linksweep.errors import DescriptionError
from linksweep.model.formats import load_model
from linksweep.model.formats.dh import from_dh, parse_toml, read_toml
from linksweep.model.model import compose

pytestmark = pytest.mark.quick

GOOD = """
name = "arm"
format = "dh"
convention = "modified"
angles = "degrees"
gravity = [0, 0, -1.62]
base = "floor"

[[links]]
alpha = 90
a = 0.4
d = 0.1
theta = 30
mass = 2
com = [0.1, 0, 0]
inertia = [0.1, 0.2, 0.25, 0.01, 0, 0]
lower = -180
upper = 180
velocity = 90

[[links]]
joint = "prismatic"
theta = 45
lower = -0.5
upper = 0.5
"""


def test_a_file_is_the_same_as_its_table(tmp_path: Path):
    file = tmp_path / "arm.toml"
    file.write_text(GOOD)
    first = {
        "alpha": math.radians(90), "a": 0.4, "d": 0.1, "theta": math.radians(30), "mass": 2,
        "com": (0.1, 0, 0), "inertia": (0.1, 0.2, 0.25, 0.01, 0, 0),
        "lower": -math.pi, "upper": math.pi, "velocity": math.pi / 2,
    }  # fmt: skip
    second = {"joint": "P", "theta": math.radians(45), "lower": -0.5, "upper": 0.5}
    expected = from_dh([first, second], "modified", name="arm", base="floor", gravity=(0, 0, -1.62))
    assert read_toml(file) == expected
    assert load_model(file) == load_model(str(file)) == expected


def test_radians_are_the_default():
    text = 'format = "dh"\nconvention = "standard"\n[[links]]\nalpha = 0.5\n'
    assert parse_toml(text, "t") == from_dh([(0.5, 0, 0, 0)], "standard")


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_a_tool_is_a_row_without_a_joint(convention: str):
    text = f'format = "dh"\nangles = "degrees"\nconvention = "{convention}"\n[[links]]\na = 0.3\n'
    row = "alpha = 30\na = 0.2\nd = 0.1\ntheta = 70\n"
    with_tool = parse_toml(f"{text}[tool]\n{row}", "t")
    longer = parse_toml(f"{text}[[links]]\n{row}", "t")
    at = next(f.placement for f in with_tool.frames if f.name == "tool")
    expected = longer.links[1].joint.placement
    if convention == "standard":
        expected = compose(expected, next(f.placement for f in longer.frames if f.name == "link2"))
    assert np.allclose(at.position, expected.position) and np.allclose(at.rotation, expected.rotation)
    assert len(with_tool.links) == 1
    with pytest.raises(DescriptionError, match="'tool'"):
        parse_toml(f"{text}[tool]\nmass = 2\n", "t")


def test_a_byte_order_mark_is_no_matter(tmp_path: Path):
    file = tmp_path / "arm.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_toml(file).name == "arm"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('format = "dh"', "", r"'format' is None, expected 'dh'"),
        ('format = "dh"', 'format = "poe"', r"'format' is 'poe', expected 'dh'"),
        ('convention = "modified"', "", r"convention is None, expected 'modified' \(Craig\) or 'standard'"),
        ('"modified"', '"craig"', r"convention is 'craig', expected"),
        ('"modified"', "1", r"'convention' is 1, expected"),
        ('"modified"', "[]", r"'convention' is \[\], expected"),
        ('"degrees"', '"grad"', r"'angles' is 'grad', expected 'radians' or 'degrees'"),
        ('"degrees"', "[1]", r"'angles' is \[1\], expected 'radians' or 'degrees'"),
        ('name = "arm"', "name = 3", r"'name' is 3, expected text"),
        ('name = "arm"', 'nmae = "arm"', r"the key 'nmae' is not known .did you mean 'name'"),
        ("[0, 0, -1.62]", "9.81", r"'gravity' is 9.81, expected three numbers"),
        ("[0, 0, -1.62]", "[0, 0, nan]", r"'gravity' is .*nan.*expected finite"),
        ("mass = 2", "mas = 2", r"DH row 1: the key 'mas' is not known .did you mean 'mass'"),
        ("mass = 2", "mass = -2", r"mass of link 'link1' is -2.0"),
        ("mass = 2", 'mass = "2"', r"DH row 1: 'mass' is '2', expected a real number"),
        ("mass = 2", "mass = inf", r"mass of link 'link1' is inf, expected finite"),
        ("alpha = 90", 'alpha = "90"', r"DH row 1: 'alpha' is '90', expected a real number"),
        ("theta = 45", "theta = 2020-01-01", r"DH row 2: 'theta' is datetime"),
        ("mass = 2", "mass = ", r"not valid TOML \(.*line 14"),
        ("[[links]]", "[links]", r"not valid TOML"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, old: str, new: str, message: str):
    file = tmp_path / "bad.toml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(DescriptionError, match=message) as caught:
        load_model(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize("links", ["", "links = 3", "links = [1]", "[links]\na = 1"])
def test_links_must_be_tables(links: str):
    with pytest.raises(DescriptionError, match=r"'links' is not a list of tables, expected \[\[links\]\]"):
        parse_toml(f'format = "dh"\nconvention = "modified"\n{links}', "t.toml")


def test_an_empty_list_of_links_is_refused():
    with pytest.raises(DescriptionError, match="the DH table has no rows"):
        parse_toml('format = "dh"\nconvention = "modified"\nlinks = []', "t.toml")


def test_hostile_files_are_refused(tmp_path: Path):
    file = tmp_path / "t.toml"
    file.write_text("a = " + "[" * 100_000)
    with pytest.raises(DescriptionError, match=r"this TOML cannot be read|not valid TOML"):
        load_model(file)
    file.write_text("a = " + "9" * 100_000)
    with pytest.raises(DescriptionError, match="this TOML cannot be read"):
        load_model(file)
    file.write_bytes(b"name = '\xff'")
    with pytest.raises(DescriptionError, match="byte 8 is not UTF-8"):
        load_model(file)
    file.write_bytes(b"")
    with pytest.raises(DescriptionError, match="the file or text is empty"):
        load_model(file)
    with open(file, "wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(DescriptionError, match="has 100 MB, expected at most 5 MB"):
        load_model(file)
