"""Dagster's view of compute: which backend does the heavy work, and with how many workers."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from resources.compute import Compute, LocalCompute
from resources.ray_compute import RayCompute


class ComputeResource(dg.ConfigurableResource):
    """Where scoring runs: threads of the step's process, or actors of a Ray cluster. The numbers are the same."""

    backend: str = Field(default="local", description="local, or ray.")
    workers: int | None = Field(default=None, ge=1, description="Threads, or actors. None: as many as there are cores.")
    address: str = Field(default="auto", description="The Ray cluster; auto is the one this machine belongs to.")
    cpus_per_worker: float = Field(default=1, gt=0, description="Cores of a Ray actor.")
    gpus_per_worker: float = Field(default=0, ge=0, description="Accelerators of a Ray actor, or a fraction of one.")

    def open(self) -> Compute:
        """The plain adapter; nothing is started before it is given work. ValueError for an unknown backend."""
        if self.backend == "local":
            return LocalCompute(self.workers)
        if self.backend == "ray":
            return RayCompute(self.address, workers=self.workers, cpus=self.cpus_per_worker, gpus=self.gpus_per_worker)
        raise ValueError(f"the compute backend is local or ray, not {self.backend!r}")
