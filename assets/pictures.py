"""Pictures of results: shown beside an asset in the UI, and saved as files in the warehouse's reports folder.

Drawing belongs to the ``figures`` module of each method.
"""

import base64
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_WIDTH = 110
"""Characters of a report's line in the UI: a judgement, so that a line needs no scrolling and few lines are broken."""


def picture(figure: "Figure", *parts: str, folder: Path, dpi: int = 100) -> dict[str, dg.MetadataValue]:
    """Save a figure and return the metadata that shows it.

    Args:
        figure: a matplotlib figure; it is not closed here, as figures made without pyplot need no closing.
        parts: folder and file name without ending, such as ``"probe", partition_key``.
        folder: where reports are kept.
        dpi: dots an inch; the picture travels inside the event log, so keep it small.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    file = _file(folder, parts, "png")
    file.write_bytes(buffer.getvalue())
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return {
        "picture": dg.MetadataValue.md(f"![{parts[-1]}](data:image/png;base64,{encoded})"),
        "picture_file": dg.MetadataValue.path(str(file)),
    }


def report_text(text: str, *parts: str, folder: Path, ending: str = "txt") -> dict[str, dg.MetadataValue]:
    """Save a text report and return the metadata that shows it word for word."""
    file = _file(folder, parts, ending)
    file.write_text(text, encoding="utf-8")
    shown = text if ending == "md" else f"```\n{_wrapped(text)}\n```"
    return {"report": dg.MetadataValue.md(shown), "report_file": dg.MetadataValue.path(str(file))}


def _wrapped(text: str) -> str:
    """The text in lines that the UI shows whole; what a line is broken into stands under its own beginning."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += wrap(line, SHOWN_WIDTH, subsequent_indent=indent, break_long_words=False) or [""]
    return "\n".join(lines)


def _file(folder: Path, parts: tuple[str, ...], ending: str) -> Path:
    """Where a report is saved; the bar between the dimensions of a partition key is no character for a file name."""
    *folders, name = (part.replace("|", "__") for part in parts)
    file = folder.joinpath(*folders, f"{name}.{ending}")
    file.parent.mkdir(parents=True, exist_ok=True)
    return file
