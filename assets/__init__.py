"""What is materialized: thin Dagster glue, one module a family.

Bodies read, call one pure function, write one table and return metadata. Algorithms belong in ``strandline``, access to
the world in ``resources``.
"""
