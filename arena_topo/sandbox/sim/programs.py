"""What a container prints and how it ends: Arena's VGG16/ResNet50 benchmarks, or what would have run."""

import ast
import hashlib
import re
import shlex
import signal
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from arena_topo.errors import UsageError
from arena_topo.manifest.pods import words_of
from arena_topo.model.keys import (
    ACK_GPU,
    GPU_RESOURCES,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    RDMA,
    TOPOLOGY_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.plan import Range, Transport
from arena_topo.model.text.quantity import resources
from arena_topo.prediction.calibration import Calibration, shipped_calibration
from arena_topo.prediction.forecast import Workload, predict
from arena_topo.prediction.training import MODELS, Benchmark, benchmark_of
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.sim.objects import NODES, PODS

# How a container's command line would end, as far as it says so itself; nothing is ever executed.
#
# What is read: ``exit N``, ``true``, ``false``, ``sleep N``, ``wait``, ``set -e``, ``kill -9 $$``, joined by ``;``, ``&&``, ``||``,
# ``|``, ``&``, ``!`` and new lines, in ``sh -c`` and behind ``mpirun``, ``env``, ``exec``, ``timeout`` and the like; and of
# ``python -c``, exits, raised exceptions and ``time.sleep`` on its top level. Any other program counts as one that succeeds.
# A script with ``if``, loops, functions, ``case``, parentheses or an unclosed quote is not read: it counts as one program,
# which never ends where its text names a server, as the script does with which a worker starts sshd.
#
# Example: ``set -e; sleep 2; false; echo done`` ends after 2 seconds with 1; without ``set -e`` it ends with 0, as ``echo``
# does.

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_STARTERS = frozenset(
    {
        "mpirun",
        "mpiexec",
        "mpiexec.hydra",
        "horovodrun",
        "torchrun",
        "env",
        "exec",
        "time",
        "nohup",
        "timeout",
    }
    | {"stdbuf", "nice", "sudo", "command", "tini", "dumb-init"}
)
"""Programs whose arguments end in another command line."""
_SERVERS = frozenset({"sshd", "pause", "tail"})
"""Programs that never end by themselves; of ``tail``, only ``tail -f`` is one."""
_SERVER = re.compile(r"(?:^|[\s/;&|])(?:sshd|pause)(?:\s|$)|\bsleep\s+inf(?:inity)?\b|\btail\s+-[fF]\b")
"""A server in the text of a script that is not read."""
_COMPOUND = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function"}
    | {"{", "}", "(", ")", "[["}
)
_MOST_CHARACTERS = 20_000
_PYTHON = re.compile(r"python[\d.]*")
_LONGEST = 1e9  # seconds
_CODES = 256  # an exit code is one byte


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ends: its exit code, None where it never does, and the seconds it takes.

    ``known`` says whether the command line itself decides it; ``exits`` that no command after it is run.
    """

    code: int | None = 0
    seconds: float = 0.0
    known: bool = False
    exits: bool = False


_SUCCESS = Ending(0)
_FAILURE = Ending(1, known=True)


def ending_of(words: Sequence[str]) -> Ending:
    """Return how the command line *words* of a container ends."""
    try:
        return replace(_command(list(words)), exits=False)
    # Commands in commands, deeper than anybody types.
    except RecursionError:
        return _SUCCESS


def _command(words: list[str]) -> Ending:
    """Return how one program with its arguments ends."""
    # Assignments in front of a command are its environment.
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        words = words[1:]
    if not words:
        return _SUCCESS
    name, arguments = PurePath(words[0]).name, words[1:]
    readers = {**dict.fromkeys(_SHELLS, _shell), **dict.fromkeys(_STARTERS, _started), "sleep": _sleep}
    if read := _python if _PYTHON.fullmatch(name) else readers.get(name):
        return read(arguments)
    if name in _SERVERS and (name != "tail" or {"-f", "-F"} & set(arguments)):
        return Ending(None, known=True)
    return Ending(int(name == "false"), known=name in {"true", "false", ":", "echo", "printf"})


def _started(arguments: list[str]) -> Ending:
    """Return how the command behind a starter's own options ends: the first word that is a program known here."""
    for index, word in enumerate(arguments):
        name = PurePath(word).name
        known = name in _SHELLS | _STARTERS | _SERVERS | {"true", "false", "sleep"}
        if known or _PYTHON.fullmatch(name):
            return replace(_command(arguments[index:]), exits=False)
    return _SUCCESS


def _sleep(arguments: list[str]) -> Ending:
    """Return how ``sleep 10``, ``sleep 1m`` and ``sleep infinity`` end."""
    text = "".join(arguments[:1])
    if text in {"infinity", "inf"}:
        return Ending(None, known=True)
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", text)
    return Ending(0, float(match[1]) * units[match[2]], known=True) if match else _FAILURE


def _shell(arguments: list[str]) -> Ending:
    """Return how ``sh -c SCRIPT``, ``bash -ec SCRIPT`` and the like end."""
    for index, word in enumerate(arguments):
        # A cluster of letters ends with c where the script follows.
        if re.fullmatch(r"-[a-z]*c", word) and index + 1 < len(arguments):
            return replace(_script(arguments[index + 1], _options(arguments[: index + 1])), exits=False)
    return _SUCCESS


def _options(words: Sequence[str]) -> frozenset[str]:
    """Return which of ``e`` and ``pipefail`` the options of a shell, or of its ``set``, switch on."""
    letters = "".join(word for word in words if re.fullmatch(r"-[a-z]+", word))
    return frozenset({"e"} & set(letters)) | frozenset({"pipefail"} & set(words))


def _script(text: str, options: frozenset[str]) -> Ending:
    """Return how a script ends: commands one after the other, until one exits."""
    tokens = _tokens(text)
    if tokens is None:
        return Ending(None, known=True) if _SERVER.search(text) else _SUCCESS
    seconds, last, joint, known, waits = 0.0, _SUCCESS, ";", False, False
    for words, separator in _commands(tokens):
        skipped = (joint == "&&" and last.code != 0) or (joint == "||" and last.code == 0)
        if not skipped:
            result = Ending(None, known=True) if words == ["wait"] and waits else _in_script(words, last)
            # What runs in the background ends with the shell, unless the shell waits for it.
            if separator == "&":
                waits, result = waits or result.code is None, _SUCCESS
            # A pipe has the exit code of its last command, or with pipefail of the last that failed.
            if joint == "|" and "pipefail" in options and last.code and result.code == 0:
                result = replace(result, code=last.code)
            seconds, last, known = seconds + result.seconds, result, known or result.known
            if result.code is None or result.exits:
                return replace(result, seconds=seconds)
            options |= _options(words) if words[0] == "set" else frozenset()
        # With -e, a command that fails ends the script, but for one before && or ||, in a pipe, or behind "!".
        spared = skipped or separator in {"&&", "||", "|"} or words[0] == "!"
        if "e" in options and last.code and not spared:
            return replace(last, seconds=seconds, known=True)
        joint = separator
    return Ending(last.code, seconds, known=known)


def _in_script(words: list[str], last: Ending) -> Ending:
    """Return how a command of a script ends, the shell's own ones included; *last* is the one before."""
    if words[0] == "!":
        result = _in_script(words[1:], last) if words[1:] else _SUCCESS
        return result if result.code is None or result.exits else replace(result, code=int(result.code == 0))
    if words[0] == "exit":
        return replace(_exit(words[1:], last), exits=True)
    if words[0] == "exec" and words[1:]:
        return replace(_command(words[1:]), exits=True)
    if words[0] == "kill" and words[-1] == "$$":
        return Ending(128 + _signal(words[1:-1]), known=True, exits=True)
    return _command(words)


def _exit(words: list[str], last: Ending) -> Ending:
    if not words or words[0] == "$?":
        return Ending(last.code, known=True)
    if re.fullmatch(r"-?\d{1,9}", words[0]):
        return Ending(int(words[0]) % _CODES, known=True)
    # bash answers an exit that is no number with 2; what is in a variable is not known.
    return _SUCCESS if "$" in words[0] else Ending(2, known=True)


def _signal(words: list[str]) -> int:
    """Return the number of the signal that the options of ``kill`` name."""
    name = "".join(words).removeprefix("-").removeprefix("s").strip().upper().removeprefix("SIG")
    if name.isdecimal() and int(name) < signal.NSIG:
        return int(name)
    return int(getattr(signal, f"SIG{name}", signal.SIGTERM))


def _tokens(text: str) -> list[str] | None:
    """Return the words and operators of a script, None where it is more than a list of commands."""
    if len(text) > _MOST_CHARACTERS:
        return None
    # A comment may hold a quote that never ends.
    lines = re.sub(r"(?m)^\s*#.*$", "", text.replace("\\\n", " "))
    # The & of a redirection, as in 2>&1, separates nothing.
    lines = re.sub(r"\d*[<>]&[\d-]+|&>", " ", lines)
    reader = shlex.shlex(lines, posix=True, punctuation_chars=";&|()\n")
    reader.whitespace_split = True
    # By default the end of a line is a space, and a comment takes it along.
    reader.whitespace, reader.commenters = " \t\r", ""
    try:
        tokens = list(reader)
    except ValueError:
        return None
    return None if _COMPOUND & set(tokens) or "$(" in text or "`" in text else tokens


def _commands(tokens: Sequence[str]) -> list[tuple[list[str], str]]:
    """Return the commands with the separator behind each."""
    commands: list[tuple[list[str], str]] = []
    words: list[str] = []
    comment = False
    for token in [*tokens, "\n"]:
        comment = (comment or token.startswith("#")) and "\n" not in token
        if comment:
            continue
        # Several at once, such as two ends of lines, come as one token.
        separator = next((s for s in ("&&", "||", "|", "&", ";", "\n") if token.startswith(s)), "")
        if not separator or not set(token) <= set(";&|\n"):
            words.append(token)
        elif words:
            commands.append((words, separator))
            words = []
    return commands


def _python(arguments: list[str]) -> Ending:
    """Return how ``python -c TEXT`` ends; a script's file is not there to be read."""
    text = arguments[arguments.index("-c") + 1] if "-c" in arguments[:-1] else ""
    try:
        body = ast.parse(text[:_MOST_CHARACTERS]).body
    # What does not parse, Python itself refuses with 1.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _FAILURE
    seconds = 0.0
    for statement in body:
        code, pause = _statement(statement)
        seconds += pause
        if code is not None:
            return Ending(code, seconds, known=True)
    return Ending(0, seconds)


def _statement(statement: ast.stmt) -> tuple[int | None, float]:
    """Return the exit code of a statement that ends a program, None for any other, and the seconds that it takes."""
    match statement:
        case ast.Raise(exc=exception):
            return _raised(exception), 0.0
        case ast.Assert(test=ast.Constant(value=value)) if not value:
            return 1, 0.0
        case ast.Expr(value=ast.Call(func=function, args=values)):
            name = ast.unparse(function)
            if name in {"exit", "quit", "sys.exit", "os._exit"}:
                return _exit_code(values), 0.0
            if name in {"time.sleep", "sleep"} and values and isinstance(values[0], ast.Constant):
                value = values[0].value
                return None, float(value) if isinstance(value, int | float) and 0 < value < _LONGEST else 0.0
        case _:
            pass
    return None, 0.0


def _raised(exception: ast.expr | None) -> int:
    """Return the exit code of an exception that nobody catches."""
    match exception:
        case ast.Call(func=ast.Name(id="SystemExit"), args=values):
            return _exit_code(values)
        case ast.Name(id="SystemExit"):
            return 0
        case _:
            return 1


def _exit_code(values: Sequence[ast.expr]) -> int:
    """Return the exit code of ``sys.exit(...)``: none is 0, a number itself, everything else is printed and is 1."""
    if not values:
        return 0
    try:
        value = ast.literal_eval(values[0])
    except (ValueError, TypeError, RecursionError, MemoryError):
        return 1
    if value is None:
        return 0
    return int(value) % _CODES if isinstance(value, int) else 1


# How fast Arena's VGG16/ResNet50 benchmarks run where their ranks were placed, by the tool's own prediction.
#
# The simulation knows products and not links: rings over a whole group of GPUs that see each other run at a figure of
# their product, and GPUs whose speed nobody published compute as fast as a V100.

_INSIDE = {"V100": 93.0, "A100": 230.0, "H100": 370.0, "H200": 370.0}
"""GB/s of rings over GPUs that see each other, by product: the best four of a V100 cube mesh, NVSwitches elsewhere."""
_PUBLISHED = "V100"


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The ranks of one pod: where they run, and whether their GPUs see those of the node's other pods."""

    node: str
    ranks: int
    product: str
    visible: bool = False
    rdma: bool = False


def exchange(groups: Sequence[RankGroup], calibration: Calibration) -> tuple[Transport, float]:
    """Return the slowest transport that the ranks use, and its bus bandwidth in GB/s."""
    rates = calibration.bandwidths
    used = [_inside(group.product, rates.pcie.likely) for group in groups]
    nodes = [group.node for group in groups]
    # Pods that do not see each other's GPUs exchange over sockets, even on one node.
    if any(nodes.count(group.node) > 1 and not group.visible for group in groups):
        used.append((Transport.ISOLATED, rates.isolated.likely))
    # A ring is as fast as its slowest part: one pod without RDMA brings all ranks to TCP.
    if len(set(nodes)) > 1 and all(group.rdma for group in groups):
        used.append((Transport.RDMA, rates.rdma_card.likely * rates.rdma_share.likely))
    elif len(set(nodes)) > 1:
        used.append((Transport.TCP, rates.tcp.likely))
    return min(used, key=lambda pair: pair[1])


def _inside(product: str, pcie: float) -> tuple[Transport, float]:
    nvlink = next((rate for name, rate in _INSIDE.items() if name in product), 0.0)
    # An "A100-PCIE" has the family's name but no NVSwitch.
    return (Transport.PCIE, pcie) if not nvlink or "PCIE" in product.upper() else (Transport.NVLINK, nvlink)


def images_per_second(benchmark: Benchmark, groups: Sequence[RankGroup]) -> float:
    """Return the predicted images per second and GPU; a model without figures counts as ResNet50."""
    calibration = shipped_calibration()
    model = benchmark.model if benchmark.model in MODELS else "resnet50"
    transport, rate = exchange(groups, calibration)
    workload = Workload(model, benchmark.framework, benchmark.batch, speed=_speed(benchmark, model, groups))
    ranks = sum(group.ranks for group in groups)
    # The simulation has one rate where the planner has a range of likely ones.
    return predict(workload, ranks, Range(rate, rate, rate), transport, calibration).per_gpu.likely


def _speed(benchmark: Benchmark, model: str, groups: Sequence[RankGroup]) -> float:
    """Return the images per second of the slowest of the groups' GPUs by itself."""
    calibration = shipped_calibration()

    def of(product: str) -> float:
        try:
            return calibration.speed(benchmark.framework, model, product)
        # The calibration refuses products without published figures rather than guess.
        except UsageError:
            return calibration.speed(benchmark.framework, model, _PUBLISHED)

    return min(of(group.product) for group in groups)


ITERATIONS = 10
PRODUCT = "nvidia.com/gpu.product"
_LEAST_SECONDS = 0.5  # so that whoever watches sees a program run
_MPI_JOBS = ("kubeflow.org", "mpijobs")

Lines = tuple[tuple[float, str], ...]
"""Lines with the seconds that pass before each."""


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The lines that a container prints, and how it ends: an exit code, or None for never by itself."""

    lines: Lines = ()
    code: int | None = 0
    linger: float = 0.0


def program_of(api: Api, pod: Object) -> PodProgram | None:
    """Return what *pod* does, None while it has to wait, as a launcher does for its workers."""
    labels = pod["metadata"].get("labels") or {}
    # Only a launcher's output depends on others: mpirun starts the ranks of all workers.
    if labels.get(OPERATOR_JOB_ROLE) != "launcher":
        return _program(pod, [])
    namespace, job = pod["metadata"]["namespace"], labels[OPERATOR_JOB_NAME]
    stored = api.store.get(_MPI_JOBS, namespace, job)
    replicas = stored.body["spec"]["mpiReplicaSpecs"] if stored else {}
    running = [
        worker for worker in _workers(api, namespace, job) if worker["status"].get("phase") == "Running"
    ]
    if len(running) < int((replicas.get("Worker") or {}).get("replicas", 0)):
        return None
    return _program(pod, [group for worker in running if (group := _rank_group(api, worker)).ranks])


def _workers(api: Api, namespace: str, job: str) -> list[Object]:
    identity = {OPERATOR_JOB_NAME: job, OPERATOR_JOB_ROLE: "worker"}.items()
    pods = [stored.body for stored in api.store.scan(PODS, namespace)]
    return [pod for pod in pods if identity <= (pod["metadata"].get("labels") or {}).items()]


def _rank_group(api: Api, pod: Object) -> RankGroup:
    """Return the ranks of a worker: one for each GPU of its containers."""
    limits: dict[str, str] = {}
    for container in pod["spec"]["containers"]:
        limits |= container.get("resources", {}).get("limits") or {}
    node = api.store.get(NODES, "", pod["spec"]["nodeName"])
    labels = (node.body["metadata"].get("labels") or {}) if node else {}
    visible = TOPOLOGY_NAME in (pod["metadata"].get("labels") or {}) and ACK_GPU in limits
    amounts = resources(limits)
    ranks = sum(amounts.get(name, 0) for name in GPU_RESOURCES)
    return RankGroup(pod["spec"]["nodeName"], ranks, labels.get(PRODUCT, ""), visible, RDMA in limits)


def _program(pod: Object, groups: Sequence[RankGroup]) -> PodProgram:
    """Return what a pod's first container does, with its gang's ranks where they are."""
    container = pod["spec"]["containers"][0]
    # The names of workers resolve at once here, so that there is nothing to wait for.
    words = words_of(container)
    command, ending = " ".join(words), ending_of(words)
    benchmark = benchmark_of(command)
    if benchmark is not None and groups:
        return PodProgram(_benchmark_lines(benchmark, groups, pod["metadata"]["name"]), ending.code or 0)
    text = f"[arena-topo sandbox] nothing is executed here; this would run: {command or '(the image)'}"
    # A program that is meant to run always, and whose end nobody can know, is a server.
    is_server = not ending.known and pod["spec"].get("restartPolicy") == "Always"
    if ending.code is None or is_server:
        return PodProgram(((0.0, text),) if is_server else (), None)
    return PodProgram(((0.0, text),), ending.code, max(ending.seconds, _LEAST_SECONDS))


def _benchmark_lines(benchmark: Benchmark, groups: Sequence[RankGroup], seed: str) -> Lines:
    """Return what a benchmark prints on *groups* of ranks, with its deviations derived from *seed*."""
    speed, ranks = images_per_second(benchmark, groups), sum(group.ranks for group in groups)
    rates = [speed * (1 + _noise(seed, index)) for index in range(ITERATIONS)]
    # tf_cnn_benchmarks prints one total for all ranks, the PyTorch script a figure per GPU and iteration.
    if benchmark.framework == "tensorflow":
        return ((5.0, f"total images/sec: {ranks * rates[0]:.2f}"),)
    # The benchmark script prints the half-width of a 95 % interval: 1.96 standard deviations.
    mean, deviation = statistics.fmean(rates), 1.96 * statistics.pstdev(rates)
    return (
        (0.2, f"Model: {benchmark.model}"),
        (0.0, f"Batch size: {benchmark.batch}"),
        (0.0, f"Number of GPUs: {ranks}"),
        (0.3, "Running warmup..."),
        (1.0, "Running benchmark..."),
        *((1.0, f"Iter #{index}: {rate:.1f} img/sec per GPU") for index, rate in enumerate(rates)),
        (0.0, f"Img/sec per GPU: {mean:.1f} +-{deviation:.1f}"),
        (0.0, f"Total img/sec on {ranks} GPU(s): {ranks * mean:.1f} +-{ranks * deviation:.1f}"),
    )


def _noise(seed: str, index: int) -> float:
    """Return a repeatable deviation of at most 0.3 %."""
    digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    return (digest[0] / 255 - 0.5) * 0.006
