"""``python -m xtrace``: see ``python -m xtrace --help``."""

import sys

from xtrace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
