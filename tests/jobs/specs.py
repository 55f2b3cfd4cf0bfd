"""A job with requests of every kind, as the tests of demands and plans describe it."""

from arena_topo.model.job import Compute, JobSpec, LauncherOptions, PodOptions
from arena_topo.model.pods import Toleration

JOB = JobSpec(
    name="job",
    namespace="default",
    image="i",
    command=("c",),
    workers=4,
    gpus=2,
    slots=2,
    compute=Compute(cpu="500m", memory="1Gi"),
    pod=PodOptions(
        selector={"pool": "a"}, tolerations=(Toleration("gpu", "Exists"),), rdma=True, devices={"x/y": "1"}
    ),
    launcher=LauncherOptions(compute=Compute(cpu="2"), selector={"pool": "b"}),
)
