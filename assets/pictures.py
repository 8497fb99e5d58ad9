"""Pictures of results: shown beside an asset in the UI, and saved as files under ``data/reports``.

Drawing belongs to the ``figures`` module of each method.
"""

import base64
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from resources.schema import ROOT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORTS = ROOT / "data" / "reports"


def picture(figure: "Figure", *parts: str, folder: Path = REPORTS, dpi: int = 100) -> dict[str, dg.MetadataValue]:
    """Save a figure and return the metadata that shows it.

    Args:
        figure: a matplotlib figure; it is not closed here, as figures made without pyplot need no closing.
        parts: folder and file name without ending, such as ``"probe", partition_key``.
        folder: where reports are kept.
        dpi: dots an inch; the picture travels inside the event log, so keep it small.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    file = folder.joinpath(*parts[:-1], f"{parts[-1]}.png")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(buffer.getvalue())
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return {
        "picture": dg.MetadataValue.md(f"![{parts[-1]}](data:image/png;base64,{encoded})"),
        "picture_file": dg.MetadataValue.path(str(file)),
    }


def report_text(text: str, *parts: str, folder: Path = REPORTS, ending: str = "txt") -> dict[str, dg.MetadataValue]:
    """Save a text report and return the metadata that shows it word for word."""
    file = folder.joinpath(*parts[:-1], f"{parts[-1]}.{ending}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    shown = text if ending == "md" else f"```\n{text}\n```"
    return {"report": dg.MetadataValue.md(shown), "report_file": dg.MetadataValue.path(str(file))}
