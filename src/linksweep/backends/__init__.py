"""From a Program to kernels that run (LLVM, interpreter), source text (C, JavaScript) and formulas (SymPy)."""
