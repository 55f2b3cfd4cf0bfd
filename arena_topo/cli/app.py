"""The root of the command line: the table of all commands, with the module of each."""

import click

from arena_topo.cli.groups import Entry, LazyGroup

_JOBS = "Job commands"
_CLUSTER = "Cluster commands"
_OTHER = "Other commands"

COMMANDS = {
    "submit": Entry("arena_topo.cli.commands.submit:submit", "Submit a training job.", _JOBS),
    "plan": Entry(
        "arena_topo.cli.commands.plan:plan",
        "Show where a job would run, and why, before anything is created.",
        _JOBS,
    ),
    "resume": Entry(
        "arena_topo.cli.commands.change:resume",
        "Start a job that is suspended, waits for a placement or was interrupted.",
        _JOBS,
    ),
    "scale": Entry(
        "arena_topo.cli.commands.change:scale",
        "Let an elastic job that runs have more workers, or fewer.",
        _JOBS,
    ),
    "diff": Entry(
        "arena_topo.cli.commands.change:diff",
        "Show how a job that runs differs from what a submit would create.",
        _JOBS,
    ),
    "rerun": Entry(
        "arena_topo.cli.commands.change:rerun",
        "Submit a job again: one that has ended, or one that was deleted and that a file has.",
        _JOBS,
    ),
    "suspend": Entry(
        "arena_topo.cli.commands.change:suspend", "Stop a job for now, and free its GPUs.", _JOBS
    ),
    "list": Entry("arena_topo.cli.commands.list:list_command", "List jobs.", _JOBS, ("ls",)),
    "get": Entry("arena_topo.cli.commands.get:get", "Show a job and its instances.", _JOBS),
    "describe": Entry(
        "arena_topo.cli.commands.get:describe",
        "Show all about a job: its plan, its instances, why it does not run, and its events.",
        _JOBS,
    ),
    "events": Entry(
        "arena_topo.cli.commands.get:events",
        "Show what happened to a job, its pods, and what else belongs to it.",
        _JOBS,
    ),
    "wait": Entry(
        "arena_topo.cli.commands.wait:wait", "Wait until jobs run, have succeeded, or are gone.", _JOBS
    ),
    "logs": Entry("arena_topo.cli.commands.logs:logs", "Print the logs of a job.", _JOBS, ("log",)),
    "exec": Entry(
        "arena_topo.cli.commands.exec:exec_command", "Run a command in an instance of a job.", _JOBS
    ),
    "attach": Entry("arena_topo.cli.commands.exec:attach", "Open a shell in an instance of a job.", _JOBS),
    "delete": Entry("arena_topo.cli.commands.delete:delete", "Delete jobs.", _JOBS, ("del",)),
    "topology": Entry(
        "arena_topo.cli.commands.topology:topology",
        "Show the GPUs of a cluster, their links, and the fabric between the nodes.",
        _CLUSTER,
    ),
    "predict": Entry(
        "arena_topo.cli.commands.predict:predict", "Predict how fast a benchmark would train.", _JOBS
    ),
    "top": Entry("arena_topo.cli.commands.top:top", "Show how GPUs are used.", _CLUSTER),
    "node": Entry(
        "arena_topo.cli.commands.node:node",
        "Switch the vendor's topology scheduling of nodes.",
        _CLUSTER,
    ),
    "agent": Entry(
        "arena_topo.cli.commands.agent:agent",
        "Publish the GPU topology of nodes that nothing else describes.",
        _CLUSTER,
    ),
    "controller": Entry(
        "arena_topo.cli.commands.controller:controller",
        "Place waiting jobs from within the cluster.",
        _CLUSTER,
    ),
    "doctor": Entry(
        "arena_topo.cli.commands.doctor:doctor",
        "Report what this cluster supports for gangs and pinning.",
        _CLUSTER,
    ),
    "cluster": Entry(
        "arena_topo.cli.commands.cluster:cluster",
        "Set up a cluster so that plans are enforced.",
        _CLUSTER,
    ),
    "sandbox": Entry(
        "arena_topo.cli.commands.sandbox:sandbox", "Try everything on a simulated cluster.", _OTHER
    ),
    "prune": Entry("arena_topo.cli.commands.arena:prune", "Delete jobs that have ended.", _JOBS),
    "whoami": Entry("arena_topo.cli.commands.arena:whoami", "Show who you are on the cluster.", _OTHER),
    "config": Entry(
        "arena_topo.cli.commands.config:config",
        "Show the values that flags have without being typed.",
        _OTHER,
    ),
    "version": Entry(
        "arena_topo.cli.commands.version:version",
        "Print the versions of arena-topo and the cluster.",
        _OTHER,
    ),
    "completion": Entry(
        "arena_topo.cli.commands.version:completion", "Print a completion script for a shell.", _OTHER
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
