"""Arena's own sentences, to the byte and with their faults, since scripts that were written for Arena may read them.

Do not correct them here. Messages of errors are not among them: those are read by people, and are correct English, in
Arena's words where these are clear. Headings of tables and keys of JSON documents, which are Arena's as well, stand
with the tables and documents (``output/job.py``, ``output/top_node/``).

Source: kubeflow/arena 0.15.5 (pkg/commands, pkg/training, pkg/topnode).
"""

SUBMITTED = "The Job {name} has been submitted successfully"
SEE_STATUS = "You can run `arena-topo get {name} --type {type} -n {namespace}` to check the job status"
DELETED = "The training job {name} has been deleted successfully"

NODE_WITHOUT_GPUS = "\n  This node has none gpu devices\n"
NODE_MODE = (
    "\n  1.This node is enabled gpu {mode} mode.\n"
    "  2.Pods can request resource '{resource}' to use gpu {mode} feature on this node\n"
)
