"""The packages of optional extras, which some commands need; a missing one is an error with its cure."""

from importlib.util import find_spec

from arena_topo.errors import ArenaTopoError


def require(what: str, *packages: str, extra: str, instead: str = "") -> None:
    """Raise ``ArenaTopoError`` if one of *packages*, which *what* needs and *extra* installs, is missing.

    *instead* is what a user may do without it.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        # From the checkout: no package index has this program, and a package of its name there would not be
        # ours.
        hint = f"in the checkout of arena-topo: pip install '.[{extra}]'"
        raise ArenaTopoError(
            f"{what} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            hint=f"{hint}; without it, {instead}" if instead else hint,
        )
