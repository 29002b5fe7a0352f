"""``python -m tests.notebooks [PART OF A NAME ...]``: run the notebooks, and store what their cells show.

Outputs that agree with what is stored stay as they are, so that a second run changes no file.
"""

import sys
import time

import nbformat

from tests.notebooks.execution import NOTEBOOKS, agree, code_cells, execute

_LONGEST = 20_000  # characters of HTML that are kept with a cell


def main() -> None:
    """Run the notebooks that the words of the command line name, or all."""
    chosen = [path for path in NOTEBOOKS if not sys.argv[1:] or any(word in path.name for word in sys.argv[1:])]
    if not chosen:
        sys.exit(f"no notebook of {NOTEBOOKS[0].parent} has {' or '.join(sys.argv[1:])} in its name")
    for path in chosen:
        start = time.monotonic()
        stored, executed = nbformat.read(path, as_version=4), execute(path)
        for old, new in zip(code_cells(stored), code_cells(executed), strict=True):
            new.execution_count = None
            new.metadata.pop("execution", None)
            for output in new.outputs:
                if "execution_count" in output:
                    output.execution_count = None
                # Pages that notebooks show are large, and made again by whoever runs them.
                if len(output.get("data", {}).get("text/html", "")) > _LONGEST:
                    del output.data["text/html"]
            if old.outputs and agree(new, old):
                new.outputs = old.outputs
        executed.metadata = stored.metadata
        nbformat.write(executed, path)
        print(f"{path.name}: {len(executed.cells)} cells, {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
