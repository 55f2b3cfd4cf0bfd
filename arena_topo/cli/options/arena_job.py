"""The flags of Arena's that bring something beside a job: its code, TensorBoard, and a name for what it trains."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import text
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.errors import UsageError
from arena_topo.model.job import validation

if TYPE_CHECKING:
    from arena_topo.model.job.job_spec import CodeSync, TensorBoard, TrainedModel

# The images that kubernetes/git-sync and TensorFlow publish themselves; the latter has TensorBoard in it.
_GIT_SYNC = "registry.k8s.io/git-sync/git-sync:v4.4.0"
_TENSORBOARD = "tensorflow/tensorflow:2.17.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaJobFlags:
    """What comes beside a job; the spellings in camel case are Arena's older ones."""

    sync_mode: str = text(
        "--sync-mode", "--syncMode", type=TEXT, help="Fetch code before the job starts: git or rsync."
    )
    sync_source: str = text(
        "--sync-source",
        "--syncSource",
        type=TEXT,
        help="Where the code is: a URL of git, or a source of rsync. It is found in WORKING-DIR/code.",
    )
    sync_image: str = text(
        "--sync-image",
        "--syncImage",
        type=TEXT,
        help=f"Image that fetches the code; {_GIT_SYNC} for git, and none for rsync.",
    )
    tensorboard: bool = go_flag("--tensorboard", help="Run TensorBoard beside the job, behind a Service.")
    tensorboard_image: str = text(
        "--tensorboard-image",
        "--tensorboardImage",
        type=TEXT,
        default=_TENSORBOARD,
        help="Image of TensorBoard.",
    )
    logdir: str = text(
        "--logdir",
        type=TEXT,
        default="/training_logs",
        help="Folder that TensorBoard reads; outside of --data one of the node's is mounted there.",
    )
    model_name: str = text("--model-name", type=TEXT, help="Name of the model, kept as a label of the job.")
    model_source: str = text(
        "--model-source", type=TEXT, help="Where the model will be, kept as an annotation of the job."
    )


def code_sync(flags: ArenaJobFlags) -> "CodeSync | None":
    """Return how the job's code is fetched, None where it is in the image. Raises ``UsageError``."""
    from arena_topo.model.job.job_spec import CodeSync

    mode = flags.sync_mode
    if not mode:
        if flags.sync_source or flags.sync_image:
            raise UsageError("--sync-source and --sync-image need --sync-mode", hint="use git or rsync")
        return None
    if mode not in ("git", "rsync"):
        known = "Arena's help names it, and Arena cannot do it either; " if mode == "hdfs" else ""
        raise UsageError(f"unsupported --sync-mode {mode!r}", hint=f"{known}use git or rsync")
    if not flags.sync_source:
        raise UsageError(
            f"--sync-source must be set for --sync-mode={mode}", hint="it says where the code is"
        )
    image = flags.sync_image or {"git": _GIT_SYNC}.get(mode, "")
    if not image:
        raise UsageError(
            "--sync-mode=rsync needs --sync-image",
            hint="nobody publishes an image of rsync that could be the default: name one that has it",
        )
    return CodeSync(mode, flags.sync_source, image)


def tensorboard(flags: ArenaJobFlags) -> "TensorBoard | None":
    """Return the TensorBoard beside the job, None without one."""
    from arena_topo.model.job.job_spec import TensorBoard

    return TensorBoard(flags.tensorboard_image, flags.logdir) if flags.tensorboard else None


def trained_model(flags: ArenaJobFlags) -> "TrainedModel | None":
    """Return the model that the job trains, None where it has no name. Raises ``UsageError``."""
    from arena_topo.model.job.job_spec import TrainedModel

    if not flags.model_name:
        if flags.model_source:
            raise UsageError("--model-source needs --model-name", hint="the source is that of a named model")
        return None
    validation.check_labels("--model-name", {"modelName": flags.model_name})
    if not flags.model_source:
        raise UsageError(
            "--model-source must be set with --model-name", hint="for example pvc://ml/models/vgg16"
        )
    return TrainedModel(flags.model_name, flags.model_source)
