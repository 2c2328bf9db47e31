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

# --- a part of the page that could not be drawn ----------------------------------------------------------------------

FAULT = (
    "A fault in Mapbench kept {part} from being shown. Measuring is not affected; the server's log holds the details. "
    "Reloading the page may help."
)
