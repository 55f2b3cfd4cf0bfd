"""The benchmarks whose speed can be predicted, by their commands."""

import pytest

from arena_topo.prediction.training import Benchmark, benchmark_of


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(
            "mpirun python /examples/pytorch_synthetic_benchmark.py --model=vgg16 --batch-size=64",
            Benchmark("pytorch", "vgg16", 64),
            id="PyTorch",
        ),
        pytest.param(
            "mpirun python tf_cnn_benchmarks.py --model vgg16 --batch_size 128",
            Benchmark("tensorflow", "vgg16", 128),
            id="TensorFlow",
        ),
        pytest.param(
            "python pytorch_synthetic_benchmark.py", Benchmark("pytorch", "resnet50", 32), id="its defaults"
        ),
        pytest.param("mpirun python train.py --model=vgg16", None, id="another program"),
    ],
)
def test_a_benchmark_is_known_by_its_script(command: str, expected: Benchmark | None) -> None:
    """With its model and its batch."""
    assert expected == benchmark_of(command)
