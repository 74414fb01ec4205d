"""`python -m linksweep` is the `linksweep` command."""

from linksweep.cli import main

if __name__ == "__main__":
    main()
