"""The `linksweep` command.

Each module holds the commands of one group: `inspection`, `compute`, `simulate` and `experiment`, `identify` and
`excite`, `reproduce`. A command is a function for typer, registered with `common.command`; its docstring is its help.
Written files go to `--output` (`-o`). Bad input is an error of `linksweep.errors` (exit code 2). Heavy modules (NumPy,
the compiler, Matplotlib) are imported inside functions, so that `--help` is quick.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import signal
import sys
import time
import warnings
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from linksweep.cli import compute, excite, experiment, identify, inspection, reproduce, simulate  # noqa: F401
from linksweep.cli.common import BAD_INPUT, app
from linksweep.cli.experiment import KEYS, is_experiment
from linksweep.errors import LinksweepError
from linksweep.support.messages import shown
from linksweep.support.settings import __version__

if TYPE_CHECKING:
    from types import FrameType

COMMANDS = (  # in the order of `linksweep --help`
    "info", "check", "explain", "view", "inverse", "forward", "export", "convert", "bench", "simulate", "ensemble",
    "excite", "identify", "study", "count", "demo",
)  # fmt: skip
app.registered_commands.sort(key=lambda command: COMMANDS.index(str(command.name)))

# the base class in the click that this version of typer uses; typed as its subclass with the same ctx, format_message
_UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
INTERRUPTED = 130
UNREAD = 141  # 128 + SIGPIPE, the exit code of shells for programs whose output pipe was closed
OUT_OF_MEMORY = "Not enough memory: use fewer samples, or close other programs."
_KEYWORD = r"\b([a-z_][a-z0-9_]*)=('[^']*'|\"[^\"]*\"|\.\.\.|True|False|-?\d[\d.]*(?:e[+-]?\d+)?)"
_SUBJECT = r"^((?:\w+: )?)([a-z_][a-z0-9_]*)(?= (?:is|has|got|of|-?\d))"
_IN_PYTHON = {
    r"robot\.with_gravity": "--gravity",
    r"\(robot\.(functions|\w+_names)\)": "(see `linksweep info`)",
    r"robot\.(functions|\w+_names)": "the names in `linksweep info`",
    "leave method out": "leave --method out",
}
SIGNAL_PAUSE = 5.0  # seconds after a signal in which further signals are ignored


def main() -> None:
    """Run the command. Errors and warnings are printed to stderr, one line each."""
    warnings.formatwarning = lambda message, *place, **source: f"linksweep: warning: {_as_options(str(message))}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ° and ² gets ? instead of a traceback
            stream.reconfigure(errors="replace")
    _exit_on_signals()
    try:
        code = app(prog_name="linksweep", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except LinksweepError as error:
        _fail(_as_options(str(error)))
    except _UsageError as error:
        _fail_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _leave_unread()
    except OSError as error:
        _fail_file(error)
    except MemoryError:
        _fail(OUT_OF_MEMORY)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # typer exits with 1, which means a failed `check`
            _leave_unread()
        raise
    raise SystemExit(code if isinstance(code, int) else 0)


def _as_options(message: str) -> str:
    """Rewrite Python keywords in a message of the library as options: dt=0.25 becomes --dt 0.25."""
    for python, words in _IN_PYTHON.items():
        message = re.sub(python, words, message)
    name = next((word for word in sys.argv[1:] if word in COMMANDS), None)
    if name is None:
        return message
    parameters = typer.main.get_group(app).commands[name].params
    in_file = KEYS if any(map(is_experiment, sys.argv[1:])) else ()  # these are keys of the experiment
    spelled = {p.name: max(p.opts, key=len) for p in parameters if p.name not in in_file and p.opts}
    options = {keyword: option for keyword, option in spelled.items() if option.startswith("--")}

    def with_value(keyword: re.Match[str]) -> str:
        option, value = options.get(keyword[1]), keyword[2].strip("'\"")
        if option is None or value == "False":
            return keyword[0]
        return option if value == "True" else f"{option} {value}"

    def subject(match: re.Match[str]) -> str:
        return match[1] + options.get(match[2], match[2])

    return re.sub(_SUBJECT, subject, re.sub(_KEYWORD, with_value, message))


def _exit_on_signals() -> None:
    """Exit by an exception on SIGINT, SIGTERM and SIGHUP, so that temporary files are removed.

    Further signals are ignored for a while. Later ones count again, in case the exception was lost.
    """
    last = -SIGNAL_PAUSE

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > SIGNAL_PAUSE:
            last = now
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, leave)


def _fail(message: str) -> NoReturn:
    with contextlib.suppress(OSError):
        print(f"linksweep: {message}", file=sys.stderr)
    raise SystemExit(BAD_INPUT) from None


def _fail_file(error: OSError) -> NoReturn:
    """Report an unusable path, too little memory, or a standard output that cannot be written."""
    if error.filename is not None:
        _fail(f"{shown(error.filename)} cannot be used ({error.strerror}).")
    if error.errno in (errno.ENOMEM, errno.EAGAIN):
        _fail(OUT_OF_MEMORY)
    if error.errno is None:
        _fail(f"System error: {' '.join(str(error).split())}.")
    _forget_output()
    _fail(f"The standard output cannot be written ({error.strerror}).")


def _leave_unread() -> NoReturn:
    _forget_output()
    raise SystemExit(UNREAD) from None


def _forget_output() -> None:
    """Redirect the standard output, because Python would try to write the rest of it at exit and fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail_usage(error: typer.BadParameter) -> NoReturn:
    """Report a mistake in the command line, and name the help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # `linksweep` alone; rich has already printed the help
        print(error.format_message(), file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    message = " ".join(error.format_message().split())
    if re.search(r"No such option: -[\d.]|extra argument\(s\) \([-\d. e]+\)", message):
        message = f"{message.rstrip('.')}; separate numbers by commas and write them as 0,0,-9.81, without spaces"
    command = error.ctx.command_path if error.ctx is not None else "linksweep"
    _fail(f"{message.rstrip('.')} (see {command} --help).")


def _print_version(requested: bool) -> None:
    if requested:
        print(f"linksweep {__version__}")
        raise typer.Exit


@app.callback()
def linksweep(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Robot dynamics: inverse and forward dynamics, simulation and identification, compiled for your robot."""
