"""One module per command, or per few that belong together.

``change`` holds resume, suspend, scale, rerun and diff, ``jobs`` delete, prune and wait, ``cluster`` also
doctor and node, ``about`` version, completion and whoami. What ``get``, ``list`` and ``logs`` need has
modules of its own, so that they import nothing else.

A new command needs three things:

1. a module of its name, with a frozen value of its flags and a function (``arena_topo.cli.declare`` shows
   how); it imports what only its run needs within the function, so that ``--help`` stays fast;
2. a line in the table of ``arena_topo/cli/app.py``, which repeats the first sentence of its help (a command
   below a group such as ``top`` is added to the group, in the group's module, instead);
3. a test file of its name in ``tests/cli/commands``.

``make docs`` then writes its help into the reference. A command prints data on stdout and everything else on
stderr, returns an ``ExitCode`` where it is not 0, and raises an error of ``arena_topo.errors`` for what went
wrong.
"""
