#!/usr/bin/env bash
# The main job on the embedded cluster, from start to finish: `make demo` runs it. Each command is printed as a user types
# it. The sandbox of this demo has a directory of its own, which is deleted at the end.
set -euo pipefail

directory=$(mktemp -d)
export XDG_STATE_HOME=$directory
trap 'arena-topo sandbox stop > /dev/null; rm -rf "$directory"' EXIT

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
show() {
  printf '\n\033[36m$\033[0m %s\n' "$1"
  eval "$1"
}
until_running() { timeout 30 bash -c "until arena-topo get $1 2> /dev/null | grep -q RUNNING; do sleep 0.05; done"; }

image=registry.cn-hangzhou.aliyuncs.com/kubernetes-image-hub/pytorch-benchmark:torch1.6.0-py3.7-cuda10.1
train="mpirun --allow-run-as-root -np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO python /examples/pytorch_synthetic_benchmark.py --model=vgg16 --batch-size=64"

say 'A simulated cluster: two servers of eight V100 and the stock scheduler. Nothing is executed, and there is no GPU.'
show 'arena-topo sandbox start --layout two-dgx1 --speed 4'
export KUBECONFIG=$directory/arena-topo/sandbox/kubeconfig

say 'What the cluster publishes about its hardware, and the links of one server.'
show 'arena-topo topology'
show 'arena-topo topology cn-shanghai.192.168.16.173'

say 'Where VGG16 on four GPUs would run, before anything is created; then other ways of asking, and topology-unaware schedulers.'
show 'arena-topo plan mpi --workers=4 --gpus=1'
show 'arena-topo plan mpi --workers=4 --gpus=1 --compare'

say "All workers or none, on the planned GPUs; --coalesce packs them into one pod, because pods do not see each other's GPUs."
show "arena-topo submit mpi --gputopology=true --gang --coalesce --name=pytorch-topo-4-vgg16 --gpus=1 --workers=4 \\
    --image=$image \\
    '$train'"
until_running pytorch-topo-4-vgg16
show 'arena-topo get pytorch-topo-4-vgg16 --type mpijob'
show 'arena-topo top node'
show 'arena-topo logs -f pytorch-topo-4-vgg16'
show 'arena-topo delete pytorch-topo-4-vgg16'

say 'The same job without the flags: the scheduler spreads its workers.'
show "arena-topo submit mpi --name=pytorch-4-vgg16 --gpus=1 --workers=4 \\
    --image=$image \\
    '$train'"
until_running pytorch-4-vgg16
show 'arena-topo get pytorch-4-vgg16 --type mpijob'
show 'arena-topo logs -f pytorch-4-vgg16 | tail -n 2'
show 'arena-topo delete pytorch-4-vgg16'
say 'Its workers ended up on two servers and communicate over the network. That is the difference this tool makes.'
