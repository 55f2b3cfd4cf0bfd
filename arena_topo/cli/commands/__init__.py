"""One module per command, in rooms by meaning.

``submit/`` brings a job into a cluster, ``job/`` is about the jobs that are there, ``cluster/`` about clusters and their
nodes, and ``tool/`` about arena-topo itself.

A new command needs three things:

1. a module of its name in one of the rooms, with a frozen value of its flags and a function (``arena_topo.cli.command``
   shows how); it imports what only its run needs within the function, so that ``--help`` stays fast;
2. a line in the table of ``arena_topo/cli/app.py``, which repeats the first sentence of its help (a command below a
   group such as ``top`` is added to the group, in the group's module, instead);
3. a test file of its name in the same room of ``tests/cli/commands``.

``make docs`` then writes its help into the reference. A command prints data on stdout and everything else on stderr,
returns an ``ExitCode`` where it is not 0, and raises an error of ``arena_topo.errors`` for what went wrong.
"""
