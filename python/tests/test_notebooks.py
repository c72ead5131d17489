"""Executes the notebooks of the documentation, cell by cell."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4


# Jupyter's libraries cause warnings in each other.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(notebook: pathlib.Path) -> None:
    read = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in read.cells), "it is stored without what it shows"
    NotebookClient(read, timeout=120, kernel_name="python3").execute()
    shown = [output for cell in read.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown), "it shows pictures"
