"""Claims with their verdicts: the newest run on each, the list by question, and one claim with its evidence."""

import functools
import html
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import msgspec
import streamlit as st

from measure import admission, client
from measure.claims import known, scripts, verdicts
from measure.claims.spec import QUESTIONS, Claim, Script, Truth
from measure.claims.tries import WORKLOAD, seconds_of, words_of
from measure.claims.verdicts import Verdict, Word
from measure.run.place import StoreError
from measure.run.run import Evidence, Run, ScriptEnd
from measure.store.entries import RUNNING, Query
from views.ui import guard, look, memo
from workloads import places

# The documents of docs/claims.md.
DOCUMENTS = {
    "seed 1": "an article on making tf.map_fn fast",
    "seed 2": "an article on tf.map_fn and Python loops",
    "seed 3": "an article on tf.map_fn and GPUs",
    "seed 4": "an article on the memory of tf.map_fn",
    "seed 5": "the documentation of tf.vectorized_map",
}
# Background and text of a verdict's badge; a contrast of 4.5 and more.
_GREY = ("light-dark(#e8ebf0, #2a3547)", "light-dark(#414b5c, #c3ccda)")
_COLOURS: dict[Word | None, tuple[str, str]] = {
    "holds": ("light-dark(#d9f2e3, #123d28)", "light-dark(#0b5a33, #8fe3b4)"),
    "does not hold": ("light-dark(#fbe0e0, #4a1b1f)", "light-dark(#8f1d24, #ffb3b3)"),
    "depends": ("light-dark(#fdebd0, #453012)", "light-dark(#7a4a00, #f7c57c)"),
    "cannot tell": _GREY,
    "cannot be tried here": _GREY,
    None: ("transparent;border:1px dashed light-dark(#8a93a3, #66758c)", "inherit"),
}
_SIGNS: dict[Truth, str] = {"yes": "✓", "no": "✕", "unknown": "?"}
_NOT_TRIED, _NEEDS = "not tried here yet", "It needs a GPU."
# Stands before a verdict: it was measured on this machine, or comes with Mapbench.
HERE, EXAMPLE = "Here:", "Example:"
# Runs that are looked through. Few are, where a recent one has tried all claims.
_MOST_READ = 200
_outlines = memo.Memo(__name__)
# The callback of buttons that try claims; None where nothing can be tried now.
Try = Callable[[tuple[str, ...]], None] | None


@dataclass(frozen=True)
class Tried:
    """A claim with the run that it was tried in and its verdict by that, after ``where``; neither where it was not
    tried. ``can_try``: this machine has what it needs."""

    claim: Claim
    run: Run | None = None
    verdict: Verdict | None = None
    where: str = ""
    can_try: bool = True

    @property
    def word(self) -> Word | None:
        return self.verdict.word if self.verdict else None


def judged(claim: Claim, run: Run | None, where: str = "") -> Tried:
    """A claim by a run, which may have measured what it needs for another claim; while that goes on, a claim whose
    figures are not all there yet is not judged."""
    can_try = not claim.needs_gpu or any(name.startswith("GPU") for name in client.shared().host().devices)
    if run is None or not (verdicts.tells_of(claim, run) or (run.finished and claim.id in (run.claims or []))):
        return Tried(claim, None, None if can_try else Verdict("cannot be tried here", _NEEDS), can_try=can_try)
    return Tried(claim, run, verdicts.of_run(claim, run), where, can_try)


def newest() -> dict[str, Run]:
    """The newest run that has all figures that a claim needs, by the claim's id; a claim on which there is none is left
    out. A run from elsewhere tells of another machine: it counts only on a server that shows runs and measures none.
    Raises `StoreError`."""

    @functools.cache
    def load(run_id: str) -> Run | None:
        try:
            snapshot = client.shared().snapshot(run_id)
        except (ValueError, StoreError):  # one that is damaged hides no other
            return None
        return snapshot.run if snapshot is not None else None

    def tells_of(run_id: str) -> list[str]:
        run = load(run_id)
        return [claim.id for claim in known.all_claims() if run and verdicts.tells_of(claim, run)]

    ids: dict[str, str] = {}
    for entry in client.shared().store.entries(Query("", WORKLOAD), 0, _MOST_READ):
        if entry.imported and not places.viewer():
            continue
        # Remembered of a run that has ended: all are looked through at every interaction, and hardly any is shown.
        made = functools.partial(tells_of, entry.id)
        ids = dict.fromkeys(made() if entry.status == RUNNING else _outlines.get(entry, made), entry.id) | ids
        if len(ids) == len(known.all_claims()):
            break
    return {claim_id: run for claim_id, run_id in ids.items() if (run := load(run_id)) is not None}


# --- the list --------------------------------------------------------------------------------------------------------


def button(label: str, tried: Sequence[Tried], key: str, try_: Try) -> None:
    """Draw the button that tries claims, ``{}`` in its label, with the time that takes, where that can be; its hint
    says why it cannot."""
    claims = [item.claim for item in tried if item.can_try]
    if try_ is not None and claims:
        label = f"{label.format(len(claims))} ({look.duration(seconds_of(claims))})"
        refusal = admission.refusal(tuple(claims))
        st.button(
            label, key=key, icon=":material/play_arrow:", on_click=try_,
            type="primary" if key == "try_all" else "tertiary", args=(tuple(claim.id for claim in claims),),
            disabled=refusal is not None, help=look.plain(refusal) if refusal else None,
        )  # fmt: skip


def draw_list(tried: Sequence[Tried], *, try_: Try, open_: Callable[[str], None]) -> None:
    """Draw claims by question, under a filter by verdict. ``open_`` is the callback of buttons that show one with its
    evidence."""
    counts = {word: count for word in _COLOURS if (count := sum(item.word == word for item in tried))}
    chosen: list[Word | None] = []
    if len(counts) > 1:
        chosen = st.pills(
            "Verdicts", list(counts), selection_mode="multi", key="claims_filter", label_visibility="collapsed",
            format_func=lambda word: f"{word or _NOT_TRIED} {counts[word]}",
        )  # fmt: skip
    for question, title in QUESTIONS.items():
        asked = [item for item in tried if item.claim.question == question and (not chosen or item.word in chosen)]
        if not asked:
            continue
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"question_{question}"):
            st.subheader(title, anchor=False, width="content")
            if len(asked) > 1:
                button("Try these {}", asked, f"try_{question}", try_)
        for item in asked:
            _draw_item(item, try_, open_)


def _draw_item(item: Tried, try_: Try, open_: Callable[[str], None]) -> None:
    claim = item.claim
    with st.container(key=look.key("claim", claim.id), gap=None):
        st.html(
            f'<div style="display:flex;gap:.7rem;align-items:baseline;flex-wrap:wrap">{_badge(item.word)}'
            '<div style="flex:1 1 20rem;min-width:0;overflow-wrap:anywhere">'
            f'<div>{look.code_html(claim.sentence)}</div><div style="font-size:.88rem;opacity:.85">'
            f"<b>{item.where}</b> {words_html(item.verdict.sentence if item.verdict else '', claim)}</div></div></div>"
        )
        with st.container(horizontal=True, gap="small", key=look.key("claim_buttons", claim.id)):
            if item.run:
                st.button("Evidence", key=look.key("open", claim.id), type="tertiary", on_click=open_,
                          args=(claim.id,), icon=":material/query_stats:")  # fmt: skip
            button("Again" if item.verdict else "Try", [item], look.key("try", claim.id), try_)


def words_html(words: str, claim: Claim) -> str:
    """Words on a claim as HTML, with the names of its strategies and what is in backticks as code."""
    names = [slug for need in claim.needs if not isinstance(need, Script) for slug in need.strategies]
    parts = enumerate(words.split("`"))
    return "".join(look.code_html(f"`{part}`") if place % 2 else look.named_html(part, names) for place, part in parts)


def _badge(word: Word | None) -> str:
    background, colour = _COLOURS[word]
    return (
        f'<span style="flex:0 0 10.5rem;text-align:center;font-size:.82rem;font-weight:600;padding:.1rem .5rem;'
        f'border-radius:999px;color:{colour};box-sizing:border-box;background:{background}">{word or _NOT_TRIED}</span>'
    )


# --- one claim -------------------------------------------------------------------------------------------------------


def draw_claim(item: Tried, *, imported: bool) -> None:
    """Draw a claim, what was seen of each of its tests, who says it, and the measurements themselves."""
    claim = item.claim
    lines = [
        f'<div aria-hidden="true" style="font-weight:600">{_SIGNS[answer.truth]}</div>'
        f"<div>{look.code_html(f'{test.when}: ' if test.when else '')}{words_html(answer.words, claim)}"
        f'<span style="opacity:.75">{html.escape(answer.claimed)}</span></div>'
        for test, answer in zip(claim.tests, item.verdict.seen if item.verdict else (), strict=False)
    ]
    st.html(
        f'<h2 style="font-size:1.35rem;font-weight:600;line-height:1.35;margin:0 0 .6rem;padding:0">'
        f'{look.code_html(claim.sentence)}</h2><div style="display:flex">{_badge(item.word)}</div>'
        f'<div style="display:grid;grid-template-columns:auto 1fr;gap:.2rem .7rem;margin:.6rem 0">'
        f"{''.join(lines)}</div>"
        f'<div style="opacity:.85">{look.code_html(claim.advice)}</div>'
    )
    places_of = [
        look.plain(DOCUMENTS[where])
        if where in DOCUMENTS
        else f"[{look.plain(where.removeprefix('https://'))}]({where})"
        for where in claim.said
    ]
    st.markdown(f"**It is said in** {'; '.join(places_of)}.")
    evidence = {part.need: part for part in (item.run.evidence or [])} if item.run else {}
    names = {need.key: words_of(need) for need in claim.needs if need.key in evidence}
    if not names:
        st.caption("Nothing has been measured for it here yet." if item.can_try else _NEEDS)
        return
    key = st.pills(
        "Measured for it:", list(names), key=f"evidence_{claim.id}", default=next(iter(names)), required=True,
        format_func=names.__getitem__,
    )  # fmt: skip
    with guard.calm("the evidence"):
        # An imported run may hold measurements under the ids of others, and twice under one.
        version = (item.run.id if item.run else "", imported, len(evidence), key)
        _draw_evidence(evidence[key], version, imported=imported)


def _draw_evidence(part: Evidence, version: Hashable, *, imported: bool) -> None:
    if part.script is not None:
        _draw_script(part.script)
    elif part.run is None:
        st.warning(look.plain(look.shortened(look.sentence(part.reason), look.MOST_SIGNS)), icon=":material/block:")
    else:
        # Loading Altair and pandas takes a moment.
        from views.result.compare import draw_comparison

        memo.opened(part.run.id, len(msgspec.json.encode(part.run)))
        draw_comparison(part.run, version, finished=True, baseline=None, imported=imported)


def _draw_script(end: ScriptEnd) -> None:
    if end.error:
        st.warning(look.plain(look.sentence(end.error)), icon=":material/block:")
    if end.figures:
        st.table({look.plain(name): look.plain(_figure(value)) for name, value in end.figures.items()})  # Markdown
    st.caption(f"A script, run as it stands in an interpreter of its own; it took {look.duration(end.seconds)}.")
    st.code(scripts.whole(end.source), language="python", line_numbers=True)
    if end.printed.strip():
        st.caption("It printed:")
        st.code(end.printed, language=None, wrap_lines=True)


def _figure(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return ", ".join(look.number(item) if isinstance(item, float) else str(item) for item in values)[:200]
