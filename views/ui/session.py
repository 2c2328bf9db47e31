"""Who is looking: a visitor's own mark on runs."""

import secrets

import streamlit as st


def owner() -> str:
    """What marks the runs of this session; nobody else can know it."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = secrets.token_hex(16)
    return str(st.session_state["owner"])
