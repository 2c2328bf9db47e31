"""The texts of the pages, in the order in which a person meets them."""

# --- the link of a run, and its preview ------------------------------------------------------------------------------

NAME = "Mapbench"
ABOUT = "Which way of mapping a function over a batch to use in TensorFlow: latency, memory and correctness compared."
PREVIEW_UNFINISHED = "This run is being measured."
NO_ID = "«{text}» is not the id of a run: an id is 24 digits and letters from a to f."
UNREADABLE = "Run {id} cannot be read: {reason}."
UNKNOWN = "Run {id} is not known here: it was measured on another machine, deleted, or removed to make room."
# Parts of a page, which a fault may keep from being shown.
PAGE = "the page"
CHOICES = "the choices"

# --- Run, above or below the choices of Compare and Sweep ------------------------------------------------------------

FOLD = "▾ Fold the choices"
ONE_STRATEGY = "1 strategy"
STRATEGIES = "{count} strategies"
POINTS = "{count} points"
NEEDS = "{asked}: needs about **{memory}** and **{time}**"
POINT_LEFT_OUT = "\n- :material/block: {point} is left out: {reason}"
RUN_WAITS = ":material/block: Run waits for a valid {choices}."
RUN = "Run"
HOST_STARTS = "TensorFlow is being loaded"
HOST_FAILED = "Nothing can be measured now: {reason}"

# --- a server that shows runs and measures none ----------------------------------------------------------------------

VIEWER = (
    "This server shows runs and measures none. On a machine of your own, `pip install -r requirements.txt` and "
    "`streamlit run app.py` in Mapbench's folder measure; a run that is exported here and imported there can be "
    "measured again."
)

NO_SWEEP = "A sweep is opened by its link, or under Runs."

# --- the first visitor's page of Compare -----------------------------------------------------------------------------

EXAMPLE = "An example, measured before."
EXAMPLE_ABOUT = (
    "{workload} on {cpu}, {date}. "
    "Further left is faster, a shorter bar needs less memory, and rows joined by a bracket cannot be told apart."
)
EXAMPLE_TRY = "Choose what you have, and press Run to measure it here."
EXAMPLE_CPU = "another machine"

# --- a result beside other choices -----------------------------------------------------------------------------------

NOT_ITS_CHOICES = ":material/info: This run's workload or strategies are not known here, so the choices are other ones."
NOT_TRUSTED = (
    ":material/shield: **This run came with code**: the function {function}, which is not known here. Nothing of it "
    "was executed. To measure it here, read it first."
)
ITS_CODE = "The code that came with the run"
TRUST = "I trust this code, run it here"
TRUST_AT_HOME = (
    "On this server no code of others is run. Export the run and import it where Mapbench runs on your machine."
)
CODE_NOT_RUN = "The code of this run cannot be measured here: {error}."
OTHER_CHOICES = ":material/info: **These are results of other choices**: {choices}. Run measures the new ones."
TAKE_CHOICES = "Take the choices of this result"

# --- claims ----------------------------------------------------------------------------------------------------------

CLAIMS_LEAD = (
    "**What is said about mapping in TensorFlow, tried on this machine.** A verdict is computed from figures that were "
    "measured here; the evidence of each is one click away."
)
CLAIMS_EXAMPLE = "These verdicts come from {machine}, with TensorFlow {version}, {date}."
CLAIMS_EXAMPLE_TRY = "Try the claims here."
TRY_ALL = "Try all {count} (about {time})"
ALL_CLAIMS = "All claims"
BACK_TO_CLAIMS = "Back to the claims"
TRY_ONE = "Try it here (about {time})"
TRY_ONE_AGAIN = "Try it again here (about {time})"
WITH_VERSION = "with TensorFlow {version}"
TRIED_ON = "Tried {date} on {machine}{version}"
GONE_CLAIMS = ":material/info: This run holds claims that are no longer tried: {claims}."

# --- the list of runs ------------------------------------------------------------------------------------------------

SEARCH = "Search"
SEARCH_EMPTY = "verdict, machine, date …"
WORKLOAD = "Workload"
STATUS = "Status"
STATUSES = {
    "complete": "complete",
    "budget": "budget spent",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "running": "running",
}
IMPORTED_TOO = ", imported"
PINNED_TOO = ", pinned"
DEVICE = "Device"
ANY = "all"
NO_RUNS = "No run is kept yet: measure one on the Compare page, or import a run file."
NO_RUNS_HERE = "No run is kept yet: import a run file."
NO_MATCH = "No run matches. Other words or fewer filters may find more."
SHOWN = "{first:,} to {last:,} of {count:,} runs, the newest first"
TABLE = "Runs, the newest first"
OPEN = ":material/open_in_new: Open"
DATE_COLUMN = "date ({zone})"
WORKLOAD_COLUMN = "workload"
SIZE_COLUMN = "size"
VERDICT_COLUMN = "verdict"
STATUS_COLUMN = "status"
DEVICE_COLUMN = "device"
MACHINE_COLUMN = "machine"
STORE_FAILED = "The store of runs cannot be used: {reason}."

# --- export and delete -----------------------------------------------------------------------------------------------

MANY_EXPORTS = "Many exports are under way: try again in half a minute."
WHEN_MEASURED = "Charts are drawn when the run that is being measured has its samples: try again in a moment."
NOT_EXPORTED = "This could not be exported: {reason}."
SELECT = "Select runs to export or delete them."
SELECTED = "{count} selected"
EXPORT = "Export"
DELETE = "Delete"
DELETE_HELP = "Running ones stay."
DELETE_OWN_HELP = "Only who started or imported a run can delete it here."
PIN = "Pin"
UNPIN = "Unpin"
PIN_HELP = "A pinned run stays when the oldest ones are removed to make room."
PINNED = "{count} pinned."
UNPINNED = "{count} no longer pinned."
NOT_PINNED = "Nothing was pinned: {reason}."
ASK = "Delete runs?"
ASK_ONE = "The run is deleted for good; links to it will say that it is gone."
ASK_MANY = "These {count} runs are deleted for good; links to them will say that they are gone."
KEEP = "Keep"
ONE_DELETED = "1 run deleted."
DELETED = "{count} runs deleted."
NOT_DELETED = "Nothing was deleted: {reason}."

# --- import ----------------------------------------------------------------------------------------------------------

IMPORT = "Import a run file"
IMPORT_HELP = "A run that was exported elsewhere. It is checked, marked as imported, and nothing in it is executed."
NO_SIZE = "An upload has to say how large it is."
LARGE_UPLOAD = "This file is too large: it has {size:.1f} MiB, and {most} MiB are allowed."
MANY_UPLOADS = "Many files are being imported: try again in half a minute."
SLOW_UPLOAD = "The upload took too long."
IMPORTED = "{file} was imported."
IMPORTED_BEFORE = "{file} holds a run that is here already."
NOT_IMPORTED = "{file} was not imported: {reason}."
OPEN_IMPORTED = "Open it"
