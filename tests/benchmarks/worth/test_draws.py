"""What the nodes have next to the job, seed by seed."""

from benchmarks.worth.draws import others

_NODES = ["node-a", "node-b"]


def test_every_second_seed_has_a_pod_on_each_node() -> None:
    """With the others all nodes are equal."""
    assert [[], _NODES] == [[pod["spec"]["nodeName"] for pod in others(_NODES, seed)] for seed in (2, 3)]


def test_a_seed_is_the_same_each_time_and_takes_no_gpu() -> None:
    """Cpu and memory only, in other amounts than those of other seeds."""
    requests = [
        [pod["spec"]["containers"][0]["resources"]["requests"] for pod in others(_NODES, seed)]
        for seed in (1, 1, 3)
    ]

    assert requests[0] == requests[1] != requests[2]
    assert {"cpu", "memory"} == set(requests[0][0])
