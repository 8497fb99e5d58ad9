"""What two copies have in common, coloured: the display of the paper's Tables 2 to 4.

Exact matches of at least eight characters get a colour each, the same on both sides; what differs stays plain. Matches
come from the edits of a shortest edit script over words, so they appear in the same order on both sides: text that was
moved is shown as a difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rapidfuzz.distance import Levenshtein

from strandline.corpus.texts import nfc
from strandline.numeric_input import whole_number

COLOURS = ("#b7e1cd", "#fce8b2", "#c9daf8", "#f4c7c3", "#d9d2e9", "#fff2a8")
"""Light colours on which black text reads well, in the order in which matches take them."""

LEAST = 8
"""Characters of a match that is coloured: shorter ones are words that any two texts share."""
# Runs of space, words, and single signs: together they cover every character of a text.
_TOKEN = re.compile(r"\s+|[^\W_]+|[^\w\s]|_")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text: `match` numbers the exact match it belongs to, None where the texts differ."""

    text: str
    match: int | None


@dataclass(frozen=True, slots=True)
class PairDisplay:
    """Two texts cut into pieces; the pieces of each, joined, are the text again."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]

    @property
    def shared(self) -> float:
        """The share of the characters of both texts that stands in exact matches."""
        total = sum(len(piece.text) for piece in self.left + self.right)
        matched = sum(len(piece.text) for piece in self.left + self.right if piece.match is not None)
        return matched / total if total else 0.0


def compare(left: str, right: str, least: int = LEAST) -> PairDisplay:
    """Cut two texts into exact matches of at least `least` characters (one or more) and the rest."""
    least = whole_number(least, "the least length of a match", 1)
    tokens = _TOKEN.findall(nfc(left)), _TOKEN.findall(nfc(right))
    lefts: list[Piece] = []
    rights: list[Piece] = []
    matches = 0
    for code in Levenshtein.opcodes(*tokens):
        one = "".join(tokens[0][code.src_start : code.src_end])
        other = "".join(tokens[1][code.dest_start : code.dest_end])
        is_match = code.tag == "equal" and len(one) >= least
        number = matches if is_match else None
        matches += is_match
        lefts.append(Piece(one, number))
        rights.append(Piece(other, number))
    return PairDisplay(_joined(lefts), _joined(rights))


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].match is None and piece.match is None:
            joined[-1] = Piece(joined[-1].text + piece.text, None)
        elif piece.text:
            joined.append(piece)
    return tuple(joined)


def shortened(pieces: Sequence[Piece], context: int) -> tuple[Piece, ...]:
    """The pieces without the middle of each long match, so that a page of agreement does not hide a difference.

    Raises ValueError where less than one character would be kept.
    """
    context = whole_number(context, "the characters kept at each end of a match", 1)
    cut = []
    for piece in pieces:
        long = piece.match is not None and len(piece.text) > 2 * context
        text = f"{piece.text[:context]} … {piece.text[-context:]}" if long else piece.text
        cut.append(Piece(text, piece.match))
    return tuple(cut)


def as_html(display: PairDisplay, left_title: str, right_title: str, context: int | None = 300) -> str:
    """Both texts side by side with coloured matches, as a self-contained HTML fragment. Texts are escaped."""
    sides = [
        f'<div style="flex:1;min-width:20em"><p><b>{escape(title)}</b></p>'
        f'<p style="white-space:pre-wrap">{_html(pieces if context is None else shortened(pieces, context))}</p></div>'
        for title, pieces in ((left_title, display.left), (right_title, display.right))
    ]
    return f'<div style="display:flex;gap:1.5em;flex-wrap:wrap">{"".join(sides)}</div>'


def as_markdown(display: PairDisplay, left_title: str, right_title: str, context: int | None = 300) -> str:
    """Both texts one below the other, what differs in bold: for places that show no colours."""
    parts = []
    for title, pieces in ((left_title, display.left), (right_title, display.right)):
        chosen = pieces if context is None else shortened(pieces, context)
        parts.append(f"**{_plain(title)}**\n\n> " + "".join(_bold(piece) for piece in chosen))
    return "\n\n".join(parts)


def as_text(display: PairDisplay, context: int | None = 300) -> str:
    """Both texts for a terminal, what differs between ⟦ and ⟧."""
    lines = []
    for pieces in (display.left, display.right):
        chosen = pieces if context is None else shortened(pieces, context)
        lines.append("".join(piece.text if piece.match is not None else f"⟦{piece.text}⟧" for piece in chosen))
    return "\n---\n".join(lines)


def _html(pieces: Sequence[Piece]) -> str:
    return "".join(
        escape(piece.text)
        if piece.match is None
        else f'<span style="background:{COLOURS[piece.match % len(COLOURS)]}">{escape(piece.text)}</span>'
        for piece in pieces
    )


def _bold(piece: Piece) -> str:
    text = _plain(piece.text).replace("\n", " ⏎ ")
    if piece.match is not None or not text.strip():
        return text if piece.match is not None else text.replace(" ", "␣")
    return f" **{text.strip()}** "


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text)
