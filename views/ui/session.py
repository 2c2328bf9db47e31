"""The visitor's own mark on runs."""

import secrets

import streamlit as st


def owner() -> str:
    """Return the mark of this session's runs; nobody else can know it."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = secrets.token_hex(16)
    return str(st.session_state["owner"])
