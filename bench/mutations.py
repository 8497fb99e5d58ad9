"""Which small faults in the methods the unit tests would not notice: mutants drawn by a seed, and those that survive.

A mutant changes one thing in one line of ``strandline/``: a comparison, a sum, a number, or the sense of a condition.
The unit tests of the file's noun run on a copy of the tree that holds the mutant; where they all pass, it survived.
Survivors are printed with their line. Some change no result (a tie that cannot occur, a bound that is only wider): they
must be read, not counted.

    python bench/mutations.py --count 200 --seed 1 [--noun probe]
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOUNS = ("models", "releases", "probe", "spans", "perplexity", "contamination", "corpus", "scoring")
DEFAULT_COUNT = 20
"""As many as fit in some minutes of `make bench`; a verdict on the tests takes 200."""

SECONDS_A_MUTANT = 600
"""Longest that a noun's unit tests may take; a mutant that makes them hang has been noticed."""

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATIONS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """One changed expression: where it stands, and the source text before and after."""

    file: Path
    line: int
    column: int
    before: str
    after: str

    @property
    def noun(self) -> str:
        """The folder of tests that should notice it."""
        return self.file.parent.name

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.before}  ->  {self.after}"


def mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Every mutant of a file. What stands in formatted texts stays: its places are not told before Python 3.12."""
    tree = ast.parse(source)
    in_texts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        changed = None if id(node) in in_texts else _changed(node)
        before = ast.get_source_segment(source, node) if changed is not None else None
        if changed is not None and before and "\n" not in before:
            assert isinstance(node, ast.expr)
            yield Mutant(file, node.lineno, node.col_offset, before, ast.unparse(changed))


def _changed(node: ast.AST) -> ast.expr | None:
    """The expression with one thing changed; None where there is nothing to change in this node itself."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS and not _is_text(node):
        return ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    if isinstance(node, ast.IfExp):
        return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ast.Constant(node.value + 1)
    return None


def _is_text(node: ast.BinOp) -> bool:
    """Whether a side is a text: adding texts is no sum."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def all_mutants(nouns: tuple[str, ...]) -> list[Mutant]:
    """Every mutant of the nouns' methods, in the order of files and lines."""
    files = [file for noun in nouns for file in sorted((ROOT / "strandline" / noun).glob("*.py"))]
    return [m for file in files for m in mutants(file.relative_to(ROOT), file.read_text(encoding="utf-8"))]


def survives(mutant: Mutant, tree: Path) -> bool:
    """Whether the noun's unit tests pass on a tree that holds the mutant; the tree is whole again afterwards."""
    file = tree / mutant.file
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    line = lines[mutant.line - 1].encode()
    start, stop = mutant.column, mutant.column + len(mutant.before.encode())
    lines[mutant.line - 1] = (line[:start] + f"({mutant.after})".encode() + line[stop:]).decode()
    file.write_text("".join(lines), encoding="utf-8")
    try:
        return _tests_pass(mutant.noun, tree)
    finally:
        file.write_text(source, encoding="utf-8")


def _tests_pass(noun: str, tree: Path) -> bool:
    """A mutant that hangs has been noticed."""
    folders = [f"tests/unit/{layer}/{noun}" for layer in ("methods", "adapters")]
    there = [folder for folder in folders if (tree / folder).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *there]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=SECONDS_A_MUTANT, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Draw mutants, try them, and print what survives; the exit status says nothing about them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=DEFAULT_COUNT, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other mutants")
    parser.add_argument("--noun", choices=NOUNS, action="append", help="only these; all by default")
    options = parser.parse_args()
    every = all_mutants(tuple(options.noun or NOUNS))
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    survivors, started = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        kept = shutil.ignore_patterns(".git", ".venv", "cache", "warehouse", "published", "reports", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=kept)
        for number, mutant in enumerate(drawn, 1):
            survived = survives(mutant, tree)
            survivors += [mutant] if survived else []
            print(f"{number}/{len(drawn)} {'SURVIVED' if survived else 'noticed '} {mutant}", flush=True)
    share = len(survivors) / max(1, len(drawn))
    print(f"\n{len(survivors)} of {len(drawn)} mutants survive ({share:.1%}), drawn from {len(every)} by seed "
          f"{options.seed}, in {time.monotonic() - started:.0f} s")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
