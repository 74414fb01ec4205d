"""Run as a program by xacro_files.py: expand one xacro file in a process that cannot do anything else.

    python -I -X utf8 xacro_child.py '[folders of sys.path]'

Standard input has one request in JSON, standard output gets {"urdf": text} or {"error": message}. Three layers confine
the process, and each suffices for the usual attacks:

- Expressions, of `${...}` and `$(eval ...)` alike, are checked before they are evaluated: no name or attribute with
  leading underscores, no frames, no `format`; no builtins but those that xacro documents, without `vars`.
- An audit hook of the interpreter allows reading files of the given folders, and refuses every other event: writing,
  processes, sockets, ctypes, imports, code objects.
- The kernel limits processor time, memory and open files, and forbids writing files (RLIMIT_FSIZE) and, where
  Landlock exists, creating, removing and executing files and TCP connections.

Environment variables can be read, because `$(env NAME)` is part of xacro.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

MAX_EXPRESSION = 10_000  # characters
FORBIDDEN = frozenset((
    "format", "format_map", "mro", "gi_frame", "gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "cr_await",
    "cr_origin", "ag_frame", "ag_code", "ag_await", "tb_frame", "tb_next", "f_back", "f_builtins", "f_code",
    "f_globals", "f_locals", "f_trace", "f_generator", "func_globals", "func_code",
))  # fmt: skip
HARMLESS = frozenset(("compile", "exec", "object.__getattr__", "sys._getframe", "builtins.id"))
LISTING = frozenset(("os.listdir", "os.scandir", "glob.glob", "glob.glob/2", "os.walk"))


class Refused(Exception):
    """An expression that is not evaluated."""


# ---- expressions -----------------------------------------------------------------------------------------------


def checked_expression(text: str) -> Any:
    """Return the code of a Python expression that cannot reach the internals of objects."""
    if len(text) > MAX_EXPRESSION:
        raise Refused(f"an expression has {len(text)} characters, expected at most {MAX_EXPRESSION}")
    tree = ast.parse(text.strip(), "<expression>", "eval")
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if isinstance(node, ast.Attribute) and (name.startswith("_") or name in FORBIDDEN):
            raise Refused(f"an expression uses the attribute {name!r}, which is not allowed")
        if name.startswith("__") or isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
            raise Refused(f"an expression uses {name or 'yield or await'!r}, which is not allowed")
    return compile(tree, "<expression>", "eval")


def class_of(value: object) -> type:
    """`type` with one argument; the class of classes would make classes of any content."""
    if isinstance(value, type):
        raise Refused("an expression asks for the type of a type, which is not allowed")
    return type(value)


def restrict_expressions(find: Callable[[str], str]) -> None:
    """Replace the functions with which xacro evaluates expressions, looks for packages and parses XML."""
    xacro: Any = import_module("xacro")
    substitution_args: Any = import_module("xacro.substitution_args")
    python = xacro._global_symbols["python"]
    dict.pop(python, "vars", None)
    dict.__setitem__(python, "type", class_of)

    def safe_eval(expression: str, symbols: Any, local: Any = None) -> Any:
        symbols.update(__builtins__={})
        return eval(checked_expression(expression), symbols, local)

    def substitution(expression: str, context: dict[str, Any]) -> str:
        arguments = context.setdefault("arg", {})
        convert = substitution_args.convert_value
        names = {key: value for key, value in substitution_args._eval_dict.items() if not key.startswith("__")}
        names |= dict(substitution_args._eval_dict["__builtins__"])
        names |= {"find": find, "dirname": lambda: substitution_args._eval_dirname(context.get("filename"))}
        names["arg"] = lambda name: convert(substitution_args._eval_arg(name, arguments), "auto")
        values = {key: convert(value, "auto") for key, value in arguments.items() if key not in names}
        return str(eval(checked_expression(expression), {**values, **names, "__builtins__": {}}))

    original = xacro.parse

    def parse(source: Any, filename: str | None = None) -> Any:
        if source is None:
            try:
                with open(os.path.join(xacro.root_dir, filename or ""), encoding="utf-8") as stream:
                    source = stream.read()
            except OSError as error:
                xacro.filestack.pop()  # as xacro does: the message names the file that includes
                raise xacro.XacroException(f"{error.strerror}: {filename}", exc=error) from None
        if "<!DOCTYPE" in source or "<!ENTITY" in source:
            raise Refused(f"{filename or 'the file'} declares a document type or entity, which is not allowed")
        return original(source)

    xacro.safe_eval, xacro.parse = safe_eval, parse
    substitution_args._eval, substitution_args._eval_find = substitution, find


# ---- the process -----------------------------------------------------------------------------------------------


def limit_resources(seconds: float, memory: int) -> None:
    """Bound processor time, memory and files by the kernel, where it can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {
        resource.RLIMIT_CPU: int(sum(os.times()[:2]) + seconds) + 1,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
    }
    if hasattr(resource, "RLIMIT_NPROC"):
        limits[resource.RLIMIT_NPROC] = 0
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm", encoding="ascii") as stream:
            limits[resource.RLIMIT_AS] = int(stream.read().split()[0]) * resource.getpagesize() + memory
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    restrict_by_landlock()


def restrict_by_landlock() -> bool:
    """Forbid writing, creating, removing and executing files, and TCP, by Landlock (Linux 5.13); return success."""
    import ctypes

    create_ruleset, restrict_self, set_no_new_privileges = 444, 446, 38
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(create_ruleset, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    files = 0x1FF3 | (0x2000 if version >= 2 else 0) | (0x4000 if version >= 3 else 0)
    rights = (ctypes.c_uint64 * 2)(files, 3 if version >= 4 else 0)
    size = 16 if version >= 4 else 8
    ruleset = libc.syscall(create_ruleset, ctypes.byref(rights), ctypes.c_size_t(size), 0)
    if ruleset < 0 or libc.prctl(set_no_new_privileges, 1, 0, 0, 0):
        return False
    done = libc.syscall(restrict_self, ruleset, 0) == 0
    os.close(ruleset)
    return done


def install_hook(folders: Iterable[str], installed: Iterable[str]) -> None:
    """Refuse every audited event but reading files below these folders; `installed` may contain symbolic links."""
    real, normal, is_absolute, here = os.path.realpath, os.path.normpath, os.path.isabs, os.getcwd()
    allowed = tuple(real(folder) + os.sep for folder in (*folders, *installed))
    lexical = tuple(normal(folder) + os.sep for folder in installed)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    harmless, listing = HARMLESS, LISTING
    inside = False

    def readable(path: object) -> bool:
        if type(path) not in (str, bytes):  # a descriptor, or an object with code of its own
            return False
        name = path.decode("utf-8", "replace") if isinstance(path, bytes) else str(path)
        name = name if is_absolute(name) else here + os.sep + name
        if (real(name) + os.sep).startswith(allowed):
            return True
        return ".." not in name.split(os.sep) and (normal(name) + os.sep).startswith(lexical)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal inside
        if event in harmless or inside:
            return
        path: object = ""
        if event == "open" or event in listing:
            path = arguments[0]
            flags = arguments[2] if event == "open" else 0
            inside = True  # realpath itself is audited
            try:
                if not (isinstance(flags, int) and flags & writing) and readable(path or "."):
                    return
            finally:
                inside = False
        what = "outside of the allowed folders" if path else f"{event} is not allowed"
        raise PermissionError(errno.EACCES, what, str(path))

    sys.addaudithook(hook)


def expand(request: dict[str, Any]) -> str:
    """Return the URDF text of a request."""
    import warnings

    import yaml

    from linksweep.model.formats.packages import find_package

    for module in ("encodings.latin_1", "encodings.utf_16", "xml.dom.expatbuilder", "xml.dom.minidom"):
        import_module(module)  # nothing can be imported later
    xacro = import_module("xacro")

    def find(name: str) -> str:
        folder = find_package(name, request["find_in"])
        if folder is None:
            raise Refused(f"there is no ROS package {name!r} in packages=, ROS_PACKAGE_PATH or AMENT_PREFIX_PATH")
        return folder

    for unit in xacro.ConstructUnits:
        yaml.SafeLoader.add_constructor(unit.value.tag, unit.constructor)
    restrict_expressions(find)
    warnings.simplefilter("ignore")
    limit_resources(request["seconds"], request["memory"])
    install_hook(request["folders"], request["installed"])
    xacro.init_stacks(request["file"])
    document = xacro.parse(request["text"])
    xacro.process_doc(document, mappings=dict(request["args"]))
    text = document.toxml()
    if len(text) > request["largest"]:
        raise Refused(f"the URDF has {len(text) / 1e6:.0f} MB, expected at most {request['largest'] / 1e6:.0f} MB")
    return text


def main() -> None:
    sys.path[:] = json.loads(sys.argv[1])
    request = json.load(sys.stdin)
    output, sys.stdout = sys.stdout, sys.stderr  # xacro prints messages
    answer: dict[str, str]
    try:
        answer = {"urdf": expand(request)}
    except BaseException as error:  # whatever xacro or an expression of the file raises
        cause = getattr(error, "exc", None)
        name = type(cause or error).__name__
        answer = {"error": f"{error}" if name in ("Refused", "XacroException") else f"{name}: {error}"}
    output.write(json.dumps(answer))
    output.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
