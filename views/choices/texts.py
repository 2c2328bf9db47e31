"""The texts of the choices, in the order in which a person meets them."""

# --- the case: workload, sizes and their picture, dtype and device ---------------------------------------------------

WORKLOAD = "Workload"
SIZES = "Sizes"
SIZE_HELP = "{help}; from {least:,} to {most:,}"
PICTURE = "In: {inputs}. Out: {outputs}."
PICTURE_INPUT = "in"
PICTURE_CALLS = "{batch:,} times"
PICTURE_OUTPUT = "out"
DTYPE = "dtype"
DEVICE = "device"
DEVICE_HELP = "Found by the measuring process; a GPU is listed where TensorFlow sees one."
DEVICE_MISSING = "{device} is not on this machine: {devices} can be used."

# --- a function of a person's own ------------------------------------------------------------------------------------

OWN_ENTRY = "Your own · a function that you write …"
OWN_OPEN = "Write your own function"
OWN_EDIT = "Edit the code"
OWN_TITLE = "Your own function"
OWN_WINDOW = "the window of your own function"
OWN_LEAD = (
    "A function of **one element**, and something to map it over: an array, or a function that makes one. "
    "The check runs the code in a process that is thrown away."
)
OWN_EXAMPLE = """import numpy as np
import tensorflow as tf


def images(batch=100, side=32):
    return np.random.default_rng(0).random((batch, side, side, 3), dtype=np.float32)


def standardize(image):
    return (image - tf.reduce_mean(image)) / tf.math.reduce_std(image)
"""
OWN_ROLES = {
    "function": ("Function", "Takes one element, without the batch axis."),
    "elems": (
        "Mapped over",
        "An array, tensor, tuple or dict of them, whose first axis is the batch; or a function that makes them, whose "
        "whole-number parameters with defaults are the sizes.",
    ),
    "batched": ("Rewrite for the batch", "Takes the whole batch, and is measured as one strategy more."),
    "reference": ("Reference in NumPy", "Gives the right results of the whole batch; without one, the function does."),
}
OWN_CHECK = "Check"
OWN_CHECKING = "The code is run once and traced"
OWN_CHANGED = "Changed since the last check."
OWN_USE = "Use {function} as the workload"
OWN_NOT_HERE = (
    "**On this server no code of yours can be run**: others can reach it, or it was not opened as `localhost` or "
    "`127.0.0.1`. On your own machine it can: start Mapbench there and write the function in this window, or have it "
    "measured from a file."
)
OWN_COMMANDS = """streamlit run app.py
python -m measure compare my_code.py:standardize --elems images"""
FACT_ELEMENT = "one element"
FACT_RESULT = "its result"
FACT_SIZES = "sizes"
FACT_WORK = "work"
FACT_FLOPS = "{flops:,} floating-point operations an element"
FACT_FLOPS_LEAST = "at least {flops:,} floating-point operations an element"
FACT_HOLDS = "variables"
FACT_SCALAR = "scalar"

# --- the axes of a sweep ---------------------------------------------------------------------------------------------

FIRST_AXIS = "Sweep"
FIRST_AXIS_HELP = "A size of the workload."
FIRST_AXIS_OPTIONS_HELP = "A size of the workload, or an option of strategies: {options}."
SECOND_AXIS = "Second size"
SECOND_AXIS_HELP = "Two sizes make a map: who is fastest at each pair of them."
NO_VALUE = "none"
FROM = "From"
FROM_HELP = "from {least:,}; or the values themselves, as 1, 2, 8"
LISTED_VALUES = "Values"
TO = "To"
TO_HELP = "to {most:,}"
POINTS = "Points"
POINTS_HELP = "from 2 to {most}; further ones are measured where lines cross"
SCALE = "Scale"
WRONG_RANGE = "range"
NOTHING_FITS = "No point of this sweep can fit. {reason}"

# --- the grid of strategies ------------------------------------------------------------------------------------------

STRATEGIES = "Strategies"
STRATEGIES_HELP = (
    "How the function is mapped (rows), and how that runs (columns). The name of a row or a column chooses all of it."
)
PRESET_DEFAULT = "Default"
PRESET_USUAL = "The usual four"
PRESET_GRAPH = "Everything in graph mode"
PRESET_SAVERS = "Memory savers"
PRESET_ALL = "All"
CHOSEN = "{count} chosen"
ONE_FURTHER = "1 more mapper"
FURTHER = "{count} more mappers"
OTHER_ELEMENT = "{mapper} of the element function as {element} writes it"
FURTHER_HELP = "«Default» leaves these out, «All» takes them."
TYPED = "and, from the list under Advanced: {strategies}"
NONE_CHOSEN = "Choose at least one strategy."
NO_DEFAULT = "At this size no strategy is forecast to finish in reasonable time: make it smaller."

# --- the rarely changed choices --------------------------------------------------------------------------------------

ADVANCED = "Advanced"
LIST = "Strategies as a list"
LIST_HELP = "The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value"
BUDGET = "Time budget (s)"
BUDGET_HELP = (
    "From 1 to {most:,.0f} s: the time from Run to the verdict. The more is left for timing, the smaller are the "
    "differences that are told."
)
MEMORY_LIMIT = "Memory limit (MiB)"
MEMORY_LIMIT_HELP = "What needs more than this fails cleanly as out of memory."
THREADS = "Threads"
THREADS_HELP = "Threads in each of TensorFlow's pools, from 1 to {most:,}."
THREADS_EMPTY = "TensorFlow's choice"
SEED = "Seed"
SEED_HELP = "The inputs are random numbers; the same seed makes the same ones."
ALLOCATOR = "Allocator"
ALLOCATOR_HELP = (
    "Where memory comes from while latencies are timed. A pool keeps what is freed in the process, as "
    "TF_CPU_ALLOCATOR_USE_BFC=true does, so that no call pays for fresh pages. The default may give large buffers back "
    "to the system at each call, depending on the CPU."
)
BASELINE = "Baseline"
BASELINE_HELP = "What others are compared with; auto: map_fn.graph, else loop.eager, else the slowest that is timed."

# --- choices in a few words ------------------------------------------------------------------------------------------

STRATEGY_COUNT = "{count} strategies"
NO_CHOICE = "no {name}"
# Of the fields whose names are not said as they are.
FIELD_NAMES = {
    "budget": "time budget",
    "memory_limit": "memory limit",
    "sweep_2": "second size",
    "from_2": "start of the second size",
    "to_2": "end of the second size",
    "points_2": "points of the second size",
    "scale_2": "scale of the second size",
}
FIELD_UNITS = {"budget": " s", "memory_limit": " MiB"}

# --- what is wrong with an address -----------------------------------------------------------------------------------

USED_INSTEAD = "{fault} {value} is used instead."
INVALID_WORD = "{name}={word} is not valid: choose one of {offered}"
INVALID_NUMBER = "{name}={value} is not valid: a whole number is needed"
INVALID_DTYPE = "dtype {dtype!r} is not valid for {workload}: choose one of {valid}"

# --- sweeps to begin with --------------------------------------------------------------------------------------------

EXAMPLES_LEAD = "**Sweep a size or an option, and see where the winner changes.** Choose what to sweep, or an example:"
# The question that an example answers, what is swept, and what its button chooses.
BATCH_EXAMPLE = (
    "Where does vectorised code overtake the loop?",
    "A line for each of four strategies, over the batch of square from 1 to 10,000.",
    "the line over batch",
)
CHUNK_EXAMPLE = (
    "How large should a chunk be?",
    "Time and memory of chunked on outer_reduce, from one element a chunk to all 256.",
    "the line over chunk",
)
MAP_EXAMPLE = (
    "Who is fastest at which batch and which size?",
    "A map of winners of outer_product: each of its cells is a comparison.",
    "the map",
)
LINE_NEEDS = "{count} points, about {time} and {memory}"
MAP_NEEDS = "{count} cells, about {time} and {memory}"
CHOOSE_EXAMPLE = "Choose {name}"
EXAMPLE_CHOSEN = "Chosen: press Run"
