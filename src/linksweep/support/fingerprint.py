"""Fingerprints of callables: digests of everything that a function or an object computes with.

Two values have the same fingerprint, in any process, if they have the same code, defaults, closure variables, globals
that the code reads, bound arguments and attributes. Code of installed packages counts by its package's version; code
elsewhere counts by its bytecode, so that comments, docstrings, line numbers and file names do not matter.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .lazy import lazy

Value = Any  # whatever Python code may hold
Parts = list[tuple[str, Value]]  # what a value consists of, by name
_PLAIN = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes)
_NAMED = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
)
_DERIVED = (functools.cached_property, lazy)  # attributes that are computed from the others
_FLAGS = 0x2AC  # variable arguments, generators, coroutines; not whether there is a docstring
_DEEP = 200  # values within values


def fingerprint(value: object) -> dict[str, str]:
    """Digests of what a callable consists of, by name: {"code": ..., "global robot": ..., "package numpy": ...}.

    Raises ArgumentError for what has no content that can be read, such as an open file or a lock.
    """
    reader = _Reader()
    found = {name: digest.hex()[:32] for name, digest in reader.named("", value, 3)}
    return {**found, **{f"package {name}": version for name, version in sorted(reader.packages.items())}}


class _Reader:
    """One reading: digests of the values on the way, and versions of the packages that were met."""

    def __init__(self) -> None:
        self.packages = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
        self._known: dict[int, tuple[object, bytes]] = {}  # the value too: another must not get its id
        self._open: dict[int, int] = {}

    def named(self, prefix: str, value: object, deep: int) -> Iterator[tuple[str, bytes]]:
        """The digests of a callable's parts; those of callables among them one by one."""
        parts = self._parts(value, prefix)
        for name, part in parts or [("value", value)]:
            if deep and parts and isinstance(part, (types.FunctionType, types.MethodType, functools.partial)):
                yield from self.named(f"{prefix}{name}: ", part, deep - 1)
            else:
                yield f"{prefix}{name}", self.digest(part, f"{prefix}{name}")

    def digest(self, value: Value, path: str) -> bytes:
        """What a value holds. path: how it was reached, for messages."""
        key = id(value)
        if key in self._known:
            return self._known[key][1]
        if key in self._open:
            return _hash("again", [str(len(self._open) - self._open[key]).encode()])
        if len(self._open) > _DEEP:
            raise ArgumentError(_unreadable(path, value, "it is nested too deeply"))
        self._open[key] = len(self._open)
        try:
            found = self._digest(value, path)
        finally:
            del self._open[key]
        self._known[key] = value, found
        return found

    def _digest(self, value: Value, path: str) -> bytes:
        kind = type(value)
        if kind is _Digest:
            return value.digest
        if kind in _PLAIN:
            text = hex(value) if kind is int else repr(value)  # an int of 5,000 digits has no repr
            return _hash(kind.__name__, [text.encode("utf-8", "surrogatepass")])
        if kind in (tuple, list):
            return _hash(kind.__name__, [self.digest(each, path) for each in value])
        if kind in (set, frozenset):
            return _hash("set", sorted(self.digest(each, path) for each in value))
        if kind is dict or kind is types.MappingProxyType:
            return _hash("dict", sorted(self.digest(k, path) + self.digest(v, path) for k, v in value.items()))
        if isinstance(value, np.generic) or kind in (np.ndarray, np.memmap):
            return self._array(np.asarray(value), path)
        if isinstance(value, types.CodeType):
            return self._code(value)
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, _NAMED):
            owner = getattr(value, "__self__", None)
            bound = [] if owner is None or isinstance(owner, types.ModuleType) else [self.digest(owner, path)]
            return _hash("builtin", [_name(value).encode(), *bound])
        if isinstance(value, (type, types.FunctionType)) and self._installed(value.__module__) and _is_named(value):
            return _hash("installed", [_name(value).encode()])
        if hasattr(kind, "detach") and hasattr(kind, "numpy"):  # a tensor
            return self._array(np.asarray(value.detach().cpu().numpy()), path)
        parts = self._parts(value, path)
        return _hash(kind.__qualname__, [name.encode() + b"\0" + self.digest(part, path) for name, part in parts])

    def _parts(self, value: Value, path: str) -> Parts:
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if isinstance(value, types.MethodType):
            return [("function", value.__func__), ("object", value.__self__)]
        if isinstance(value, functools.partial):
            arguments = [(f"argument {k}", each) for k, each in enumerate(value.args)]
            named = [(f"argument {name}", each) for name, each in sorted(value.keywords.items())]
            return [("function", value.func), *arguments, *named]
        if isinstance(value, type):
            return self._of_class(value)
        if isinstance(value, (staticmethod, classmethod)):
            return [("function", value.__func__)]
        if isinstance(value, property):
            return [("get", value.fget), ("set", value.fset), ("delete", value.fdel)]
        if dataclasses.is_dataclass(value) and self._installed(type(value).__module__):
            known = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare]
            return [("class", type(value)), *known]
        return self._of_object(value, path)

    def _of_function(self, function: types.FunctionType) -> Parts:
        code = function.__code__
        parts: Parts = [("code", code)]
        if function.__defaults__ or function.__kwdefaults__:
            parts.append(("defaults", (function.__defaults__, function.__kwdefaults__)))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # not assigned yet
                parts.append((f"variable {name}", cell.cell_contents))
        parts += [(f"attribute {name}", each) for name, each in sorted(vars(function).items())]
        return parts if self._installed(function.__module__) else parts + self._globals_of(function)

    def _globals_of(self, function: types.FunctionType) -> Parts:
        """The globals that the code reads, and modules that it imports."""
        found: dict[str, Value] = {}
        known, written = function.__globals__, set[str]()
        chains = list(_global_names(function.__code__, written))
        for name, *attributes in chains:
            if name not in known or name in written:  # a builtin, or state of the function itself
                continue
            value = known[name]
            while isinstance(value, types.ModuleType) and not self._installed(value.__name__) and attributes:
                attribute = attributes.pop(0)
                if not hasattr(value, attribute):
                    break
                name, value = f"{name}.{attribute}", getattr(value, attribute)
            found[f"global {name}"] = value
        for name in _imported_names(function.__code__):
            for full in (name, f"{known.get('__package__') or ''}.{name}"):
                with suppress(ImportError, ValueError, AttributeError):
                    if importlib.util.find_spec(full) is not None:
                        found[f"module {full}"] = _Digest(self._source(full))
                        break
        return sorted(found.items())

    def _of_class(self, kind: type) -> Parts:
        """Bases, methods and other attributes of a class of the user's."""
        parts: Parts = [("bases", kind.__bases__)]
        for name, value in sorted(vars(kind).items()):
            code = isinstance(value, (types.FunctionType, staticmethod, classmethod, property))
            if code or (not (name.startswith("__") and name.endswith("__")) and name != "_abc_impl"):
                parts.append(
                    (f"attribute {name}", value.func if isinstance(value, functools.cached_property) else value)
                )
        return parts

    def _of_object(self, value: Value, path: str) -> Parts:
        """What pickle and copy would make it anew from."""
        wrapped = getattr(value, "__wrapped__", None)  # of functools.lru_cache, jax.jit and numba.njit
        if isinstance(wrapped, types.FunctionType) and self._installed(type(value).__module__):
            return [("class", type(value)), ("wrapped", wrapped)]
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:
            raise ArgumentError(_unreadable(path, value, f"{type(error).__name__}: {error}")) from error
        if isinstance(reduced, str):
            return [("name", f"{getattr(value, '__module__', '')}.{reduced}")]
        make, arguments, state, entries, items = (*reduced, None, None, None)[:5]
        parts: Parts = [("class", type(value)), ("make", make), ("arguments", arguments)]
        slots = state[1] if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict) else None
        attributes = state[0] if slots is not None and isinstance(state, tuple) else state
        if attributes is None:
            attributes = {}
        if isinstance(attributes, dict) and all(isinstance(name, str) for name in attributes):
            parts += [
                (f"attribute {name}", each)
                for name, each in sorted(attributes.items())
                if not isinstance(getattr(type(value), name, None), _DERIVED)
            ]
        else:
            parts.append(("state", attributes))
        parts += [(f"attribute {name}", each) for name, each in sorted((slots or {}).items())]
        return [*parts, ("entries", list(entries or ())), ("items", dict(items or ()))]

    def _array(self, array: np.ndarray, path: str) -> bytes:
        if array.dtype.hasobject:
            content = self.digest(array.tolist(), path)
        elif not array.nbytes:
            content = b""
        else:
            content = hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).digest()
        return _hash("array", [str(array.dtype).encode(), str(array.shape).encode(), content])

    def _code(self, code: types.CodeType) -> bytes:
        """Instructions with their constants and names, and the names of arguments."""
        arguments = code.co_argcount + code.co_kwonlyargcount
        kinds = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS)
        parts = [repr((kinds, code.co_varnames[:arguments])).encode(), code.co_exceptiontable]
        for step in dis.get_instructions(code):
            if step.opname == "EXTENDED_ARG":
                continue
            if step.opcode in dis.hasconst:
                operand = self.digest(step.argval, "a constant")
            else:
                operand = repr(step.argval if step.opcode in dis.hasname else step.arg).encode()
            parts.append(step.opname.encode() + b"\0" + operand)
        return _hash("code", parts)

    def _module(self, module: types.ModuleType) -> bytes:
        if self._installed(module.__name__):
            return _hash("module", [module.__name__.encode()])
        return self._source(module.__name__)

    def _source(self, name: str) -> bytes:
        """A module by the text of its file."""
        if self._installed(name):
            return _hash("module", [name.encode()])
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if path is None:
            spec = importlib.util.find_spec(name) if module is None else None
            path = spec.origin if spec is not None else None
        content = b""
        if path is not None and os.path.isfile(path):
            with open(path, "rb") as file:
                content = file.read()
        return _hash("module", [name.encode(), content])

    def _installed(self, name: str | None) -> bool:
        """Whether a module is of Python, of linksweep or of an installed package; notes the package's version."""
        name = str(name or "")
        top = name.partition(".")[0]
        if not top or top in sys.builtin_module_names or top == "linksweep":
            return bool(top) and top != "__main__"
        module = sys.modules.get(name) or sys.modules.get(top)
        path = getattr(module, "__file__", None)
        if path is None and module is None:
            with suppress(ImportError, ValueError, AttributeError):
                path = getattr(importlib.util.find_spec(top), "origin", None)
        if path in ("frozen", "built-in"):
            return True
        if path is None:
            return False
        packages, library = _places()
        if path.startswith(packages) or {"site-packages", "dist-packages"} & set(path.split(os.sep)):
            if top not in self.packages:
                self.packages[top] = _version(top)
            return True
        return path.startswith(library)


class _Digest:
    """A digest among values."""

    def __init__(self, digest: bytes):
        self.digest = digest


@functools.cache
def _places() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders of installed packages, and of Python itself."""
    paths = sysconfig.get_paths()
    return tuple({paths["purelib"] + os.sep, paths["platlib"] + os.sep}), tuple(
        {paths["stdlib"] + os.sep, paths["platstdlib"] + os.sep}
    )


def _version(package: str) -> str:
    own = getattr(sys.modules.get(package), "__version__", None)
    if own is None:
        with suppress(metadata.PackageNotFoundError):
            own = metadata.version(package)
    return str(own or "")


def _global_names(code: types.CodeType, written: set[str]) -> Iterator[list[str]]:
    """Names of globals that code reads, each with the attributes that are read of it at once; notes those it writes."""
    chain: list[str] = []
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(str(step.argval))
            continue
        if chain:
            yield chain
        chain = [str(step.argval)] if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else []
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            written.add(str(step.argval))
    if chain:
        yield chain
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _global_names(each, written)


def _imported_names(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and step.argval:
            yield str(step.argval)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _imported_names(each)


def _is_named(value: type | types.FunctionType) -> bool:
    """Whether a value is what its module has under its name, and not made by a function, with variables of its own."""
    found: Value = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _name(value: Value) -> str:
    return f"{getattr(value, '__module__', None) or builtins.__name__}.{getattr(value, '__qualname__', value)}"


def _hash(kind: str, parts: Iterable[bytes]) -> bytes:
    found = hashlib.sha256(kind.encode())
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()


def _unreadable(path: str, value: object, reason: str) -> str:
    return (
        f"The experiment uses a {type(value).__qualname__} ({path or 'itself'}) whose content cannot be read "
        f"({reason}), expected values that can be pickled: set experiment.fingerprint to a text that names what it "
        f"computes, and change it with the experiment."
    )
