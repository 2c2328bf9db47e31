"""Correctness: one sentence on how near the right strategies are to the reference; the errors of each on demand."""

import math

import pandas as pd
import streamlit as st
from msgspec import UNSET

from measure.output.rows import Row
from measure.run.run import Correctness, LeafCheck, Measurement, Request
from views.result import strategy_table, texts
from views.ui import look
from views.ui.memo import packed


def draw(request: Request, rows: list[Row], prefix: str) -> None:
    """Draw the sentence, and a table that is made when it is opened. ``prefix`` begins its key."""
    st.markdown(texts.CORRECTNESS.format(sentence=look.plain(sentence(request, rows))))
    if not any(row.ok is not None for row in rows):
        return
    with st.expander(texts.ERRORS, type="compact", key=f"{prefix}errors", on_change="rerun") as opened:
        if opened.open:
            table = packed(frame(rows))
            st.dataframe(
                table, hide_index=True, key=f"{prefix}correctness", row_height=strategy_table.ROW_HEIGHT,
                height=strategy_table.height(table), alt=texts.ERRORS_ALT,
                column_config={
                    texts.STRATEGY_COLUMN: st.column_config.Column(width=strategy_table.name_width(rows), pinned=True)
                },
            )  # fmt: skip


def frame(rows: list[Row]) -> pd.DataFrame:
    """Return one line per checked strategy: passed or not, and the three largest errors. Wrong ones first."""
    lines = [
        {
            texts.STRATEGY_COLUMN: row.label,
            texts.CHECK: texts.PASS if row.ok else texts.WRONG,
            texts.LARGEST_ERROR: look.error_size(row.max_abs),
            texts.RELATIVE_ERROR: look.error_size(row.max_rel),
            texts.ULP_ERROR: look.error_size(row.max_ulp),
            texts.NAN_DIFFERS: f"{row.nan_mismatches:,}",
        }
        for row in sorted(rows, key=lambda row: bool(row.ok))
        if row.ok is not None
    ]
    return pd.DataFrame(lines)


def sentence(request: Request, rows: list[Row]) -> str:
    """Say how many strategies are wrong and how near the others are: «All 12 agree with float64 within 1 ULP of
    float32.»"""
    checked = [row for row in rows if row.ok is not None]
    right = [row for row in checked if row.ok]
    wrong = [row.slug for row in checked if not row.ok]
    if not checked:
        return texts.NOTHING_COMPARED
    parts = []
    if wrong:
        parts.append(texts.SOME_WRONG.format(wrong=len(wrong), checked=len(checked), strategies=", ".join(wrong)))
    if right:
        agree = texts.ONE_AGREES if len(right) == 1 else texts.OTHERS_AGREE if wrong else texts.ALL_AGREE
        parts.append(
            agree.format(
                strategy=right[0].slug, count=len(right), reference=_reference(request), nearness=_nearness(right)
            )
        )
    return " ".join(parts)


def tolerances(measurement: Measurement) -> list[str]:
    """Return a sentence for each wrong leaf of an output: the error that it may have. Plain text."""
    check: Correctness | None = measurement.correctness
    sentences = []
    for leaf in check.leaves if check else []:
        allowed = [f"{name} {look.error_size(leaf.tolerance.get(name))}" for name in ("absolute", "relative")
                   if isinstance(leaf.tolerance.get(name), (int, float)) and leaf.tolerance.get(name)]  # fmt: skip
        if allowed and (leaf.mismatch_share or leaf.nan_mismatches):
            output = leaf.path or texts.THE_OUTPUT
            sentences.append(texts.ALLOWED_ERROR.format(output=output, errors=texts.OR.join(allowed)))
    return sentences


def _reference(request: Request) -> str:
    """The right results in words. A file from elsewhere may hold any word for them."""
    own = request.own
    return texts.REFERENCE if own is UNSET else texts.OWN_REFERENCES.get(own.facts.reference, texts.REFERENCE)


def _nearness(right: list[Row]) -> str:
    """Say how far right strategies are from the reference: in ULP where that tells something of every value."""
    leaves = [leaf for row in right if row.measurement.correctness for leaf in row.measurement.correctness.leaves]
    if not leaves:
        return texts.WITHIN_TOLERANCE
    if all(leaf.max_abs == 0 for leaf in leaves):
        return texts.EXACTLY
    if any(_is_near_zero(leaf) for leaf in leaves):
        most = max(leaf.max_abs or 0.0 for leaf in leaves)
        return texts.NEAR_ZERO.format(error=look.error_size(most))
    most = max(leaf.max_ulp or 0.0 for leaf in leaves)
    kinds = {leaf.dtype for leaf in leaves if leaf.max_ulp is not None}
    if not most:  # of a file from elsewhere
        return texts.WITHIN_TOLERANCE
    if len(kinds) == 1:
        return texts.WITHIN_ULP_OF.format(ulp=_at_most(most), dtype=kinds.pop())
    return texts.WITHIN_ULP.format(ulp=_at_most(most))


def _is_near_zero(leaf: LeafCheck) -> bool:
    """True if a value is right only by the absolute error that is allowed where others have cancelled out."""
    allowed = leaf.tolerance.get("relative")
    if leaf.max_ulp is None and leaf.max_abs == 0:
        return False  # whole numbers that are equal
    return leaf.max_rel is None or leaf.max_ulp is None or (isinstance(allowed, float) and leaf.max_rel > allowed)


def _at_most(value: float) -> str:
    """Two digits, rounded up: 0.5, 1, 1.6, 83, 1,300."""
    digits = 1 - math.floor(math.log10(value))
    rounded = math.ceil(value * 10**digits - 1e-9) / 10**digits
    return f"{rounded:,.{max(0, digits)}f}".rstrip("0").rstrip(".") if digits > 0 else f"{rounded:,.0f}"
