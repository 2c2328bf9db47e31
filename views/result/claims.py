"""Claims with their verdicts: the list by question, and one claim with its evidence."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from measure import admission
from measure.claims import verdicts
from measure.claims.spec import QUESTIONS, Claim, Question, Seen, Truth
from measure.claims.tries import seconds_of, words_of
from measure.claims.verdicts import Verdict, Word
from measure.run.run import Evidence, Run, ScriptEnd
from views.result import texts
from views.ui import guard, look

_SIGNS: Mapping[Truth, str] = {"yes": "✓", "no": "✕", "mixed": "±", "unknown": "?"}
_GREY = ("light-dark(#e8ebf0, #2a3547)", "light-dark(#414b5c, #c3ccda)")
# Background and text of a verdict's badge, in the order of their words; a contrast of 4.5 and more.
_COLOURS: Mapping[Word | None, tuple[str, str]] = dict(
    zip(
        (*verdicts.WORDS, None),
        (
            ("light-dark(#d9f2e3, #123d28)", "light-dark(#0b5a33, #8fe3b4)"),
            ("light-dark(#fbe0e0, #4a1b1f)", "light-dark(#8f1d24, #ffb3b3)"),
            ("light-dark(#fdebd0, #453012)", "light-dark(#7a4a00, #f7c57c)"),
            _GREY,
            _GREY,
            ("transparent", "inherit"),
        ),
        strict=True,
    )
)
_CODE = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Tried:
    """A claim with the run that it was tried in and its verdict by that; neither where it was not tried."""

    claim: Claim
    run: Run | None = None
    verdict: Verdict | None = None

    @property
    def word(self) -> Word | None:
        return self.verdict.word if self.verdict else None


def judged(claim: Claim, run: Run | None) -> Tried:
    """A claim by a run, which may have measured what it needs for another claim; while that goes on, a claim whose
    figures are not all there yet is not judged."""
    if run is None or not (verdicts.tells_of(claim, run) or (run.finished and claim.id in (run.claims or []))):
        return Tried(claim)
    return Tried(claim, run, verdicts.of_run(claim, run))


def draw_list(
    tried: Sequence[Tried], *, try_: Callable[[tuple[str, ...]], None] | None, open_: Callable[[str], None]
) -> None:
    """Draw claims by question, under a filter by verdict. ``try_`` and ``open_`` are the callbacks of buttons that try
    claims, if they can be tried now, and that show one with its evidence."""
    chosen = _filter(tried)
    shown = [item for item in tried if not chosen or item.word in chosen]
    if not shown:
        st.caption(texts.NO_CLAIM_SHOWN)
    for question, title in QUESTIONS.items():
        asked = [item for item in shown if item.claim.question == question]
        if asked:
            _question(question, title, asked, try_, open_)


def _filter(tried: Sequence[Tried]) -> list[Word | None]:
    counts = {word: sum(item.word == word for item in tried) for word in (*verdicts.WORDS, None)}
    offered = [word for word, count in counts.items() if count]
    if len(offered) < 2:
        return []
    return st.pills(
        texts.VERDICT_FILTER, offered, selection_mode="multi", key="claims_filter", label_visibility="collapsed",
        format_func=lambda word: f"{word or texts.NOT_TRIED} {counts[word]}",
    )  # fmt: skip


def _question(
    question: Question,
    title: str,
    asked: Sequence[Tried],
    try_: Callable[[tuple[str, ...]], None] | None,
    open_: Callable[[str], None],
) -> None:
    ids = tuple(item.claim.id for item in asked)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"question_{question}"):
        st.subheader(title, anchor=False, width="content")
        refusal = None
        if try_ is not None and len(ids) > 1:
            claims = tuple(item.claim for item in asked)
            seconds, refusal = seconds_of(claims), admission.refusal(claims)
            st.button(
                texts.TRY_GROUP.format(count=len(ids), time=look.duration(seconds)), key=f"try_{question}",
                type="tertiary", icon=":material/play_arrow:", on_click=try_, args=(ids,), disabled=bool(refusal),
            )  # fmt: skip
    if refusal:
        st.caption(look.plain(refusal))
    for item in asked:
        with st.container(key=look.key("claim", item.claim.id), gap=None):
            st.html(_words(item))
            with st.container(horizontal=True, gap="small", key=look.key("claim_buttons", item.claim.id)):
                if item.verdict is not None:
                    st.button(
                        texts.EVIDENCE, key=look.key("open", item.claim.id), type="tertiary",
                        icon=":material/query_stats:", on_click=open_, args=(item.claim.id,),
                    )  # fmt: skip
                if try_ is not None:
                    words = texts.TRY if item.verdict is None else texts.TRY_AGAIN
                    time = look.duration(seconds_of([item.claim]))
                    st.button(
                        words.format(time=time), key=look.key("try", item.claim.id), type="tertiary",
                        icon=":material/play_arrow:", on_click=try_, args=((item.claim.id,),),
                    )  # fmt: skip


def _words(item: Tried) -> str:
    """A claim and its verdict, as HTML."""
    seen = f'<div style="font-size:.88rem;opacity:.85">{_html(item.verdict.sentence)}</div>' if item.verdict else ""
    return (
        '<div style="display:flex;gap:.7rem;align-items:baseline;flex-wrap:wrap">'
        f"{badge(item.word)}"
        f'<div style="flex:1 1 20rem;min-width:0;overflow-wrap:anywhere"><div>{_html(item.claim.sentence)}</div>'
        f"{seen}</div></div>"
    )


def badge(word: Word | None) -> str:
    """A verdict in its colour, as HTML."""
    background, colour = _COLOURS[word]
    border = "border:1px dashed light-dark(#8a93a3, #66758c);" if word is None else ""
    return (
        f'<span style="flex:0 0 10.5rem;text-align:center;font-size:.82rem;font-weight:600;padding:.1rem .5rem;'
        f'border-radius:999px;background:{background};color:{colour};{border}box-sizing:border-box">'
        f"{word or texts.NOT_TRIED}</span>"
    )


def _html(words: str) -> str:
    """Words with their parts in backticks as code, as HTML."""
    return _CODE.sub(r'<code style="font-size:.9em">\1</code>', html.escape(words))


def draw_claim(item: Tried, version: int, *, imported: bool) -> None:
    """Draw a claim, what was seen of each of its tests, who says it, and the measurements themselves."""
    st.html(
        f'<h2 style="font-size:1.35rem;font-weight:600;line-height:1.35;margin:0;padding:0">'
        f"{_html(item.claim.sentence)}</h2>"
    )
    st.html(f'<div style="display:flex">{badge(item.word)}</div>')
    st.html(_tests(item))
    if item.claim.advice:
        st.html(f'<div style="opacity:.85">{_html(item.claim.advice)}</div>')
    st.markdown(texts.SAID_BY.format(places="; ".join(map(_place, item.claim.said))))
    evidence = {part.need: part for part in (item.run.evidence or [])} if item.run else {}
    needs = [need for need in item.claim.needs if need.key in evidence]
    if not needs:
        st.caption(texts.NO_EVIDENCE)
        return
    names = {need.key: words_of(need) for need in needs}
    key = st.pills(
        texts.MEASURED_FOR_IT, list(names), key=f"evidence_{item.claim.id}", default=needs[0].key, required=True,
        format_func=lambda key: names[key],
    )  # fmt: skip
    with guard.calm(texts.THE_EVIDENCE):
        _evidence(evidence[key], version, imported=imported)


def _tests(item: Tried) -> str:
    seen = item.verdict.seen if item.verdict else ()
    lines = [
        f'<div aria-hidden="true" style="font-weight:600">{_SIGNS[each.truth]}</div>'
        f"<div>{_html(f'{test.when}: ' if test.when else '')}{_html(each.words)}{_threshold(each)}</div>"
        for test, each in zip(item.claim.tests, seen, strict=False)
    ]
    return f'<div style="display:grid;grid-template-columns:auto 1fr;gap:.2rem .7rem">{"".join(lines)}</div>'


def _threshold(seen: Seen) -> str:
    return (
        f'<span style="opacity:.75"> ({html.escape(texts.CLAIMED.format(seen.threshold))})</span>'
        if seen.threshold
        else ""
    )


def _place(where: str) -> str:
    """A place where a claim is made, as Markdown."""
    if where in texts.DOCUMENTS:
        return look.plain(texts.DOCUMENTS[where])
    return f"[{look.plain(where.removeprefix('https://'))}]({where})"


def _evidence(part: Evidence, version: int, *, imported: bool) -> None:
    if part.script is not None:
        _script(part.script)
    elif part.run is None:
        st.warning(look.plain(look.sentence(part.reason)), icon=":material/block:")
    elif part.run.kind == "sweep":
        from views.result.sweep import draw_sweep  # loading Altair and pandas takes a moment

        draw_sweep(part.run, version, finished=True, baseline=None, imported=imported)
    else:
        from views.result.compare import draw_comparison

        draw_comparison(part.run, version, finished=True, baseline=None, imported=imported)


def _script(end: ScriptEnd) -> None:
    if end.error:
        st.warning(look.plain(look.sentence(end.error)), icon=":material/block:")
    shown = {name: _figure(value) for name, value in end.figures.items()}
    if shown:
        st.table(shown)
    st.caption(texts.SCRIPT_TOOK.format(time=look.duration(end.seconds)))
    st.code(end.source, language="python", line_numbers=True)
    if end.printed.strip():
        st.caption(texts.SCRIPT_PRINTED)
        st.code(end.printed, language=None, wrap_lines=True)


def _figure(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return ", ".join(look.number(each) if isinstance(each, float) else str(each) for each in values)[:200]
