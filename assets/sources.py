"""Where the first tables come from: settings files, committed facts and sources of others, as external assets.

They are not made here and have no step; they stand in the graph so that lineage does not end at our first table. Each
says in its metadata where it lies. What is read from them belongs to the nouns.
"""

import dagster as dg

# The group that shows all sources together in the asset graph.
GROUP = "sources"


def _file(path: str, description: str) -> tuple[str, str, str]:
    """A file of the repository: its address, its kind by its ending, and what it holds."""
    return f"file:{path}", path.split(".")[1], description


SOURCES: dict[str, tuple[str, str, str]] = {
    "models_yaml": _file("data/models.yaml", "The models that a user lists, and how they are asked."),
    "spans_yaml": _file("data/spans.yaml", "The versioned resources that a user lists."),
    "benchmarks_csv": _file("data/benchmarks.csv", "The benchmarks that a user lists, and where their files lie."),
    "corpora_yaml": _file("data/corpora.yaml", "The training corpora that a user lists, and where their files lie."),
    "references_yaml": _file("data/references.yaml", "The models that serve as references for others."),
    "declared_cutoffs_csv": _file("data/declared_cutoffs.csv", "Claims of cutoffs, each with its source."),
    "training_corpora_csv": _file("data/training_corpora.csv", "Corpora in the training mix of models."),
    "release_facts": _file("data/releases/releases.csv.gz", "The committed releases of tracked projects."),
    "registries": ("settings:pip+npm", "web", "Package registries, GitHub, Node.js and python.org, when refreshed."),
    "documents": ("settings:data/spans.yaml", "web", "Wikis, package indexes, git repositories and news archives."),
    "benchmark_files": ("settings:data/benchmarks.csv", "file", "The files of the listed benchmarks."),
    "corpus_files": ("settings:data/corpora.yaml", "file", "The files of the listed corpora."),
    "models": ("settings:data/models.yaml", "model", "Weights and endpoints of the listed models."),
}
"""Sources by name: where each lies, what kind of thing it is, and what it holds. One line adds one."""


def key(name: str) -> dg.AssetKey:
    """The asset key of a source; KeyError where it is not listed here."""
    if name not in SOURCES:
        raise KeyError(f"{name!r} is no source; there are {', '.join(SOURCES)}")
    return dg.AssetKey(["source", name])


# What the code location collects from this module.
ASSETS = [
    dg.AssetSpec(
        key(name),
        description=description,
        group_name=GROUP,
        kinds={kind},
        metadata={"dagster/uri": address},
    )
    for name, (address, kind, description) in SOURCES.items()
]
