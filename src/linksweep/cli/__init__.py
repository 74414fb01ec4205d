"""The `linksweep` command.

One module per command: `linksweep.cli.NAME` holds the function `NAME`, written for typer; its docstring is the help.
To add a command, write the module and add its name to `COMMANDS`. A command about a robot is decorated with
`cli.common.names_a_robot` and finds it by `cli.common.find_robot`; what it writes goes to `--output` (`-o`). Bad input
is an error of `linksweep.errors` (exit code 2), and whatever is heavy (NumPy, the compiler, Matplotlib) is imported
inside the function, so that --help is quick.
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
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from linksweep.cli.common import BAD_INPUT
from linksweep.cli.experiment import KEYS, is_experiment
from linksweep.errors import LinksweepError
from linksweep.support.messages import shown
from linksweep.support.version import __version__

if TYPE_CHECKING:
    from types import FrameType

COMMANDS = (
    "info",
    "check",
    "count",
    "demo",
    "export",
    "inverse",
    "forward",
    "simulate",
    "ensemble",
    "view",
    "explain",
    "identify",
    "excite",
    "study",
    "bench",
)  # fmt: skip

FORMER = {"out": "output"}  # options that had other names

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda word: FORMER.get(word, word),
    },
)
for _name in COMMANDS:
    app.command(_name)(getattr(import_module(f"linksweep.cli.{_name}"), _name))

# of the click that this version of typer brings; typed as its child, which has the same ctx and format_message
_UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
INTERRUPTED = 130
UNREAD = 141  # 128 + SIGPIPE, as shells say of programs whose reader has left
TOO_LARGE = "There is too little memory for this, expected more: choose fewer samples, or close other programs."
_HINT = r"\b([a-z_]+)=('[^']*'|\"[^\"]*\"|\.\.\.|True|False|-?\d[\d.]*(?:e[+-]?\d+)?)"
_IN_PYTHON = {
    "robot.with_gravity": "--gravity", "robot.frame_names": "those of `linksweep info`", "robot.joint_names":
    "those of `linksweep info`", "robot.link_names": "those of `linksweep info`",
}  # fmt: skip
PATIENCE = 5.0  # seconds from a signal to the next one that counts


def main() -> None:
    """Run the command; errors and warnings become one sentence each on stderr."""
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
        _fail(TOO_LARGE)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # typer makes it 1, which is a finding of `check`
            _leave_unread()
        raise
    raise SystemExit(code if isinstance(code, int) else 0)


def _as_options(message: str) -> str:
    """A message of the library with its hints as they are typed here: dt=0.25 as --dt 0.25."""
    for method, words in _IN_PYTHON.items():
        message = message.replace(method, words)
    name = next((word for word in sys.argv[1:] if word in COMMANDS), None)
    if name is None or not re.search(_HINT, message):
        return message
    command = typer.main.get_group(app).commands[name]
    in_file = KEYS if any(map(is_experiment, sys.argv[1:])) else ()  # an experiment has them as keys
    options = {p.name: max(p.opts, key=len) for p in command.params if p.name not in in_file and p.opts}

    def typed(hint: re.Match[str]) -> str:
        option, value = options.get(hint[1], ""), hint[2].strip("'\"")
        return hint[0] if option[:2] != "--" or value == "False" else option if value == "True" else f"{option} {value}"

    return re.sub(_HINT, typed, message)


def _exit_on_signals() -> None:
    """Leave by an exception, so that temporary files are removed: interrupted, terminated, or the terminal is closed.

    While that goes on, further signals would only disturb it. Much later ones count again: the exception was lost.
    """
    last = -PATIENCE

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > PATIENCE:
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
    """A path that the system does not take, too little memory, or a standard output that takes nothing more."""
    if error.filename is not None:
        _fail(f"{shown(error.filename)} cannot be used ({error.strerror}), expected a file: choose another.")
    if error.errno in (errno.ENOMEM, errno.EAGAIN):
        _fail(TOO_LARGE)
    if error.errno is None:
        _fail(f"The system reports an error ({' '.join(str(error).split())}).")
    _forget_output()
    _fail(f"The standard output cannot be written ({error.strerror}), expected room: send it elsewhere.")


def _leave_unread() -> NoReturn:
    _forget_output()
    raise SystemExit(UNREAD) from None


def _forget_output() -> None:
    """Else Python would try again to write what is left, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail_usage(error: typer.BadParameter) -> NoReturn:
    """What is wrong with the words of the command, and where its help is."""
    if type(error).__name__ == "NoArgsIsHelpError":  # `linksweep` alone; rich has printed the help already
        print(error.format_message(), file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    message = " ".join(error.format_message().split())
    if re.search(r"No such option: -[\d.]|extra argument\(s\) \([-\d. e]+\)", message):
        message = (
            f"{message.rstrip('.')}, expected several numbers as one word: write them as 0,0,-9.81, without spaces"
        )
    command = error.ctx.command_path if error.ctx is not None else "linksweep"
    _fail(f"{message.rstrip('.')} (see {command} --help).")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"linksweep {__version__}")
        raise typer.Exit


@app.callback()
def linksweep(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Robot dynamics from published recursions, compiled for one robot."""
