# Pinocchio is untyped, and found through a .pth file that runs code, which pyright does not follow.
from typing import Any

def __getattr__(name: str) -> Any: ...
