"""Namespaces whose objects are taken for what the cluster's admins have installed.

Whoever has a namespace may create a Deployment named ``mpi-operator`` or a Service labelled as a Prometheus in it, and
everybody reads those of all namespaces. Namespaces are created by admins, and schedulers, operators and monitoring are
installed into ones with names of their own: those that end in ``-system``, those of Kubernetes and OpenShift, and those
that are named after the programs in them, as their manifests and the instructions of their charts say.
"""

import re

_SYSTEM = re.compile(
    r"(.+-)?system|(kube|openshift)-.+|kubeflow|(mpi|training)-operator|volcano|koordinator|kueue|yunikorn|hami|"
    r"kai-scheduler|scheduler-plugins|(.+-)?monitoring|prometheus|arms-prom|observability"
)


def is_system(namespace: str) -> bool:
    """Whether *namespace* belongs to the system by its name.

    >>> [is_system(name) for name in ("volcano-system", "kube-system", "kubeflow", "kubeflow-ann", "team-a")]
    [True, True, True, False, False]
    """
    return bool(_SYSTEM.fullmatch(namespace))
