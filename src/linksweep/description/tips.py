"""Where a robot ends: the outermost frames of its chains, and which of its frames may be the tool.

An end is a moving link that carries no other one. Its outermost frames are those to which nothing is fixed: of
wrist_3 with flange on it and tool0 on flange, tool0. Frames of the base are no ends, wherever a file names them.
"""

from __future__ import annotations

import re

from .model import BASE, Model

TOOL = "tool"  # what a DH table calls its end
_WORDS = ("tool", "tcp", "ee", "eef", "endeffector")
_AFTER = ("link", "frame", "site", "point")  # what names have behind such a word
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def tips(model: Model) -> tuple[str, ...]:
    """The outermost frames of the links that carry no other link, in the order of the frames."""
    inner = {link.parent for link in model.links}
    return tuple(name for name, link in _outermost(model) if link not in inner)


def tools(model: Model) -> tuple[str, ...]:
    """The frames that may be meant by the tool: one, or nobody can know.

    A frame called "tool" that moves is it. Otherwise those of the outermost frames that are called so (tool0, ee_link,
    hand_tcp, end_effector), and the end of the chain where it is the only one, or nothing is called so.
    """
    if any(frame.name == TOOL and frame.link != BASE for frame in model.frames):
        return (TOOL,)
    named = [name for name, _ in _outermost(model) if _is_called_tool(name)]
    ends = tips(model)
    return tuple(dict.fromkeys([*named, *(ends if len(ends) == 1 or not named else ())]))


def _outermost(model: Model) -> list[tuple[str, int]]:
    """The frames that joints move and to which nothing is fixed, with their links."""
    carriers = {frame.on for frame in model.frames}
    return [(frame.name, frame.link) for frame in model.frames if frame.link != BASE and frame.name not in carriers]


def _is_called_tool(name: str) -> bool:
    words = [word.lower() for word in _PARTS.findall(name)]
    while words and (words[-1].isdigit() or words[-1] in _AFTER):
        words.pop()
    return bool(words) and (words[-1] in _WORDS or words[-2:] == ["end", "effector"])
