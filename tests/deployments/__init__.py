"""The deployments of docs/hosting.md, tried: scripts for a machine that may be changed, run by hand as root."""
