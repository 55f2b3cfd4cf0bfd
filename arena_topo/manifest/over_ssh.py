"""What the pods of MPIJob v2beta1 need besides what its operator sets, because its ranks start in sessions of ssh.

Seen with mpi-operator 0.8.2, Open MPI 4.1.4 and 5.0.11: an ssh server starts every session with a fresh environment, so
that a rank sees neither ``--env`` nor what the image, the device plugin and the plan set in its container; Open MPI 5 does
not read the operator's variables, and starts every rank in the launcher (mpi-operator#842); and a launcher that shares the
network of a worker's node takes that worker's ranks for its own.
"""

from dataclasses import replace

from arena_topo.manifest.pods import PodParts, literal
from arena_topo.model.objects import Object

SSH_PORT = 22

# What the operator sets as OMPI_MCA_orte_default_hostfile, OMPI_MCA_plm_rsh_args and OMPI_MCA_orte_keep_fqdn_hostnames,
# in the names of PRRTE, which starts the ranks of Open MPI 5. Open MPI 4 ignores them.
_OPEN_MPI_5 = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
}

# ``export -p`` writes the environment in a form that the same shell reads back unchanged, line breaks and quotes included;
# ``SetEnv`` of the server's own configuration has no quoting before OpenSSH 8.7. The command of a session runs in its login
# shell, as the server itself would have run it.
# Images that run as a user of their own keep the server's configuration in that user's home, as the operator's do.
_SERVE = r"""
session=$(mktemp /tmp/session.XXXXXX) || exit
{
  echo 'shell=$SHELL'
  export -p
  echo 'SHELL=$shell; unset shell PWD OLDPWD SHLVL'
  echo 'exec "$SHELL" -c "${SSH_ORIGINAL_COMMAND:-exec \"\$SHELL\" -l}"'
} > "$session" || exit
set -- -De -o "ForceCommand=/bin/sh $session"
[ ! -f "$HOME/.sshd_config" ] || set -- "$@" -f "$HOME/.sshd_config"
exec /usr/sbin/sshd "$@"
"""

# Cluster DNS learns the names of pods seconds after they run, and ssh gives up at the first name that it does not know:
# ConnectionAttempts counts connections alone (mpi-operator#481). The operator writes "HOST slots=N" or "HOST:N".
# When the time is over, mpirun itself says what it cannot find. Images without getent do not wait.
_WAIT = r"""
left=60 pause=1 warned=
if command -v getent > /dev/null && [ -r /etc/mpi/hostfile ]; then
  while read -r host rest; do
    host=${host%%:*}
    until [ -z "$host" ] || [ "$left" = 0 ] || getent hosts "$host" > /dev/null; do
      [ -n "$warned" ] || echo "waiting for $host, whose name does not resolve yet" >&2
      warned=yes left=$((left - 1))
      sleep "$pause"
    done
  done < /etc/mpi/hostfile
fi
exec "$@"
"""

_LAUNCH = ["/bin/sh", "-c", literal(_WAIT.strip()), "launch"]


def worker(pod: PodParts) -> PodParts:
    """Return *pod* with an ssh server whose sessions have the environment of the container.

    The operator itself would start ``/usr/sbin/sshd -De``. Variables whose names no shell can hold, such as ``my.name``,
    do not reach the sessions.
    """
    # With the node's network the port is the node's, and kube-scheduler keeps pods that declare it apart.
    ports: list[Object] = [{"name": "ssh", "containerPort": SSH_PORT}] if pod.host_network else []
    return replace(pod, command=["/bin/sh", "-c", literal(_SERVE.strip())], ports=ports)


def launcher(pod: PodParts, implementation: str) -> PodParts:
    """Return *pod* with what mpirun needs to find its hosts: their names, variables for Open MPI 5, a network of its own.

    On the network of a worker's node mpirun would take the worker's address for its own, and start the worker's ranks in
    the launcher, which has no GPUs.
    """
    present = {variable["name"] for variable in pod.env}
    variables = _OPEN_MPI_5 if implementation == "OpenMPI" else {}
    added: list[Object] = [
        {"name": name, "value": value} for name, value in variables.items() if name not in present
    ]
    # The user's command follows as it was given, as arguments of the script.
    return replace(pod, env=[*pod.env, *added], command=_LAUNCH, args=pod.command, host_network=False)


def words_of(container: Object) -> list[str]:
    """Return the command of *container* without what ``launcher`` puts before the user's."""
    command, args = list(container.get("command") or []), list(container.get("args") or [])
    return args if command == _LAUNCH else [*command, *args]
