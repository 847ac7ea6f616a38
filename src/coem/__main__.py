"""``python -m coem`` is ``coem``."""

from coem.cli import main

if __name__ == "__main__":
    main()
