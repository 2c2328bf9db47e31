"""This file holds every text of a run's page, in the order in which a person meets them.

Longer than others, since it is one list that is read in one go.
"""

# --- shared by several parts -----------------------------------------------------------------------------------------

STRATEGY = "Strategy"
STRATEGY_COLUMN = "strategy"
OP = "op"
NONE = "none"
CANCEL = "Cancel"
NO_STRATEGY = "The run has no strategy."
NOT_MEASURABLE = "This cannot be measured here: {error}."
DID_NOT_WORK = "**Did not work** ({count})"
ENDED = {
    "cancelled": "Cancelled",
    "interrupted": "Interrupted",
    "budget": "The time budget was spent before the ranking was decided",
}
# In the sentence of a fault: what could not be shown.
THE_RESULT = "the result"
THE_REST = "the rest of the result"

# --- a run that waits or runs (progress.py) --------------------------------------------------------------------------

THE_PROGRESS = "the progress"
RANGE = "{first:,} to {last:,}"
STOP = "Stop here"
STOP_HELP = "Ends with what is known by now: the verdict, then the floor and the process peaks."
CANCEL_HELP = "Ends the work within a second; what has been measured is kept."
ONE_BEFORE = "waiting in the queue: 1 run before this one, about {wait}. {now}"
RUNS_BEFORE = "waiting in the queue: {count} runs before this one, about {wait}. {now}"
RUNNING = "running"
ROUND = "{stage}, round {number}"
ELAPSED = "{duration} elapsed"
LEFT = "about {duration} left"
LATE = "it takes longer than forecast"
STRANGE = "started by another visitor"
NEARLY_DONE = "nearly done"
NOW = "Now: {title}."
NOW_LEFT = "Now: {title}, {left}."
ONE_RUNS = "A run is being measured on this machine; yours will wait for its turn. {now}"
OTHERS_WAIT = "A run is being measured on this machine, and {count} more wait; yours will wait for its turn. {now}"
POINTS = "points: {counts}"

# --- the heading (heading.py) ----------------------------------------------------------------------------------------

PAGE_TITLE = "{case} · Mapbench"

# --- where a run comes from, and the buttons (actions.py) ------------------------------------------------------------

THE_BUTTONS = "the buttons"
IMPORTED = ":violet-badge[:material/upload_file: imported] "
MEASURED = "Measured {time} ({zone})"
ON_MACHINE = " on {machine}"
WITH_TENSORFLOW = ", with TensorFlow {version}"
ANSWERED = "**Measured {ago} ago**, with the same request"
ANEW = "Measure anew"
AGAIN = "Measure again here"
AGAIN_HELP = "Measures the same request on this machine, then says whether the verdict was reproduced."
EXPORT = "Export"
RUN_FILE = "Run file (JSON)"
RUN_FILE_HELP = "Everything, without loss; can be imported."
TABLE_FILE = "Table (CSV)"
TABLE_FILE_HELP = "One line for each strategy."
SAMPLES_FILE = "Samples (CSV)"
SAMPLES_FILE_HELP = "Every raw sample."
SUMMARY_FILE = "Summary (Markdown)"
DRAWN_LATER = "Charts are drawn when the run that is being measured has its samples: open this again in a moment."
SUMMARY_FILE_HELP = "For a pull request: verdict, table, environment, link."

# --- going on with a sweep (sweep_continue.py) -----------------------------------------------------------------------

CONTINUE = "Continue"
CONTINUE_HELP = "Measures the points that are not complete; those that are stay as they are."
CONTINUE_FITS = "Continue measures {points} more points in about {needed}."
CONTINUE_IN_VAIN = "A time budget of {budget} is too short for what is missing: set a longer one under Advanced."
CONTINUE_SHORT = (
    "Continue measures {points} more points in about {needed}; a time budget of {budget} is short for all of it: set a "
    "longer one under Advanced."
)
NOT_CONTINUED = "This cannot be continued here: {error}."

# --- a run that repeats another one (reproduction.py) ----------------------------------------------------------------

REPEATS_UNKNOWN = ":material/replay: It repeats a run that is not known here."
CONTINUES_UNKNOWN = ":material/replay: It repeats or continues a run that is not known here."
CONTINUES = ":material/resume: It continues an earlier sweep, and has those of its points that were measured whole."
SHOW_FIRST = "Show the first run"
THEN_AND_NOW = "Then and now"
RANKS_CHANGED = "Ranks that changed: {moves}."
RANKS_SAME = "All ranks are the same."
MOVED_BEYOND = "{strategy} {before} → {now} (beyond chance)"
MOVED_WITHIN = "{strategy} {before} → {now} (within chance)"
RANK_THEN = "rank then"
RANK_NOW = "rank now"
LATENCY_CHANGE = "latency over that of {reference}, now against then"
BEYOND_CHANCE = "beyond chance"
YES = "yes"
NO = "no"
REPEATED_ALT = "Each strategy's rank in both runs, and how its latency has changed relative to the others"
POINT_OUTCOME = "outcome"
POINT_RANKS = "ranks that changed"
REPEATED_SWEEP_ALT = "For each point, whether its leaders lead again, and which ranks have changed"

# --- the answer of a comparison (answer.py) --------------------------------------------------------------------------

KEPT = "what was measured is kept"
TAKE = "Take"
SETTLE = "Settle this tie in {budget_s:.0f} s"
MEASURE_ALL = "Measure all {count} with a budget of {budget_s:.0f} s"
SETTLE_HELP = "Measures {count} strategies in turns, with nothing else alive, in as many processes as that allows."
AGAINST = "Against what others take"
FASTER_THAN = "{factor} {interval} as fast as {strategy}, {role}"
AS_FAST_AS = "as fast as {strategy}, {role}, as far as this run can tell: {factor} {interval}"
BASELINE = "Baseline"
COSTS = "What it costs"
CHANGES = "**What would change it**"
SWEEP_LINK = "Another size: sweep the batch"
EVIDENCE_HELP = "Shows the tab «{tab}»."

# --- the charts of a comparison (compare.py) -------------------------------------------------------------------------

LATENCY = "**Latency** of one call, log axis"
MEMORY = "**Memory** of one call"

# --- the tabs (details.py) -------------------------------------------------------------------------------------------

TAB_TABLE = "Table"
TAB_BREAK_EVEN = "Break even"
TAB_WHY = "Why"
TAB_SAMPLES = "Samples"
TAB_MEMORY = "Memory over one call"
TAB_CODE = "Code"
TAB_ENVIRONMENT = "Environment"
THE_TAB = "the tab «{tab}»"

# --- the tab «Table» (strategy_table.py) -----------------------------------------------------------------------------

FASTER = "× faster than {baseline}"
TABLE_ALT = "The figures of all strategies"
COLUMNS = "Columns"
COLUMNS_LABEL = "Columns of the table"

# --- the tab «Break even» (details.py, tables.py) --------------------------------------------------------------------

NO_TOTALS = "No strategy has both a first call and a latency."
TOTALS_ABOUT = "The first call traces and compiles; each further one costs the latency."
COMPILED = "compiled"
AGAINST_EAGER = "against {strategy}"
BREAK_EVEN_ALT = "For each compiled strategy, after how many calls it has cost less than each eager one"
BREAK_EVEN_NOTE = (
    "Number of calls, the first included, after which the strategy at the left has cost less in total, with "
    "{confidence} intervals; the scatter of first calls between processes is in them. Where latencies are too close to "
    "tell, ≥ stands before the fewest calls that it may take."
)
RUNTIME_START = (
    " TensorFlow and XLA take up to {start} once per process to start, whatever the strategy: that is not counted."
)

# --- the tab «Samples» (details.py) ----------------------------------------------------------------------------------

NO_SAMPLE = "No sample was taken."
ALL = "all"
SAMPLES_OF_ONE = "{samples:,} samples of 1 strategy"
SAMPLES_OF = "{samples:,} samples of {strategies} strategies"
SAMPLES_ALT = "{samples}, by round; a line joins the samples of one process."
SAMPLES_ABOUT = (
    "{samples}. A point is one sample, the mean of some calls in a row; a line joins those of one process. {control}"
)
SAMPLES_ONE_IN = "Of the run's samples one in {every} is drawn. "
SAMPLES_CONTROL = "The control is {strategy}, entered twice."

# --- the tab «Memory over one call» (details.py) ---------------------------------------------------------------------

NO_TIMELINES = "No strategy has a timeline of its memory."
THREE = "the three that matter"
TIMELINE_ALT = "Memory held over one call: {strategy} holds {size} at most."
TIMELINE_ABOUT = "One steady call; inputs and captured variables exist before it and are not counted."
THREE_ABOUT = " Drawn: the first, the one that needs the least, and the baseline or the one that needs the most."
AT_PEAK = "**Held at the peak of {size}**, by the op that allocated it"
OP_UNNAMED = "not named"
HELD = "memory"
SHARE = "share"
AT_PEAK_ALT = "What held memory at the peak of {strategy}"

# --- the tab «Code» (details.py) -------------------------------------------------------------------------------------

CODE_ABOUT = "Whole scripts: they run with TensorFlow and NumPy alone, and are the code that was measured."
CODE_IMPORTED = (
    "This code is from an imported file. It is shown as text, and nothing here has executed it: read it before you do."
)
SCRIPT_OF = "Script of"
COMPARED_WITH = "Compared with"
SAME_TEXTS = "They are the same."
SCRIPT_UNKNOWN = "# The script of this strategy is not known: {error}\n"
SCRIPT_NOT_HELD = "# The file does not hold the script of this strategy.\n"
VECTORISED = (
    ":material/info: `tf.vectorized_map` maps many elements at once: `tf.print` and assertions in the function run for "
    "only one of them, without a warning."
)
BOTH_SCRIPTS = "Both scripts, to copy: first {one}, then {other}."

# --- the tab «Environment» (details.py) ------------------------------------------------------------------------------

FACT = "fact"
VALUE = "value"
ENVIRONMENT_ALT = "What the comparison was measured on"
FACT_RUN = "run"
FACT_CREATED = "created"
FACT_STATUS = "status"
FACT_END = "ended because"
FACT_ANALYSIS = "analysis"
ANALYSIS = "{method}; {confidence:.0%} intervals"
FACT_PROBES = "probes"
FACT_CONTROL = "control"
CONTROL = "{strategy} entered twice: ratio {ratio:.3f} [{low}, {high}]"

# --- how right the values are (correctness.py) -----------------------------------------------------------------------

CORRECTNESS = "**Correctness** · {sentence}"
NOTHING_COMPARED = "No output has been compared with the reference yet."
SOME_WRONG = "{wrong} of {checked} wrong: {strategies}."
ONE_AGREES = "{strategy} agrees with {reference} {nearness}."
ALL_AGREE = "All {count} agree with {reference} {nearness}."
OTHERS_AGREE = "The other {count} agree with {reference} {nearness}."
REFERENCE = "float64"
# Of a function of a person's own, by the word for its reference.
OWN_REFERENCES = {
    "float64": "your function run slice by slice in float64",
    "own": "your function run slice by slice",
    "given": "the reference that was given",
    "shapes": "your function in shapes and dtypes, which is all that can be compared,",
}
EXACTLY = "exactly"
WITHIN_TOLERANCE = "within tolerance"
WITHIN_ULP = "within {ulp} ULP"
WITHIN_ULP_OF = "within {ulp} ULP of {dtype}"
NEAR_ZERO = (
    "within tolerance: the largest absolute error is {error}. Some values are so near to zero that an error in "
    "ULP says nothing about them"
)
ERRORS = "Errors of each strategy"
CHECK = "check"
PASS = "✓ pass"
WRONG = "✕ wrong"
LARGEST_ERROR = "largest absolute error"
RELATIVE_ERROR = "relative"
ULP_ERROR = "in ULP"
NAN_DIFFERS = "NaN differs"
ERRORS_ALT = "Each strategy's largest errors against the float64 reference"

# --- what did not work, and what is good to know (problems.py, correctness.py) ---------------------------------------

OUT_OF_MEMORY = "It needs more memory than there is: a smaller batch may fit."
OVER_LIMIT = "It needs more memory than the limit of {limit:,} MiB: a smaller batch or a higher limit may help."
BY_OUTCOME = {
    "timeout": "It did not finish in its time.",
    "unsupported": "It cannot run this way.",
    "wrong": "Its values differ from the reference.",
}
NO_MESSAGE = "It ended without a message."
ALLOWED_ERROR = "In {output} an error of {errors} is allowed."
THE_OUTPUT = "the output"
OR = " or "
FULL_TEXT = "Full text"
FULL_TEXTS = "Full texts ({count})"
GOOD_TO_KNOW = "Good to know ({count})"

# --- how a sweep came out (sweep.py) ---------------------------------------------------------------------------------

FILES_SENTENCE = (
    ":material/info: This sentence comes from the file: an earlier Mapbench, which weighed samples in another way, "
    "wrote it."
)
SWEEP_ENDED = ENDED | {"budget": "The time budget was spent"}
POINTS_DONE = ":material/info: {ended}: {done} of {points} points are complete."
POINTS_KEPT = f"{POINTS_DONE} What was measured is kept."
POINTS_CONTINUE = f"{POINTS_DONE} What was measured is kept, and Continue measures the rest."
NOTHING_MEASURED = "No point was measured. {reason}"
DOUBT_AT = "at {place}: {doubt}"
DOUBT_AT_TWO = "at {place}, and likewise at 1 more point: {doubt}"
DOUBT_AT_MORE = "at {place}, and likewise at {count} more points: {doubt}"

# --- a sweep over one axis (sweep.py, sweep_pair.py) -----------------------------------------------------------------

SWEEP_LATENCY = "**Latency** of one call over {axis}"
SWEEP_LATENCY_ABOUT = (
    "Band: 95 % interval. Ring: one overtakes another, with its interval. ✕: did not work, or was not run."
)
CROSSOVERS = "**Where one overtakes another**"
PAIR_ONE = "Where does"
PAIR_OTHER = "overtake"
NO_CROSSOVER = "One strategy leads throughout the range: nobody overtakes it."
ONE_PAIR_APART = "1 more pair of leading strategies does not cross"
PAIRS_APART = "{count} more pairs of leading strategies do not cross"
SWEEP_MEMORY = "**Memory** of one call over {axis}"
NOT_RUN = "**Not run** ({count})"
SCALING = "**Scaling**: latency ≈ a + b · {axis}"
FIXED_COST = "fixed cost per call, a"
SLOPE = "{slope}, b"
PER_ELEMENT = "cost per element"
PER_OTHER = "cost for each of {axis}"
GROWS_AS = "grows as"
FIT_NOTE = "note"
SCALING_ALT = "Fixed cost per call, {slope} and growth of each strategy"

# --- a sweep over two axes (sweep.py) --------------------------------------------------------------------------------

MAP = "**Who is fastest** at each {across} and {up}: {measured} of {cells} cells measured"

# --- one point of a sweep (sweep_point.py) ---------------------------------------------------------------------------

THE_POINT = "the point"
POINT_AT = "Show the comparison at"
POINT_PLACEHOLDER = "choose a point, or click one above"
COMPARE_LINK = "Open these choices on the Compare page"

# --- latency against memory (sweep.py) -------------------------------------------------------------------------------

THE_FRONT = "latency against memory"
FRONT = "**Latency against memory**"
FRONT_AT = "At"
MEMORY_DIAL = "Memory available"

# --- the run of an id (lookup.py) ------------------------------------------------------------------------------------

RUN_UNREADABLE = "the run cannot be read: {error}"
RUN_DELETED = "the run has been deleted"

# --- runs as files (exports.py) --------------------------------------------------------------------------------------

NO_SUCH_FILE = "Run {run} has no such file."

UNREADABLE = "Run {run} cannot be read: {error}."
DELETED = "Run {run} has been deleted."
NO_ROOM = "Run {run} is left out: the archive has {most} without it. Export fewer at a time."
LEFT_OUT_FILE = "left out.txt"

# --- claims (claims.py) ----------------------------------------------------------------------------------------------

NOT_TRIED = "not tried here yet"
VERDICT_FILTER = "Verdicts"
NO_CLAIM_SHOWN = "No claim has such a verdict."
TRY_GROUP = "Try these {count} ({time})"
TRY = "Try ({time})"
TRY_AGAIN = "Again ({time})"
EVIDENCE = "Evidence"
CLAIMED = "{} is claimed"
SAID_BY = "**It is said in** {places}."
# The documents of docs/claims.md.
DOCUMENTS = {
    "seed 1": "an article on making tf.map_fn fast",
    "seed 2": "an article on tf.map_fn and Python loops",
    "seed 3": "an article on tf.map_fn and GPUs",
    "seed 4": "an article on the memory of tf.map_fn",
    "seed 5": "the documentation of tf.vectorized_map",
}
NO_EVIDENCE = "Nothing has been measured for it here yet."
MEASURED_FOR_IT = "Measured for it:"
THE_EVIDENCE = "the evidence"
SCRIPT_TOOK = "A script, run as it stands in an interpreter of its own; it took {time}."
SCRIPT_PRINTED = "It printed:"
