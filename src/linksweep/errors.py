"""Errors and warnings of linksweep.

Every message names the wrong value and where it is, says what is allowed, and adds the fix if it is not obvious.
"""

import contextlib
import functools
import os
import sys
import warnings

# files whose frames are skipped: this package, and modules of Python that call it
_SKIPPED = (os.path.join(os.path.dirname(os.path.abspath(__file__)), ""), contextlib.__file__, functools.__file__)


class LinksweepError(Exception):
    """Base of every error that linksweep raises on purpose."""


class DescriptionError(LinksweepError, ValueError):
    """A robot model (file, text, table or argument) is not valid."""


class ArgumentError(LinksweepError, ValueError):
    """An argument of a call has the wrong shape, size, type or name."""


class SingularError(LinksweepError, ArithmeticError):
    """Accelerations are not determined because a joint moves no inertia (singular mass matrix)."""


class BackendError(LinksweepError, RuntimeError):
    """Machine code cannot be compiled or run on this machine."""


class ModelWarning(UserWarning):
    """A robot model is usable, but something in it is physically doubtful or was ignored."""


class LogWarning(UserWarning):
    """A measured log is usable, but something in it is doubtful or was ignored; the message begins with its name."""


class SingularWarning(UserWarning):
    """A joint acceleration is not determined in some configuration: its value is rounding error, infinite or NaN."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that led here, at any depth.

    Frames of contextlib and functools are skipped too: they call decorated functions of this package.
    """
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
