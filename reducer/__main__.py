"""``python -m reducer``: the same as the ``reduce`` command."""

from reducer.cli import main

if __name__ == "__main__":
    main()
