"""Write the page of wrong programs: ``python -m tests.errors``."""

import os

# As the tests run, so that both see the same messages.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("XTRACE_ENABLE_CHECKS", "1")

from tests.errors import table

table.PAGE.write_text(table.page())
print(f"{len(table.ALL)} programs in {table.PAGE}")
