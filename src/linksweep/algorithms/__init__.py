"""One published algorithm per file, named after it, written over any scalar as sweeps."""
