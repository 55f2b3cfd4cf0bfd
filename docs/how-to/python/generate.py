"""Run the notebook, and write its page and its pictures: ``python docs/how-to/python/generate.py``.

The cells are written in ``notebook.ipynb``; what they print goes into it, and with it into ``README.md``. A
cell is run as IPython does it, in as far as these cells need it: the value of the last line is shown, by its
drawing where it has one. Jupyter itself would bring some eighty packages for that.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NOTEBOOK = FOLDER / "notebook.ipynb"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return *notebook* with the outputs of its cells, which run in its folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, before = [], Path.cwd()
    os.chdir(FOLDER)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                outputs = list(_run("".join(cell["source"]), names))
                cell = {**cell, "outputs": outputs, "execution_count": None}  # noqa: PLW2901  # with its outputs
            cells.append(cell)
    finally:
        os.chdir(before)
    return {**notebook, "cells": cells}


def _run(source: str, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    body = ast.parse(source).body
    last = ast.unparse(body.pop()) if body and isinstance(body[-1], ast.Expr) else ""
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102  # that is what a notebook is
        value = eval(last, names) if last else None  # noqa: S307  # as above
    if text := printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": _lines(_shown(value))}
        if picture := getattr(value, "_repr_svg_", lambda: None)():
            data["image/svg+xml"] = _lines(picture)
        yield {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _shown(value: Any) -> str:
    return str(value) if hasattr(value, "_repr_html_") else repr(value)


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)


def files(notebook: dict[str, Any]) -> dict[str, str]:
    """Return the notebook that was run, its page and its pictures, by their names."""
    run = executed(notebook)
    found = {NOTEBOOK.name: json.dumps(run, indent=1, ensure_ascii=False) + "\n"}
    parts = []
    for cell in run["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data") or {"text/plain": output["text"]}
            if "image/svg+xml" in data:
                picture = f"picture-{sum(name.endswith('.svg') for name in found) + 1}.svg"
                found[picture] = "".join(data["image/svg+xml"]) + "\n"
                title = re.findall("<title>(.*?)</title>", found[picture])[0]
                parts.append(f"![{title}]({picture})")
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    found["README.md"] = "\n\n".join(part.rstrip() for part in parts) + "\n"
    return found


def main() -> int:
    """Write the files, and return the exit code."""
    for name, content in files(json.loads(NOTEBOOK.read_text("utf-8"))).items():
        (FOLDER / name).write_text(content, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
