"""The root of the command line: the table of all commands, with the module of each."""

import click

from arena_topo.cli.groups import Entry, LazyGroup

_JOBS = "Job commands"
_CLUSTER = "Cluster commands"
_OTHER = "Other commands"

COMMANDS = {
    "submit": Entry("arena_topo.cli.commands.submit.submit:submit", "Submit a training job.", _JOBS),
    "plan": Entry(
        "arena_topo.cli.commands.submit.plan:plan",
        "Show where a job would run, and why, before anything is created.",
        _JOBS,
    ),
    "resume": Entry(
        "arena_topo.cli.commands.submit.resume:resume",
        "Start a job that is suspended, waits for a placement or was interrupted.",
        _JOBS,
    ),
    "scale": Entry(
        "arena_topo.cli.commands.submit.scale:scale",
        "Let an elastic job that runs have more workers, or fewer.",
        _JOBS,
    ),
    "diff": Entry(
        "arena_topo.cli.commands.submit.diff:diff",
        "Show how a job that runs differs from what a submit would create.",
        _JOBS,
    ),
    "rerun": Entry(
        "arena_topo.cli.commands.submit.rerun:rerun",
        "Submit a job again: one that has ended, or one that was deleted and that a file has.",
        _JOBS,
    ),
    "suspend": Entry(
        "arena_topo.cli.commands.submit.suspend:suspend", "Stop a job for now, and free its GPUs.", _JOBS
    ),
    "list": Entry("arena_topo.cli.commands.job.list:list_command", "List jobs.", _JOBS, ("ls",)),
    "get": Entry("arena_topo.cli.commands.job.get:get", "Show a job and its instances.", _JOBS),
    "describe": Entry(
        "arena_topo.cli.commands.job.describe:describe",
        "Show all about a job: its plan, its instances, why it does not run, and its events.",
        _JOBS,
    ),
    "events": Entry(
        "arena_topo.cli.commands.job.events:events",
        "Show what happened to a job, its pods, and what else belongs to it.",
        _JOBS,
    ),
    "wait": Entry(
        "arena_topo.cli.commands.job.wait:wait", "Wait until jobs run, have succeeded, or are gone.", _JOBS
    ),
    "logs": Entry("arena_topo.cli.commands.job.logs:logs", "Print the logs of a job.", _JOBS, ("log",)),
    "exec": Entry(
        "arena_topo.cli.commands.job.exec:exec_command", "Run a command in an instance of a job.", _JOBS
    ),
    "attach": Entry(
        "arena_topo.cli.commands.job.exec:attach", "Open a shell in an instance of a job.", _JOBS
    ),
    "delete": Entry("arena_topo.cli.commands.job.delete:delete", "Delete jobs.", _JOBS, ("del",)),
    "topology": Entry(
        "arena_topo.cli.commands.cluster.topology:topology",
        "Show the GPUs of a cluster, their links, and the fabric between the nodes.",
        _CLUSTER,
    ),
    "predict": Entry(
        "arena_topo.cli.commands.submit.predict:predict", "Predict how fast a benchmark would train.", _JOBS
    ),
    "top": Entry("arena_topo.cli.commands.cluster.top:top", "Show how GPUs are used.", _CLUSTER),
    "node": Entry(
        "arena_topo.cli.commands.cluster.node:node",
        "Switch the vendor's topology scheduling of nodes.",
        _CLUSTER,
    ),
    "agent": Entry(
        "arena_topo.cli.commands.tool.agent:agent",
        "Publish the GPU topology of nodes that nothing else describes.",
        _CLUSTER,
    ),
    "controller": Entry(
        "arena_topo.cli.commands.tool.controller:controller",
        "Place waiting jobs from within the cluster.",
        _CLUSTER,
    ),
    "doctor": Entry(
        "arena_topo.cli.commands.cluster.doctor:doctor",
        "Report what this cluster supports for gangs and pinning.",
        _CLUSTER,
    ),
    "cluster": Entry(
        "arena_topo.cli.commands.cluster.cluster:cluster",
        "Set up a cluster so that plans are enforced.",
        _CLUSTER,
    ),
    "sandbox": Entry(
        "arena_topo.cli.commands.tool.sandbox:sandbox", "Try everything on a simulated cluster.", _OTHER
    ),
    "prune": Entry("arena_topo.cli.commands.arena.prune:prune", "Delete jobs that have ended.", _JOBS),
    "logviewer": Entry(
        "arena_topo.cli.commands.arena.logviewer:logviewer",
        "Show the address of the page that has a job's log.",
        _OTHER,
    ),
    "whoami": Entry(
        "arena_topo.cli.commands.arena.whoami:whoami", "Show who you are on the cluster.", _OTHER
    ),
    "config": Entry(
        "arena_topo.cli.commands.tool.config:config",
        "Show the values that flags have without being typed.",
        _OTHER,
    ),
    "version": Entry(
        "arena_topo.cli.commands.tool.version:version",
        "Print the versions of arena-topo and the cluster.",
        _OTHER,
    ),
    "completion": Entry(
        "arena_topo.cli.commands.tool.completion:completion", "Print a completion script for a shell.", _OTHER
    ),
}


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    # Shell completion parses the unfinished line too, and must print nothing.
    if value and not ctx.resilient_parsing:
        from arena_topo import __version__

        click.echo(f"arena-topo: v{__version__}")
        ctx.exit()


cli = LazyGroup(
    name="arena-topo",
    entries=COMMANDS,
    help="Submit gang-scheduled, topology-aware MPI training jobs to any Kubernetes cluster.\n\n"
    "\b\n"
    "  arena-topo submit mpi --gputopology=true --gang --name=vgg16 --gpus=1 --workers=4 \\\n"
    '      --image=IMAGE "mpirun -np 4 python train.py"\n'
    "  arena-topo get vgg16 --type mpijob\n"
    "  arena-topo logs -f vgg16",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Print the version of arena-topo.",
        )
    ],
)
