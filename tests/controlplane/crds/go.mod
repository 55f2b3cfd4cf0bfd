module controlplane/crds

go 1.26.0

require (
	github.com/kubeflow/arena v0.15.5
	github.com/kubeflow/training-operator v1.9.3
)
