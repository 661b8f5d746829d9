"""`python -m menzil` is the same as `menzil`."""

from menzil.cli import main

if __name__ == "__main__":
    main(prog_name="menzil")
