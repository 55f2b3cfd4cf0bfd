"""What all tests share."""

pytest_plugins = ["tests.controlplane.plugin", "tests.controlplane.fixtures"]
