"""A comparison's result: the answer, the picture with its rows, the tabs, what did not work."""

import streamlit as st
from msgspec.structs import replace

from measure import client
from measure.judge.findings import Findings, findings
from measure.run.run import Run
from measure.store.store import Snapshot
from views.charts import picture
from views.result import answer, heading, problems, progress, tabs
from views.ui import guard
from views.ui.memo import Memo, packed

_memo = Memo(__name__)


def draw_comparison(
    run: Run, version: int, *, finished: bool, baseline: str | None, prefix: str = "", imported: bool = False
) -> None:
    """Draw a comparison that has ended, or a point of a sweep that may not have. Nothing is computed anew while
    ``version``, that of its results, stays; ``prefix`` begins the keys; ``imported``: its code may be anybody's."""
    key = (run.id, version, finished, baseline)
    result = _memo.get(key, lambda: findings(run, baseline))
    with guard.calm("the result"):
        if finished:
            answer.draw(result, version, prefix, imported=imported)
        else:
            heading.draw_warnings(result)
        st.vega_lite_chart(
            _memo.get((*key, "picture"), lambda: packed(picture.frame(result))), picture.specification(result),
            key=f"{prefix}picture", alt=picture.takeaway(result),
        )  # fmt: skip
        st.caption(_memo.get((*key, "caption"), lambda: picture.caption(result)))
    if finished:
        tabs.draw(result, version, prefix, imported=imported)
    with guard.calm("the rest of the result"):
        problems.draw(result, prefix)


def draw_running(snapshot: Snapshot, baseline: str | None) -> None:
    """Draw the picture of a run that waits or is measured. It fills in by itself, without the rest of the page: that
    would take from what is measured."""
    st.fragment(_fill, run_every=progress.poll_s(snapshot))(snapshot.run.id, baseline)


def _fill(run_id: str, baseline: str | None) -> None:
    with guard.calm("the picture"):
        if (snapshot := client.shared().snapshot(run_id)) is None:
            return
        key = (run_id, snapshot.version, baseline, tuple(sorted(snapshot.stages.items())))
        result = _memo.get(key, lambda: _standing(snapshot, baseline))
        st.vega_lite_chart(
            packed(picture.frame(result, snapshot.rough_s)), picture.specification(result), key="picture",
            alt=picture.takeaway(result),
        )  # fmt: skip
        st.caption(picture.caption(result))


def _standing(snapshot: Snapshot, baseline: str | None) -> Findings:
    """Return the findings of a run as it stands: its stages tell more than its results."""
    now = [replace(m, stage=snapshot.stages.get(m.strategy, m.stage)) for m in snapshot.run.measurements]
    return findings(replace(snapshot.run, measurements=now), baseline)
