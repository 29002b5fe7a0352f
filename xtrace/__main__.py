"""``python -m xtrace``: see ``python -m xtrace --help``."""

import sys

from xtrace.cli.main import main
from xtrace.cli.programs import show_error

if __name__ == "__main__":
    sys.excepthook = show_error
    sys.exit(main())
