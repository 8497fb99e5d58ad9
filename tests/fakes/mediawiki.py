"""A real MediaWiki on loopback: installed into a temporary folder, filled with dated revisions, served by PHP itself.

Needs the packages that provide PHP with SQLite and MediaWiki's files; `missing()` says what is not there.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

CODE = Path(os.environ.get("STRANDLINE_MEDIAWIKI", "/usr/share/mediawiki"))
SETTINGS = """
$wgAPIMaxResultSize = 40000;
$wgJobRunRate = 0;
$wgUseDatabaseMessages = false;
$wgMainCacheType = CACHE_NONE;
$wgShowExceptionDetails = true;
"""


def missing() -> str | None:
    """What keeps a MediaWiki from being served here, or None."""
    if shutil.which("php") is None:
        return "PHP is not installed"
    if not (CODE / "maintenance" / "install.php").exists():
        return "MediaWiki is not installed"
    loaded = subprocess.run(["php", "-m"], capture_output=True, text=True, check=False).stdout.lower().split()
    absent = sorted({"pdo_sqlite", "mbstring", "xml", "intl", "curl"} - set(loaded))
    return f"PHP lacks {', '.join(absent)}" if absent else None


@dataclass(frozen=True)
class Edit:
    """A revision of a page: when, and the wikitext."""

    at: datetime
    text: str


class RealWiki:
    """`with RealWiki(folder, pages) as wiki: wiki.api`; `pages` are titles with their edits in order."""

    def __init__(self, folder: Path, pages: Mapping[str, Sequence[Edit]]) -> None:
        self._folder, self._pages = folder, pages
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.api = f"http://127.0.0.1:{self._port}/api.php"
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealWiki:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._maintain(
            "install.php", "--dbtype", "sqlite", "--dbpath", str(self._folder), "--dbname", "wiki", "--scriptpath", "",
            "--confpath", str(self._folder), "--server", f"http://127.0.0.1:{self._port}",
            "--pass", "a-long-password-1", "Wiki", "Operator", configured=False,
        )  # fmt: skip
        with (self._folder / "LocalSettings.php").open("a") as settings:
            settings.write(SETTINGS)
        self.load(self._pages)
        self._serve()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(timeout=10)

    def load(self, pages: Mapping[str, Sequence[Edit]]) -> None:
        """Import dated revisions."""
        dump = self._folder / "dump.xml"
        dump.write_text(_dump(pages), encoding="utf-8")
        self._maintain("importDump.php", "--no-updates", str(dump))

    def move(self, old: str, new: str) -> None:
        """Move a page, leaving a redirect."""
        self._batch("moveBatch.php", f"{old}|{new}")

    def delete(self, title: str) -> None:
        """Delete a page."""
        self._batch("deleteBatch.php", title)

    def revisions(self) -> dict[tuple[str, str], int]:
        """Revision ids by (title with underscores, timestamp as 20200131235959), as the database has them."""
        tables = "revision join page on page_id = rev_page where page_namespace = 0"
        rows = self._sql(f"select page_title, rev_timestamp, rev_id from {tables}")
        return {(title, stamp): number for title, stamp, number in rows}

    def hide(self, revision: int, *, suppressed: bool = False) -> None:
        """Hide the text of a revision from readers, or also from administrators."""
        self._sql("update revision set rev_deleted = ? where rev_id = ?", 9 if suppressed else 1, revision)

    def _sql(self, statement: str, *values: object) -> list[tuple[str, str, int]]:
        with closing(sqlite3.connect(self._folder / "wiki.sqlite", timeout=30)) as connection, connection:
            rows = connection.execute(statement, values).fetchall()
        return [tuple(_text(cell) for cell in row) for row in rows]  # type: ignore[misc]

    def _batch(self, script: str, line: str) -> None:
        listing = self._folder / "batch.txt"
        listing.write_text(line + "\n", encoding="utf-8")
        self._maintain(script, str(listing))

    def _maintain(self, script: str, *arguments: str, configured: bool = True) -> None:
        environment = self._environment() if configured else dict(os.environ)
        done = subprocess.run(
            ["php", str(CODE / "maintenance" / script), *arguments], env=environment, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{script} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _environment(self) -> dict[str, str]:
        settings = str(self._folder / "LocalSettings.php")
        return {**os.environ, "MW_CONFIG_FILE": settings, "PHP_CLI_SERVER_WORKERS": "2"}

    def _serve(self) -> None:
        command = ["php", "-S", f"127.0.0.1:{self._port}", "-t", str(CODE)]
        log = (self._folder / "server.log").open("wb")
        self._server = subprocess.Popen(command, env=self._environment(), stdout=log, stderr=log, cwd=CODE)
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{self.api}?action=query&format=json", timeout=10).read()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the wiki does not answer: {(self._folder / 'server.log').read_text()[-1000:]}")


def _text(cell: object) -> object:
    return cell.decode() if isinstance(cell, bytes) else cell


def _dump(pages: Mapping[str, Sequence[Edit]]) -> str:
    body = "".join(
        f"<page><title>{escape(title)}</title><ns>0</ns>{''.join(_revision(edit) for edit in edits)}</page>\n"
        for title, edits in pages.items()
    )
    schema = 'xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en"'
    return f"<mediawiki {schema}>\n{body}</mediawiki>"


def _revision(edit: Edit) -> str:
    return (
        f"<revision><timestamp>{edit.at:%Y-%m-%dT%H:%M:%SZ}</timestamp><contributor><username>Writer</username></contributor>"
        "<model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(edit.text)}</text></revision>'
    )
