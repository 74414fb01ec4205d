"""The target machine: its triple, processor, features and vector width.

`LINKSWEEP_SIMD` (sse2, avx2, avx512) narrows the host's vectors, for tests and for comparison.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

from ..errors import BackendError

LLVM = Any  # llvmlite.binding or one of its objects; it has no types

X86 = ("x86_64", "i686", "amd64")

# features that each setting of LINKSWEEP_SIMD disables on an x86-64 host
_MASKED = {
    "sse2": ("sse3", "ssse3", "sse4.1", "sse4.2", "sse4a", "avx", "avx2", "fma", "fma4", "f16c", "xop"),
    "avx2": (),
    "avx512": (),
}


@dataclass(frozen=True, slots=True)
class Target:
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    fma: bool

    @property
    def registers(self) -> int:
        """Number of vector registers."""
        return 16 if self.triple.startswith(X86) and self.vector_bytes < 64 else 32

    def lanes(self, dtype: str) -> int:
        return self.vector_bytes // (4 if dtype == "float32" else 8)

    def machine(self, opt: int = 2) -> LLVM:
        llvm = initialized_llvm()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=opt, reloc="pic", codemodel="small"
        )


@functools.cache
def initialized_llvm() -> LLVM:
    try:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    except OSError as reason:
        raise BackendError(
            f"LLVM cannot be loaded ({' '.join(str(reason).split())[:60]}...), it needs about 200 MB of memory and an "
            f"llvmlite for this machine; LINKSWEEP_BACKEND=interpreter runs without it."
        ) from reason
    lock = getattr(llvm.ffi.lib, "_lock", None)
    if lock is not None and hasattr(os, "register_at_fork"):
        # No thread may be inside LLVM while a process forks: the child would wait forever for its lock.
        os.register_at_fork(before=lock.__enter__, after_in_parent=lock.__exit__, after_in_child=lock.__exit__)
    return llvm


def host_target() -> Target:
    return _host_target(os.environ.get("LINKSWEEP_SIMD", ""))


@functools.cache
def _host_target(simd: str) -> Target:
    llvm = initialized_llvm()
    if simd not in ("", *_MASKED):
        raise BackendError(f"LINKSWEEP_SIMD is {simd!r}, expected one of {', '.join(_MASKED)}.")
    features = dict(llvm.get_host_cpu_features())
    if simd in ("sse2", "avx2"):
        features.update({name: False for name in features if name.startswith(("avx512", "avx10", "evex"))})
    features.update({name: False for name in _MASKED.get(simd, ())})
    if simd == "sse2":
        features.update({name: False for name in features if name.startswith("avx") or name in ("vaes", "vpclmulqdq")})
    triple = llvm.get_default_triple()
    cpu = llvm.get_host_cpu_name() if not simd else "x86-64"
    text = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    return Target(triple, cpu, text, _vector_bytes(triple, features), _has_fma(triple, features))


def _vector_bytes(triple: str, features: dict[str, bool]) -> int:
    """Return 64 for AVX-512, 32 for AVX, and 16 for SSE2, NEON and others."""
    if triple.startswith(X86):
        return 64 if features.get("avx512f") else 32 if features.get("avx") else 16
    return 16


def _has_fma(triple: str, features: dict[str, bool]) -> bool:
    return triple.startswith(("aarch64", "arm64")) or bool(features.get("fma"))


def ll_text(file: str, **constants: object) -> str:
    """Return the IR in a file of this package, with values for its $CONSTANTS."""
    text = (resources.files("linksweep.backends") / file).read_text(encoding="utf-8")
    return Template(text).substitute(constants)


def symbol_addresses(library: ctypes.CDLL, names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of a library's functions. They are those of this process."""
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}
