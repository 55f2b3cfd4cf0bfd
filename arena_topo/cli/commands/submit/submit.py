"""``arena-topo submit``."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from arena_topo.cli.command import argument, command, option, text
from arena_topo.cli.commands.submit.creation import (
    WITHOUT_PLAN,
    CreationFlags,
    create_as_asked,
    print_notes,
    print_objects,
)
from arena_topo.cli.commands.submit.manifest_file import submit_manifest
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.dry_run import DryRun
from arena_topo.cli.options.flags_file import FileCommand, TypedFlags
from arena_topo.cli.options.job import (
    CommonJobFlags,
    IndexedJobFlags,
    JobFlags,
    JobSetFlags,
    PyTorchFlags,
    TrainFlags,
)
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.cli.options.kinds.described import KIND_ALIASES, described_job
from arena_topo.cli.options.kinds.elastic import check_elastic
from arena_topo.cli.options.kinds.tf import TfFlags
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import Notation
from arena_topo.cli.options.placement import (
    EnforcementFlags,
    PlanFlags,
    check_gang,
    held_by_kube_queue,
    place_options,
)
from arena_topo.cli.snapshot_source import write_text
from arena_topo.cli.terminal import say
from arena_topo.errors import ConnectionFailed, DocumentError, UsageError
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.connection_flags import ConnectionFlags

if TYPE_CHECKING:
    from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
    from arena_topo.model.job.job_spec import JobSpec

submit = CommandGroup(
    name="submit",
    aliases=KIND_ALIASES,
    of_file="manifest",
    help="Submit a training job.",
)


class MPIJobVersion(Notation[ApiVersion]):
    """A version of MPIJob, with or without its group."""

    name = "text"
    empty_is_default = True

    def read(self, text: str, flag: str) -> ApiVersion:
        """Return the version."""
        short = text.removeprefix("kubeflow.org/")
        if short not in {version.value for version in ApiVersion}:
            raise UsageError(
                f"{flag}: {text!r} is not a version of MPIJob", hint="use v2beta1, v1 or v1alpha1"
            )
        return ApiVersion(short)


def flags_file() -> str:
    """Return the flag ``--file``, which ``FileCommand`` reads."""
    return text("-f", "--file", metavar="FILE", help="Flags as YAML, as --save writes them; - for stdin.")


def api_version() -> ApiVersion | None:
    """Return the flag ``--api-version``."""
    return option(
        "--api-version",
        type=MPIJobVersion(),
        metavar="TEXT",
        help="Version of MPIJob: v2beta1, v1 or v1alpha1.",
    )


def template() -> str:
    """Return the flag ``--template``."""
    return text(
        "--template",
        metavar="PATH",
        help="Template, or directory of templates, to use instead of the packaged ones.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitFlags:
    """What ``submit`` takes of any kind of job."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="COMMAND | -- COMMAND ARGS...")
    argv: tuple[str, ...] | None
    typed: TypedFlags
    file: str = flags_file()
    save: str = text(
        "--save", metavar="FILE", help="Write the flags as YAML for -f, and submit nothing; - for stdout."
    )
    job: CommonJobFlags
    plan: PlanFlags
    enforcement: EnforcementFlags
    template: str = template()
    creation: CreationFlags
    kube: KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitMpiFlags(SubmitFlags):
    """What ``submit mpi`` takes."""

    job: JobFlags
    api_version: ApiVersion | None = api_version()


@command("mpi", SubmitMpiFlags, cls=FileCommand)
def mpi(flags: SubmitMpiFlags) -> None:
    """Submit an MPI job.

    The job's command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --gang --gputopology=true \\
          --image=IMAGE "mpirun -np 4 python train.py"
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --image=IMAGE -- mpirun -np 4 python train.py
      arena-topo submit mpi -f vgg16.yaml --name=vgg16-2
    """
    _run(flags, "mpi", flags.api_version)


@command("pytorch", SubmitFlags, cls=FileCommand, parts={"job": PyTorchFlags})
def pytorch(flags: SubmitFlags) -> None:
    """Submit a PyTorch job.

    Its pods are one master and workers, --workers in all; the operator gives each what torchrun reads, so that the
    command needs no addresses. The command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit pytorch --name=bert --workers=4 --gpus=8 --nproc-per-node=gpu --gputopology=true \\
          --image=IMAGE "torchrun train.py"
    """
    _run(flags, "pytorch")


@command("tf", SubmitFlags, cls=FileCommand, parts={"job": TfFlags})
def tf(flags: SubmitFlags) -> None:
    """Submit a TensorFlow job.

    Its roles are workers and, where asked for, parameter servers, a chief and an evaluator; the operator tells each of all
    others in TF_CONFIG. With a plan parameter servers go where NIC rate is free: plan tf shows it. The command is one
    quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit tf --name=wide --workers=4 --gpus=2 --ps=2 --ps-cpu=8 --gputopology=true \\
          --image=IMAGE "python train.py"
      arena-topo submit tf --name=est --chief --evaluator --workers=2 --gpus=1 --image=IMAGE "python train.py"
    """
    _run(flags, "tf")


@command("jobset", SubmitFlags, cls=FileCommand, parts={"job": JobSetFlags})
def jobset(flags: SubmitFlags) -> None:
    """Submit a JobSet.

    It is one Job of --workers pods, which find each other as NAME-worker-0-0.NAME, NAME-worker-0-1.NAME and so on, each
    with its index in JOB_COMPLETION_INDEX. --retry is how often the whole set is started again. The command is one quoted
    string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit jobset --name=bert --workers=4 \\
          --gpus=8 --gputopology=true --image=IMAGE \\
          './train.sh $JOB_COMPLETION_INDEX'
    """
    _run(flags, "jobset")


@command("train", SubmitFlags, cls=FileCommand, parts={"job": TrainFlags})
def train(flags: SubmitFlags) -> None:
    """Submit a TrainJob of Kubeflow Trainer.

    --runtime names the runtime, which has the pods; --workers is their number, and what is left out here is as the runtime
    says. The pods that train are planned and pinned; initializers run wherever there is room. The command is one quoted
    string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit train --name=bert --workers=4 \\
          --runtime=torch-distributed --gpus=8 \\
          --gputopology=true "torchrun train.py"
    """
    _run(flags, "train")


@command("job", SubmitFlags, cls=FileCommand, parts={"job": IndexedJobFlags})
def job(flags: SubmitFlags) -> None:
    """Submit an indexed Job of Kubernetes itself, which needs no operator.

    Its --workers pods find each other as NAME-0.NAME, NAME-1.NAME and so on, by a Service that is created with it, each
    with its index in JOB_COMPLETION_INDEX. --retry is how many of its pods may fail or get lost, and are replaced. The
    command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit job --name=bert --workers=4 \\
          --gpus=8 --gputopology=true --image=IMAGE \\
          './train.sh $JOB_COMPLETION_INDEX'
    """
    _run(flags, "job")


def _run(flags: SubmitFlags, word: str, version: ApiVersion | None = None) -> None:
    """Do what *flags* say with the job that they describe, of the kind that *word* names."""
    from arena_topo.jobs.submit.options import SubmitOptions

    flags.creation.check(word)
    check_gang(flags.enforcement, gang=flags.job.gang)
    options = SubmitOptions(version=version, template=flags.template)
    place = place_options(flags.plan, flags.enforcement, follow=flags.creation.follow)
    described = described_job(flags.job, words=flags.words, argv=flags.argv, namespace=_namespace(flags))
    check_elastic(described, place.plan)
    if described.elastic and described.elastic.grows:
        # More workers are planned beside those that were.
        place = replace(place, plan=replace(place.plan, grow=True), requested=True)
    job = held_by_kube_queue(described, flags.enforcement)
    # What cannot be submitted is not worth saving: the flags were read before.
    if flags.save:
        save_flags(flags.typed, flags.save, word)
        return
    if flags.creation.dry_run is DryRun.CLIENT:
        _client_dry_run(job, options, place, flags)
        return
    from arena_topo.jobs.submit.submit import prepare
    from arena_topo.kube.session import connect

    session = connect(flags.kube)
    create_as_asked(session, prepare(session, job, options, place), place, flags.creation, flags.kube)


submit.add_command(mpi)
submit.add_command(pytorch)
submit.add_command(tf)
submit.add_command(train)
submit.add_command(jobset)
submit.add_command(job)
submit.add_command(submit_manifest)


def save_flags(typed: TypedFlags, file: str, word: str) -> None:
    """Write the flags that were typed to *file*, ``-`` for stdout, as ``-f`` reads them."""
    from arena_topo.output.documents import document

    written = document(typed.document, "yaml")
    if file == "-":
        sys.stdout.write(written)
        return
    write_text(Path(file), written)
    say(f"saved, and not submitted: arena-topo submit {word} -f {file} does that")


def _client_dry_run(
    job: "JobSpec", options: "SubmitOptions", place: "PlaceOptions", flags: SubmitFlags
) -> None:
    """Print what would be sent: in the cluster's version of MPIJob where one answers, else in the newest."""
    from arena_topo.jobs.submit.submit import prepare, prepare_offline
    from arena_topo.kube.kubeconfig import configured_target

    try:
        # Whoever has no cluster need not import what talks to one.
        configured_target(flags.kube)
        from arena_topo.kube.session import connect

        # Nothing will be created, and a job of the name is in nobody's way.
        prepared = prepare(connect(flags.kube), job, options, place, may_exist=True)
    except (ConnectionFailed, DocumentError) as error:
        if names_cluster(flags.kube):
            raise
        say(f"no cluster reachable ({error.message}); rendering for the current version of {job.kind}")
        prepared = prepare_offline(job, options)
    print_notes(prepared.warnings, prepared.notes)
    print_objects(prepared.manifest.objects, flags.creation.output, " (dry run)")
    if prepared.enforcement:
        say(WITHOUT_PLAN)


def names_cluster(connection: ConnectionFlags) -> bool:
    """Whether the user named a kubeconfig or a context, which is then never ignored."""
    return bool(connection.kubeconfig or connection.context)


def _namespace(flags: SubmitFlags) -> str:
    from arena_topo.kube.kubeconfig import default_namespace, resolve

    try:
        target = resolve(flags.kube)
    except DocumentError:
        # A dry run needs no kubeconfig, unless the user named one.
        if flags.creation.dry_run is not DryRun.CLIENT or names_cluster(flags.kube):
            raise
        target = None
    return target.namespace if target else flags.kube.namespace or default_namespace()
