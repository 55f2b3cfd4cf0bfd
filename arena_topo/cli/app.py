"""The root of the command line: the table of all commands, with the module of each."""

import click

from arena_topo.cli.groups import Entry, LazyGroup

_DAILY = "Commands"
_JOBS = "More on jobs"
_OPERATORS = "For operators of clusters"

COMMANDS = {
    "submit": Entry("submit:submit", "Submit a training job.", _DAILY),
    "plan": Entry("plan:plan", "Show where a job would run, before it is created.", _DAILY),
    "list": Entry("list:list_command", "List jobs.", _DAILY, ("ls",)),
    "get": Entry("get:get", "Show jobs and their instances.", _DAILY),
    "describe": Entry("get:describe", "Show all about a job: plan, instances, events, why it waits.", _DAILY),
    "logs": Entry("logs:logs", "Print the logs of jobs.", _DAILY, ("log",)),
    "wait": Entry("jobs:wait", "Wait until jobs run, have succeeded, or are gone.", _DAILY),
    "delete": Entry("jobs:delete", "Delete jobs.", _DAILY, ("del",)),
    "top": Entry("top:top", "Show how GPUs are used.", _DAILY),
    "topology": Entry("topology:topology", "Show GPUs, their links, and the fabric between nodes.", _DAILY),
    "suspend": Entry("change:suspend", "Stop jobs for now, and free their GPUs.", _JOBS),
    "resume": Entry("change:resume", "Start jobs that are suspended, wait or were interrupted.", _JOBS),
    "scale": Entry("change:scale", "Change the number of workers of a running elastic job.", _JOBS),
    "rerun": Entry("change:rerun", "Resubmit a finished job, or one saved to a file.", _JOBS),
    "events": Entry("get:events", "Show what happened to a job and its pods.", _JOBS),
    "why": Entry("why:why", "Say whether a job makes progress, and which rank the others wait for.", _JOBS),
    "exec": Entry("exec:exec_command", "Run a command in an instance of a job.", _JOBS),
    "attach": Entry("exec:attach", "Open a shell in an instance of a job.", _JOBS),
    "doctor": Entry("cluster:doctor", "Report what this cluster supports for gangs and pinning.", _OPERATORS),
    "cluster": Entry("cluster:cluster", "Set up a cluster so that plans are enforced.", _OPERATORS),
    "controller": Entry("controller:controller", "Place waiting jobs from within the cluster.", _OPERATORS),
    "agent": Entry("agent:agent", "Publish the GPU topology of nodes that lack it.", _OPERATORS),
    "prune": Entry("jobs:prune", "Delete jobs that have ended.", _OPERATORS),
    "sandbox": Entry("sandbox:sandbox", "Try everything on a simulated cluster."),
    "config": Entry("config:config", "Show default flag values and where they come from."),
    "node": Entry("cluster:node", "Switch the vendor's topology scheduling of nodes."),
    "mcp": Entry("mcp:mcp", "Let an agent ask about plans, jobs and the cluster."),
    "diff": Entry("change:diff", "Show how a running job differs from what a submit would create."),
    "predict": Entry("predict:predict", "Predict how fast a benchmark would train."),
    "whoami": Entry("about:whoami", "Show who you are on the cluster."),
    "version": Entry("about:version", "Print the versions of arena-topo and the cluster."),
    "completion": Entry("about:completion", "Print a completion script for a shell."),
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
    help="Submit gang-scheduled, topology-aware jobs to any Kubernetes cluster.\n\n"
    "\b\n"
    "  arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 \\\n"
    '      --gang --gputopology --image=IMAGE "mpirun -np 4 python train.py"\n'
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
