"""What a Dockerfile does, carried out on an overlay of this machine's file system, since no builder runs
here.

The machine stands in for the base image and for what the file installs from its distribution's packages: of
these it is only checked that they are here. All other instructions are carried out as they stand, and one
that is not known is an error.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PACKAGES = re.compile(r"apt-get install(?: --\S+)*((?: [a-z0-9][a-z0-9.+-]*)+)")
# ssh's configuration and keys are those of a fresh package, not those of the machine's administrator. What a
# container has on /run and /tmp is its image's.
_BUILD = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
rm -rf "$1"/root/etc/ssh/ssh_host_* "$1"/root/etc/ssh/*.d/* "$1"/root/run/sshd
[ ! -f /usr/share/openssh/sshd_config ] || cp /usr/share/openssh/sshd_config "$1/root/etc/ssh/sshd_config"
cd "$1"
layer=$2
shift 2
for command; do env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot root sh -c "$command"; done
cp -a upper/. "$layer/"
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: the commands of it and of those that it is
    built upon, the packages that they install, and its user.
    """

    commands: tuple[str, ...] = ()
    packages: frozenset[str] = frozenset()
    user: str = "root"


def stages(text: str) -> dict[str, Stage]:
    """Return the stages of a Dockerfile by name; the last one is what a build makes."""
    found: dict[str, Stage] = {}
    name = ""
    for instruction, rest in instructions(text):
        if instruction == "FROM":
            base, _, name = rest.split()
            found[name] = found.get(base, Stage())
            continue
        stage = found[name]
        if instruction == "USER":
            found[name] = Stage(stage.commands, stage.packages, rest)
        elif instruction == "RUN" and (install := _PACKAGES.search(rest)):
            found[name] = Stage(stage.commands, stage.packages | set(install[1].split()), stage.user)
        elif instruction == "RUN":
            found[name] = Stage((*stage.commands, rest), stage.packages, stage.user)
        else:
            raise ValueError(f"an instruction that is not carried out here: {instruction}")
    return found


def build(stage: Stage, layer: Path) -> None:
    """Write into *layer* what the commands of *stage*
    change. Raises ``CalledProcessError`` where one fails.
    """
    layer.mkdir(parents=True)
    work = layer.with_name(f"{layer.name}-work")
    work.mkdir()
    command = ["unshare", "--mount", "sh", "-c", _BUILD, "build", str(work), str(layer), *stage.commands]
    subprocess.run(command, check=True)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile with the rest of their lines, continued lines as one."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name.upper(), rest
