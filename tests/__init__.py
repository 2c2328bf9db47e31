"""What every test process has before it imports NumPy."""

import os

# OpenBLAS's threads wait for small matrices by spinning, which takes the processor from the tests beside.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
