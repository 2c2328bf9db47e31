"""The evidence: from a request through processes and samples to a run; the command line and the runner."""
