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
    "From 1 to {most:,.0f} s. Sampling ends at the latest after this time; the line at Run says which differences it "
    "can show."
)
MEMORY_LIMIT = "Memory limit (MiB)"
MEMORY_LIMIT_HELP = "What needs more than this fails cleanly as out of memory."
THREADS = "Threads"
THREADS_HELP = "Threads in each of TensorFlow's pools, from 1 to {most:,}."
THREADS_EMPTY = "TensorFlow's choice"
SEED = "Seed"
SEED_HELP = "The inputs are random numbers; the same seed makes the same ones."
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
    "A map of winners of outer_product; about half of its cells are measured, the others follow.",
    "the map",
)
LINE_NEEDS = "{count} points, about {time} and {memory}"
MAP_NEEDS = "{count} cells, about {time} and {memory}"
CHOOSE_EXAMPLE = "Choose {name}"
EXAMPLE_CHOSEN = "Chosen: press Run"
