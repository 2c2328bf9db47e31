"""The number of processes of a strategy. The process is the unit of evidence: this decides how narrow intervals are."""

# Of a strategy that may lead: with two or three, intervals are not honest.
CONTENDER = 6
# Where the ranking is still open, at most so many.
MOST = 12
# What is slower than the leader by one process each, but not by far, gets a second opinion before it counts as slower.
DOUBTED = 2
# Ranks behind the contenders matter less: the spread of their processes is pooled over the run.
BEHIND = 3
# Where each process is a fresh interpreter, which imports TensorFlow for seconds.
FRESH = 3
# At a sweep's points beside a crossing, and of leaders that tie; at least two, so that their spread is known.
AT_POINT = 3
