"""Colours, icons, caches, guards and sharing, which every page uses."""
