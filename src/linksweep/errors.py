"""The errors and warnings a user of linksweep can meet.

Every message is one sentence that says what was wrong, what was got, what was expected and what to do.
"""

import contextlib
import functools
import os
import sys
import warnings

# code that never is the user's: this package, and what Python calls it through
_PASSED_OVER = (os.path.join(os.path.dirname(os.path.abspath(__file__)), ""), contextlib.__file__, functools.__file__)


class LinksweepError(Exception):
    """Base of every error that linksweep raises on purpose."""


class DescriptionError(LinksweepError, ValueError):
    """A robot description (file, table or argument) cannot be a robot."""


class ArgumentError(LinksweepError, ValueError):
    """An argument of a call has the wrong shape, size, type or name."""


class SingularError(LinksweepError, ArithmeticError):
    """The robot's accelerations are not determined: a joint moves no inertia."""


class BackendError(LinksweepError, RuntimeError):
    """Machine code cannot be made or run here."""


class ModelWarning(UserWarning):
    """The description is usable, but something in it is physically doubtful."""


class LogWarning(UserWarning):
    """A measured log is usable, but something in it is doubtful or was left out; the message begins with its name."""


class SingularWarning(UserWarning):
    """In some pose a joint's acceleration is not determined: what came out for it is rounding, infinite or NaN."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn of the line outside this package that led here, however deep in it the reason was found.

    Frames of contextlib between those of the package belong to it: it calls functions that a context manager decorates.
    """
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED_OVER):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
