"""The embedded cluster: a simulation on loopback for trying the tool and for fast tests."""
