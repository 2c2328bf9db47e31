"""Widgets for a case: workload, sizes, options, dtype and device, with a picture of its shapes."""

import html
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

import strategies
import workloads
from views.choices import own
from views.choices.address import Field
from views.ui import look
from views.ui.parameters import option_key, size_key
from workloads.case import Case
from workloads.spec import Leaf, Workload

# Three slices, one behind the other.
_STACK = ", ".join(
    f"{5 * back}px -{5 * back}px 0 {spread}"
    for back in (1, 2)
    for spread in ("-1.5px light-dark(#e3edf9, #23364f)", "0 currentColor")
)


def choose_workload(changed: Callable[[], None]) -> Workload:
    """Draw the list of workloads; ``changed`` is called when another one is chosen."""
    by_slug = {workload.slug: workload for workload in workloads.all()}
    groups = list(dict.fromkeys(workload.group for workload in by_slug.values()))
    for path, message in {**workloads.broken(), **strategies.broken()}.items():
        st.warning(look.plain(Path(path).name + message.removeprefix(path)), icon=":material/broken_image:")
    if st.session_state.get("workload") not in by_slug:  # its file was found to be broken just now
        st.session_state["workload"] = workloads.names()[0]
    offered = [*sorted(by_slug, key=lambda slug: groups.index(by_slug[slug].group)), own.ENTRY]
    slug = st.selectbox(
        "Workload", offered, index=place_of("workload", offered), key="workload", on_change=own.pick,
        args=(changed,), format_func=lambda slug: own.label(by_slug.get(slug)), filter_mode="contains",
    )  # fmt: skip
    own.draw(by_slug[slug], changed)
    return by_slug[slug]


def start_with_defaults() -> None:
    """Set the defaults of a workload that has just been chosen: another one's sizes say nothing about it, and it may
    lack what some strategies need, such as a rewrite."""
    workload = workloads.get(st.session_state["workload"])
    for parameter in workload.sizes:
        st.session_state[size_key(parameter.name)] = parameter.default
    for option in workload.options:
        chosen = option.default if option.values is None else str(option.default)
        st.session_state[option_key(option.name)] = chosen
    lacking = {mapper.slug for mapper in strategies.mappers() if not strategies.offered(mapper, workload)}
    words = st.session_state.get("strategies", [])
    st.session_state["strategies"] = [word for word in words if word.partition(".")[0] not in lacking]


def current(key: str, default: Any = None) -> Any:
    """Return what is chosen, to be a field's default too: a field whose code comes late to a browser, after a second
    run of the page, has nothing but its default."""
    return st.session_state.get(key, default)


def place_of(key: str, options: Sequence[str]) -> int:
    """Return the place of what is chosen among the options of a list: its default, as of `current`."""
    chosen = current(key)
    return options.index(chosen) if chosen in options else 0


def number(label: str, key: str, field: Field, **more: Any) -> Any:
    """Draw a field of whole numbers, or of seconds. It takes any number: one that is not valid is said beside it, where
    a field with bounds would keep the last valid one and measure that."""
    if field.default is not None:
        return st.number_input(label, value=current(key, field.default), key=key, **more)
    # One that may be empty can only be emptied where its default is nothing: what is chosen is set with every run of
    # the page, so that it is there however late the field's code comes.
    if current(key) is not None:
        st.session_state[key] = current(key)
    return st.number_input(label, value=None, key=key, **more)


def faults(fields: Mapping[str, Field]) -> list[str]:
    """Draw what is wrong with the values of these fields; a default is always valid. Return the keys of those that
    are."""
    wrong = []
    for key, field in fields.items():
        if (value := st.session_state[key]) != field.default:
            try:
                field.check(value)
            except ValueError as error:
                st.warning(look.plain(look.sentence(str(error))), icon=":material/block:")
                wrong.append(key)
    return wrong


def sizes(
    workload: Workload, known: Mapping[str, Field], swept: Collection[str] = ()
) -> tuple[dict[str, int], list[str]]:
    """Draw the sizes, and return them and the names of those that are not valid, which have their defaults; so do those
    that are ``swept``, which have no field here. ``known`` are the page's fields by key."""
    about = st.container(gap="xsmall", key="about_workload")
    presets = st.container(key="size_presets")
    size = workload.default_size()
    shown = {size_key(parameter.name): parameter for parameter in workload.sizes if parameter.name not in swept}
    with st.grid(2, min_column_width=110, gap="small", key="sizes"):
        for key, parameter in shown.items():
            bounds = f"{parameter.help}; from {parameter.least:,} to {parameter.most:,}"
            size[parameter.name] = number(parameter.name, key, known[key], step=1, help=bounds)
    wrong = [shown[key].name for key in faults({key: known[key] for key in shown})]
    if not swept and not wrong and (fault := own.fault_at(workload, size)):
        st.warning(look.plain(look.sentence(fault)), icon=":material/block:")
        wrong = [name for name in size if name != "batch"]
    size |= {name: value for name, value in workload.default_size().items() if name in wrong}
    if not swept:
        with presets:
            _presets(workload, {} if wrong else size)
    with about:
        st.caption(
            f"**{look.plain(workload.title)}** · {look.plain(workload.formula)}", help=look.plain(workload.summary)
        )
        if not swept and not wrong:
            dtype = current("dtype")
            case = Case(workload, size, dtype if dtype in workload.dtypes else workload.dtypes[0])
            st.html(_picture(case.batch, case.leaves(workload.element_input), case.leaves(workload.element_output)))
    return size, wrong


def _presets(workload: Workload, size: dict[str, int]) -> None:
    presets = {name: {**workload.default_size(), **preset} for name, preset in workload.presets.items()}
    st.session_state["size_preset"] = next((name for name, preset in presets.items() if preset == size), None)

    def choose() -> None:
        for name, value in presets.get(st.session_state["size_preset"], {}).items():
            st.session_state[size_key(name)] = value

    st.pills("Sizes", list(presets), key="size_preset", on_change=choose, label_visibility="collapsed")


def workload_options(workload: Workload, known: Mapping[str, Field]) -> tuple[dict[str, Any], list[str]]:
    """Draw the workload's options, and return them and the names of those that are not valid, which have their
    defaults."""
    chosen: dict[str, Any] = {}
    numbers = {option_key(option.name): option for option in workload.options if option.values is None}
    for option in workload.options:
        key = option_key(option.name)
        if option.values is None:
            chosen[option.name] = number(option.name, key, known[key], step=1, help=option.help)
        else:
            values = [str(value) for value in option.values]
            picked = st.selectbox(option.name, values, index=place_of(key, values), key=key, help=option.help)
            chosen[option.name] = option.parse(picked)
    wrong = [numbers[key].name for key in faults({key: known[key] for key in numbers})]
    return {**chosen, **{name: value for name, value in workload.default_options().items() if name in wrong}}, wrong


def dtype_and_device(workload: Workload, devices: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """Draw dtype and device, and return them and, where the device is not on this machine, its name in a list. While
    the measuring process starts there are no ``devices``: any is taken at its word."""
    asked = current("device", "CPU:0")
    left, right = st.columns(2, wrap=False)
    dtype = left.selectbox("dtype", workload.dtypes, index=place_of("dtype", workload.dtypes), key="dtype")
    offered = list(dict.fromkeys(("CPU:0", *devices, asked)))
    device = right.selectbox(
        "device", offered, index=offered.index(asked), key="device",
        help="Found by the measuring process; a GPU is listed where TensorFlow sees one.",
    )  # fmt: skip
    if not devices or device in devices:
        return dtype, device, []
    missing = f"{device} is not on this machine: {', '.join(devices)} can be used."
    st.warning(look.plain(missing), icon=":material/block:")
    return dtype, device, ["device"]


def _picture(batch: int, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> str:
    """Return the picture of a batch as stacks of slices, in and out, as HTML; it takes the colour of the text around
    it."""
    largest = max(leaf.bytes for leaf in (*inputs, *outputs))

    def shapes(leaves: Sequence[Leaf]) -> list[str]:
        sides = [[side if isinstance(side, str) else f"{side:,}" for side in (batch, *leaf.sides)] for leaf in leaves]
        return [f"{' × '.join(words)} {leaf.dtype}" for words, leaf in zip(sides, leaves, strict=True)]

    def side(title: str, leaves: Sequence[Leaf]) -> str:
        drawn = max(leaves, key=lambda leaf: leaf.bytes)
        high = 14 + 22 * math.log2(drawn.bytes + 2) / math.log2(largest + 2)  # pixels
        wide = high if len(drawn.shape) > 1 else max(7.0, high / 3)
        lines = "".join(f'<div style="white-space:nowrap">{html.escape(shape)}</div>' for shape in shapes(leaves))
        return (
            '<div style="display:flex;flex-direction:column;align-items:center;min-width:0">'
            '<div style="height:52px;display:flex;align-items:center">'
            f'<div style="width:{wide:.0f}px;height:{high:.0f}px;margin:10px 10px 0 0;border:1.5px solid;'
            f'border-radius:3px;background:light-dark(#e3edf9, #23364f);box-shadow:{_STACK}"></div></div>{lines}'
            f'<div style="opacity:.65">{title} {look.size(batch * sum(leaf.bytes for leaf in leaves))}</div></div>'
        )

    words = f"In: {' and '.join(shapes(inputs))}. Out: {' and '.join(shapes(outputs))}."
    return (
        f'<div role="img" aria-label="{html.escape(words)}" style="display:flex;align-items:flex-start;'
        'justify-content:space-around;gap:.4rem;font-size:.82rem;flex-wrap:wrap">'
        f'{side("in", inputs)}<div style="display:flex;flex-direction:column;align-items:center;opacity:.85;'
        'padding-top:8px"><code style="font-size:.8rem">fn</code>'
        '<div style="font-size:1.3rem;line-height:1.1">⟶</div>'
        f'<div style="opacity:.75">{batch:,} times</div></div>{side("out", outputs)}</div>'
    )
