"""What linksweep uses of pyopencl, for type checkers in environments without it."""

from collections.abc import Callable

class RuntimeError(Exception): ...

class Device:
    name: str
    extensions: str

class Context: ...

class CommandQueue:
    context: Context
    device: Device

class Buffer: ...

class _Built:
    linksweep_kernel: Callable[..., object]

class Program:
    def __init__(self, context: Context, source: str) -> None: ...
    def build(self) -> _Built: ...
