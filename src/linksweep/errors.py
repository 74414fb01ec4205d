"""The errors and warnings a user of linksweep can meet.

Every message is one sentence that says what was wrong, what was got, what was expected and what to do.
"""


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


class SingularWarning(UserWarning):
    """In some pose a joint's acceleration is not determined: what came out for it is rounding, infinite or NaN."""
