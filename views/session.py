"""Who is looking: a visitor's own mark on runs, and whether strangers share this server."""

import os
import secrets

import streamlit as st


def owner() -> str:
    """What marks the runs of this session; nobody else can know it."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = secrets.token_hex(16)
    return str(st.session_state["owner"])


def hosted() -> bool:
    """Whether the server is open to strangers (``MAPBENCH_HOSTED=1``): then one deletes only what is one's own."""
    return os.environ.get("MAPBENCH_HOSTED", "").lower() not in ("", "0", "false", "no")
