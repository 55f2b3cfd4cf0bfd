"""``arena-topo submit -f`` and ``arena-topo plan -f`` with a manifest that somebody has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import command, output_format, text
from arena_topo.cli.commands.submit.creation import (
    WITHOUT_PLAN,
    CreationFlags,
    create_as_asked,
    print_objects,
)
from arena_topo.cli.commands.submit.printed_plan import FORMS, print_plan
from arena_topo.cli.options.dry_run import DryRun
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.placement import (
    EnforcementFlags,
    PlanFlags,
    check_gang,
    place_options,
    plan_options,
)
from arena_topo.cli.snapshot_source import from_file, product, read_text, unreserved
from arena_topo.cli.terminal import say
from arena_topo.errors import ExitCode, UsageError
from arena_topo.user_files import LARGEST_SETTING

if TYPE_CHECKING:
    from arena_topo.kube.session import Session
    from arena_topo.model.objects import Object


def manifest_file() -> str:
    """Return the flag ``--file`` of a manifest."""
    return text(
        "-f",
        "--file",
        metavar="FILE",
        required=True,
        help="The job as YAML or JSON: an MPIJob, PyTorchJob, TFJob, TrainJob, JobSet or indexed Job; - for stdin.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitManifestFlags:
    """What ``submit -f`` takes."""

    file: str = manifest_file()
    gang: bool = go_flag("--gang", help="Start all pods or none, by a gang scheduler.")
    plan: PlanFlags
    enforcement: EnforcementFlags
    creation: CreationFlags
    kube: KubeFlags


@command("manifest", SubmitManifestFlags)
def submit_manifest(flags: SubmitManifestFlags) -> None:
    """Submit a job that a manifest describes: submit -f FILE.

    The job is planned, and gets what keeps it in its place: labels, annotations, and a suspension until its plan is
    confirmed. Everything else of it stays as it was written. --pin=none creates it without a plan.

    \b
      arena-topo submit -f job.yaml
      arena-topo submit -f job.yaml --require-topology=rack --wait
      kubectl get pytorchjob bert -o yaml | arena-topo plan -f -
    """
    from arena_topo.jobs.submit.manifest_file import offline, prepare_manifest
    from arena_topo.kube.session import connect

    creation = flags.creation
    creation.check("-f FILE")
    if flags.plan.coalesce:
        raise UsageError("--coalesce gives a job fewer and larger pods, and a manifest keeps its own")
    check_gang(flags.enforcement, gang=flags.gang)
    job = _job(flags.file)
    place = place_options(flags.plan, flags.enforcement, follow=creation.follow)
    if creation.dry_run is DryRun.CLIENT:
        prepared = offline(job, _namespace(job, flags.kube))
        print_objects(prepared.manifest.objects, creation.output, " (dry run)")
        say(WITHOUT_PLAN)
        return
    session = _within(connect(flags.kube), job, flags.kube)
    prepared = prepare_manifest(session, job, place, gang=flags.gang)
    create_as_asked(session, prepared, place, creation, flags.kube)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanManifestFlags:
    """What ``plan -f`` takes."""

    file: str = manifest_file()
    plan: PlanFlags
    snapshot: str = from_file()
    product: str = product()
    output: str = output_format(*FORMS)
    kube: KubeFlags


@command("manifest", PlanManifestFlags)
def plan_manifest(flags: PlanManifestFlags) -> ExitCode:
    """Show where a job that a manifest describes would run, and why: plan -f FILE.

    Nothing is created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan -f job.yaml
      arena-topo plan -f job.yaml --from cluster.json
    """
    from arena_topo.jobs.placement.plan import plan_job
    from arena_topo.jobs.submit.manifest_file import plannable
    from arena_topo.kube.session import connect

    options = plan_options(flags.plan)
    if flags.file == flags.snapshot == "-":
        raise UsageError("the manifest and the cluster cannot both come from stdin")
    job = _job(flags.file)
    session = None if flags.snapshot else _within(connect(flags.kube), job, flags.kube)
    job = plannable(session, job)
    snapshot = unreserved(flags.kube, file=flags.snapshot, product=flags.product, levels=options.levels)
    verdict = plan_job(job, snapshot, options)
    return print_plan(str(job["metadata"]["name"]), verdict, snapshot, flags.output)


def _job(file: str) -> "Object":
    from arena_topo.jobs.submit.manifest_file import job_in
    from arena_topo.model.notation.yaml_documents import load_all

    shown = "stdin" if file == "-" else file
    return job_in(load_all(read_text(file, "--file", LARGEST_SETTING), name=shown), shown)


def _within(session: "Session", job: "Object", connection: KubeFlags) -> "Session":
    """Return *session* for the namespace that the manifest names."""
    return session.within(_namespace(job, connection)) if _own(job) else session


def _own(job: "Object") -> str:
    return str(job["metadata"].get("namespace") or "")


def _namespace(job: "Object", connection: KubeFlags) -> str:
    """Return the namespace of *job*. Raises ``UsageError`` where -n names another than the manifest, as kubectl does."""
    from arena_topo.kube.kubeconfig import default_namespace

    if connection.namespace and _own(job) not in ("", connection.namespace):
        raise UsageError(
            f"the manifest is of namespace {_own(job)}, and -n names {connection.namespace}",
            hint="leave one of them out",
        )
    return connection.namespace or _own(job) or default_namespace()
