"""The flags of a TensorFlow job, Arena's, and the job that they describe."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import option
from arena_topo.cli.options.job import CommonJobFlags, clean_task_policy, job_spec
from arena_topo.cli.options.job_notations import PERIOD
from arena_topo.cli.options.kinds.tf_roles import AllPods, TfRoleFlags, tf_roles
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.model.job.job_spec import JobSpec

_SEQUENCE = "job-role-sequence"
"""The annotation in which Arena's operator looks for the order of roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TfFlags(CommonJobFlags):
    """What the user says of a TensorFlow job."""

    roles: TfRoleFlags
    success_policy: str = option(
        "--success-policy",
        type=click.Choice(["ChiefWorker", "AllWorkers"]),
        default="ChiefWorker",
        show_default=True,
        help="Whose end is the job's: the chief's or, without one, worker 0's; or that of all workers.",
    )
    clean_task_policy: str = clean_task_policy("Running", "--cleanTaskPolicy")
    starting_timeout: int | None = option(
        "--starting-timeout",
        type=PERIOD,
        metavar="TEXT",
        hidden=True,
        help="Refused: Arena's operator alone has it.",
    )


def tf_job(
    flags: TfFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job that *flags* describe, as ``job_spec`` does. Raises ``UsageError``."""
    if flags.starting_timeout:
        raise UsageError(
            "--starting-timeout is not supported: the TFJob of the Kubeflow training operator has no such field",
            hint="--wait=10m waits that long for a place, and then gives up",
        )
    pods = AllPods(workers=flags.fixed_workers, gpus=flags.gpus, cpu=flags.cpu, memory=flags.memory)
    roles = tf_roles(flags.roles, pods)
    # Every role may have an image of its own, and then the job needs none.
    image = flags.image or next((role.image for role in roles if role.image), "")
    job = job_spec(replace(flags, image=image), words=words, argv=argv, namespace=namespace, least_workers=0)
    if unnamed := [role.name for role in roles if not (role.image or flags.image)]:
        raise UsageError(f"--image must be set, or an image for {unnamed[0]}")
    sequence = {_SEQUENCE: ",".join(flags.roles.role_sequence)} if flags.roles.role_sequence else {}
    return replace(
        job,
        kind="TFJob",
        roles=roles,
        pod=replace(job.pod, annotations={**job.pod.annotations, **sequence}),
        run=replace(
            job.run,
            clean_policy=flags.clean_task_policy,
            # The API has no word for the policy that is the default.
            success_policy="" if flags.success_policy == "ChiefWorker" else flags.success_policy,
        ),
    )
