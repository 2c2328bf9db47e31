"""The texts of the charts, in the order in which a person meets them.

A chart's last ones are for people who do not see it.
Further titles of tooltips are the names of their columns, where these are single words: strategy, latency, memory.
"""

# --- of several charts -----------------------------------------------------------------------------------------------

TIME_OF_CALL = "time of one call"
PEAK_OF_CALL = "peak memory of one call"

# --- latency ---------------------------------------------------------------------------------------------------------

FIRST_CALL = "first call"
FASTER = "faster than baseline"
OF_FLOOR = "× theoretical floor"
NOT_TIMED = "not timed"
DOT = "dot: time of one call"
BAR = "bar: 95 % interval, the pace of the machine included"
BRACKET = "bracket: a tie"
FLOOR = "dashed: {floor}, {about}"
NO_LATENCY = "Latency of each strategy: none has been measured yet."
LATENCIES = "Latency of {count} strategies on a logarithmic axis: {fastest}, {slowest} is slowest with {latency}."
FASTEST = "{strategy} is fastest with {latency}"
FASTEST_TIE = "{strategies} tie fastest with {latency}"

# --- memory ----------------------------------------------------------------------------------------------------------

PROCESS_PEAK = "process peak"
NOT_MEASURED = "not measured"
SOLID = "solid: output"
PALE = "pale: temporary"
TICK = "tick: process peak"
ARROW = "→: a process peak beyond the axis"
INPUTS_NOT_COUNTED = "Not counted: {inputs} of inputs."
VARIABLES_NOT_COUNTED = "Not counted: {inputs} of inputs and {variables} of variables."
NO_MEMORY = "Memory of each strategy: none has been measured yet."
MEMORIES = (
    "Peak memory of one call of {count} strategies: from {least} ({thriftiest}) to {most} ({hungriest}, {temporary} of "
    "it temporary)."
)

# --- total time by number of calls -----------------------------------------------------------------------------------

CALLS_AXIS = "number of calls"
TOTAL_AXIS = "total time, first call included"
TOTAL_TIME = "total time"
NO_TOTALS = "No strategy has both a first call and a latency."
ALWAYS_CHEAPEST = "Cheapest in total, first call included: {strategy}, however many calls are made."
CHEAPEST = "Cheapest in total, first call included: {stretches}."
AT_FIRST = "{strategy} at first"
FROM_CALLS = "{strategy} from {calls} on"
CALLS = "{first:,} calls"
CALLS_INTERVAL = "{first:,} [{low:,}, {high:,}] calls"

# --- samples ---------------------------------------------------------------------------------------------------------

ROUND_AXIS = "round"
CALLS_IN_SAMPLE = "calls in a sample"
TWIN = "{strategy}, entered twice"
DEFAULT_MEMORY = "{strategy}, default memory"

# --- memory over one call --------------------------------------------------------------------------------------------

SHARE_AXIS = "share of the call"
TIME_AXIS = "time within the call (profiled, so slower than timed)"
HELD_AXIS = "memory held"

# --- lines of a sweep ------------------------------------------------------------------------------------------------

LOG_AXIS = "{axis}, log axis"
FLAT = "does not depend on {axis}"
LATENCY = "Latency"
PEAK_MEMORY = "Peak memory"
NO_LINES = "{quantity} over {axis}: nothing has been measured yet."
LINES = "{quantity} of {count} strategies over {axis}, {findings}."
LEAST = "at {value:,} {strategy} has the least, {amount}"

# --- the map of winners ----------------------------------------------------------------------------------------------

BEING_MEASURED = "being measured"
NOT_REACHED = "not reached"
# A cell's shade → what the legend says of it, in the legend's order.
SHADES = {
    "measured": "measured",
    "inferred": "not measured: its neighbours agree",
    "tie": "a tie",
    "without": "no winner",
    "running": BEING_MEASURED,
    "waiting": "waiting",
    "missed": NOT_REACHED,
}
STATES = {"running": BEING_MEASURED, "budget": NOT_REACHED, "skipped": "left out"}
NO_MAP = "Map of winners over {across} and {up}: nothing has been measured yet."
MAP = "Map of winners over {across} and {up}, {count} cells. Fastest or tied: {winners}."
CELLS_WON = "{strategy} in {count}"

# --- latency against memory ------------------------------------------------------------------------------------------

FASTEST_FITTING = "the fastest that fits"
ON_FRONT = "the fastest with this much memory or less"
BEATEN = "another is faster and needs no more memory"
TOO_LARGE = "needs more memory than is available"
FITS = "With {available} available, {strategy} is fastest: {latency} in {memory}."
NOTHING_FITS = "Nothing fits into {available}: the least that is needed is {least}."
FRONT_ABOUT = (
    "Thin line: the fastest for each amount of memory. Faded: another is faster and needs no more, or it needs more "
    "than is available. ✕ at the edge: out of memory."
)
NO_FRONT = "Latency against memory: nothing has both yet."
FRONT = "Latency against memory: the fastest for each amount of memory: {strategies}."

# --- charts as files -------------------------------------------------------------------------------------------------

LATENCY_TITLE = "Latency of one call, with its 95 % interval"
MEMORY_TITLE = "Memory of one call: output solid, temporary pale"
TOTALS_TITLE = "Total time by number of calls"
SAMPLES_TITLE = "Every sample, by round"
TIMELINE_TITLE = "Memory held over one call"
PEAK_TITLE = "Peak memory of one call"
FRONT_TITLE = "Latency against memory: nothing beats what the line joins"
MAP_TITLE = "Who is fastest; striped: a tie; pale: inferred from its neighbours"
SWEPT = "{first:,} to {last:,}"
FOLDER_HELP = "folder for 'all'"
NAME_HELP = "what the files of 'all' begin with"
NO_CHART = "a run of kind {kind} has no chart «{name}»: it has {names}"
EMPTY_CHART = "the run has nothing to show in this chart"
ONE_IN = "one sample in {every} is drawn"
TOOK_LONG = "it takes longer than {seconds:.0f} s"
NOT_DRAWN = "the chart could not be drawn: {reason}"
