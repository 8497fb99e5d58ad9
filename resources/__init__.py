"""The world: adapters to storage, networks, models and clusters.

Each module gives plain classes; ``configured`` wraps them for Dagster. Methods belong in ``strandline``, what is
materialized belongs in ``assets``.
"""
