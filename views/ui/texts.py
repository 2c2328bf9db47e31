"""The texts that every page shares."""

# --- the button that copies a run's link -----------------------------------------------------------------------------

SHARE = {
    "label": "Share",
    "title": "Copies a link that opens this run",
    "copied": "Link copied",
    "by_hand": "Copy this link:",
}

# --- a time to wait or that has passed -------------------------------------------------------------------------------

SHORT_TIME = "under 1 s"

# --- the limits of a hosted server ------------------------------------------------------------------------------------

ALLOWED = (
    "**What this demo allows**: {run} for a comparison, {budget} of it for latencies, {sweep} for a sweep or claims; "
    "{runs} at a time, {address} of one address, {queue} in the queue, and {day} of measuring a day; up to "
    "{strategies} strategies, {cells} cells of a sweep, {threads} threads, {memory} of memory, and files of {upload}. "
    "What was measured in the last {recent} answers an equal request. The oldest runs go when those that are "
    "kept fill {store}."
)
ONE_RUN = "1 run"
RUNS = "{count} runs"

# --- a part of the page that could not be drawn ----------------------------------------------------------------------

FAULT = (
    "A fault in Mapbench kept {part} from being shown. Measuring is not affected; the server's log holds the details. "
    "Reloading the page may help."
)
