"""The evidence: from a request through processes and samples to a run; pages, worker and command line."""
