"""Widgets for a case: workload, sizes, options, dtype and device, with a picture of its shapes."""

import html
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

import strategies
import workloads
from views.choices import address, own, texts
from views.choices.address import Field
from views.ui import look
from views.ui.parameters import option_key, size_key
from workloads.case import Case
from workloads.spec import Leaf, Workload

_STEP = 5  # pixels from one slice of the picture to the one behind it


def choose_workload(changed: Callable[[], None]) -> Workload:
    """Draw the list of workloads; ``changed`` is called when another one is chosen."""
    by_slug = {workload.slug: workload for workload in workloads.all()}
    groups = list(dict.fromkeys(workload.group for workload in by_slug.values()))
    slugs = sorted(by_slug, key=lambda slug: groups.index(by_slug[slug].group))
    for path, message in {**workloads.broken(), **strategies.broken()}.items():
        st.warning(look.plain(Path(path).name + message.removeprefix(path)), icon=":material/broken_image:")
    if st.session_state.get("workload") not in by_slug:  # its file was found to be broken just now
        st.session_state["workload"] = workloads.names()[0]
    offered = [*slugs, own.ENTRY]
    slug = st.selectbox(
        texts.WORKLOAD, offered, index=place_of("workload", offered), key="workload", on_change=own.pick,
        args=(changed,), format_func=lambda slug: own.label(by_slug.get(slug)),
    )  # fmt: skip
    own.draw(by_slug[slug], changed)
    return by_slug[slug]


def start_with_defaults() -> None:
    """Set the defaults of a workload that has just been chosen: another one's sizes say nothing about it, and it may
    lack what some strategies need."""
    workload = workloads.get(st.session_state["workload"])
    for parameter in workload.sizes:
        st.session_state[size_key(parameter.name)] = parameter.default
    for option in workload.options:
        chosen = option.default if option.values is None else str(option.default)
        st.session_state[option_key(option.name)] = chosen
    words = st.session_state.get("strategies", [])
    st.session_state["strategies"] = [word for word in words if not _lacks(workload, word)]


def _lacks(workload: Workload, word: str) -> bool:
    """True for a mapper, or a strategy of one, that needs what the workload does not have, such as a rewrite."""
    name = word.partition(".")[0]
    known = {mapper.slug: mapper for mapper in strategies.mappers()}
    return name in known and not strategies.offered(known[name], workload)


def current(key: str, default: Any = None) -> Any:
    """Return what is chosen, to be a field's default too: a field whose code comes late to a browser, after a second
    run of the page, knows nothing but its default."""
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
    """Draw what is wrong with the values of these fields. Return the keys of those that are."""
    wrong = {key: address.fault(field, st.session_state[key]) for key, field in fields.items()}
    for sentence in filter(None, wrong.values()):
        st.warning(look.plain(sentence), icon=":material/block:")
    return [key for key, sentence in wrong.items() if sentence]


def _set_size(workload: Workload) -> None:
    preset = workload.presets.get(st.session_state["size_preset"] or "")
    for name, value in ({**workload.default_size(), **preset} if preset else {}).items():
        st.session_state[size_key(name)] = value


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
            help_ = texts.SIZE_HELP.format(help=parameter.help, least=parameter.least, most=parameter.most)
            size[parameter.name] = number(parameter.name, key, known[key], step=1, help=help_)
    wrong = [shown[key].name for key in faults({key: known[key] for key in shown})]
    if not swept and not wrong and (fault := own.fault_at(workload, size)):
        st.warning(look.plain(look.sentence(fault)), icon=":material/block:")
        wrong = [name for name in size if name != "batch"]
    size |= {name: value for name, value in workload.default_size().items() if name in wrong}
    if not swept:
        with presets:
            _size_presets(workload, {} if wrong else size)
    with about:
        st.caption(
            f"**{look.plain(workload.title)}** · {look.plain(workload.formula)}",
            help=look.plain(workload.summary),
        )
        if not swept and not wrong:
            st.html(_picture(workload, size))
    return size, wrong


def _size_presets(workload: Workload, size: dict[str, int]) -> None:
    fitting = [name for name, preset in workload.presets.items() if {**workload.default_size(), **preset} == size]
    st.session_state["size_preset"] = fitting[0] if fitting else None
    st.pills(
        texts.SIZES, list(workload.presets), key="size_preset", on_change=_set_size, args=(workload,),
        label_visibility="collapsed",
    )  # fmt: skip


def _picture(workload: Workload, size: dict[str, int]) -> str:
    dtype = st.session_state.get("dtype") or workload.dtypes[0]
    dtype = dtype if dtype in workload.dtypes else workload.dtypes[0]
    case = Case(workload, size, dtype)
    return picture_html(case.batch, case.leaves(workload.element_input), case.leaves(workload.element_output))


def workload_options(workload: Workload, known: Mapping[str, Field]) -> tuple[dict[str, Any], list[str]]:
    """Draw the workload's options, and return them and the names of those that are not valid, which have their
    defaults."""
    chosen: dict[str, Any] = {}
    for option in workload.options:
        key = option_key(option.name)
        if option.values is not None:
            values = [str(value) for value in option.values]
            picked = st.selectbox(option.name, values, index=place_of(key, values), key=key, help=option.help)
            chosen[option.name] = option.parse(picked)
        else:
            chosen[option.name] = number(option.name, key, known[key], step=1, help=option.help)
    numbers = {option_key(option.name): option for option in workload.options if option.values is None}
    wrong = [numbers[key].name for key in faults({key: known[key] for key in numbers})]
    return {**chosen, **{name: value for name, value in workload.default_options().items() if name in wrong}}, wrong


def dtype_and_device(workload: Workload, devices: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """Draw dtype and device, and return them and, where the device is not on this machine, its name in a list. No
    devices are known while the measuring process is starting: any is taken at its word."""
    asked = st.session_state.get("device", "CPU:0")
    left, right = st.columns(2, wrap=False)
    dtype = left.selectbox(texts.DTYPE, workload.dtypes, index=place_of("dtype", workload.dtypes), key="dtype")
    offered = list(dict.fromkeys(("CPU:0", *devices, asked)))
    device = right.selectbox(
        texts.DEVICE, offered, index=offered.index(asked), key="device", help=texts.DEVICE_HELP,
    )  # fmt: skip
    if not devices or device in devices:
        return dtype, device, []
    missing = texts.DEVICE_MISSING.format(device=device, devices=", ".join(devices))
    st.warning(look.plain(missing), icon=":material/block:")
    return dtype, device, [texts.DEVICE]


# --- the picture of its shapes, pure ---------------------------------------------------------------------------------


def _shape(batch: int, leaf: Leaf) -> str:
    return " × ".join(side if isinstance(side, str) else f"{side:,}" for side in (batch, *leaf.sides))


def _stack(leaf: Leaf, largest: int) -> str:
    """Return three slices, one behind the other; their side follows the logarithm of a slice's bytes."""
    side = 14 + 22 * math.log2(leaf.bytes + 2) / math.log2(largest + 2)
    wide, high = (side, side) if len(leaf.shape) > 1 else (max(7.0, side / 3), side)
    boxes = "".join(
        f'<div style="position:absolute;left:{_STEP * back}px;top:{_STEP * (2 - back)}px;width:{wide:.0f}px;'
        f"height:{high:.0f}px;border:1.5px solid currentColor;border-radius:3px;"
        'background:light-dark(#e3edf9, #23364f);box-sizing:border-box"></div>'
        for back in (2, 1, 0)
    )
    return (
        f'<div style="position:relative;width:{wide + 2 * _STEP:.0f}px;height:{high + 2 * _STEP:.0f}px;'
        f'margin:2px 0 6px" aria-hidden="true">{boxes}</div>'
    )


def _side(title: str, batch: int, leaves: Sequence[Leaf], largest: int) -> str:
    largest_leaf = max(leaves, key=lambda leaf: leaf.bytes)
    lines = "".join(
        f'<div style="white-space:nowrap">{_shape(batch, leaf)}'
        f' <span style="opacity:.65">{html.escape(leaf.dtype)}</span></div>'
        for leaf in leaves
    )
    total = look.size(batch * sum(leaf.bytes for leaf in leaves))
    return (
        '<div style="display:flex;flex-direction:column;align-items:center;min-width:0">'
        f'<div style="height:52px;display:flex;align-items:center">{_stack(largest_leaf, largest)}</div>{lines}'
        f'<div style="opacity:.65">{title} {total}</div></div>'
    )


def picture_text(batch: int, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> str:
    """In: 100 × 64 × 64 × 3 float32. Out: 100 × 64 × 64 × 3 float32."""
    sides = [" and ".join(f"{_shape(batch, leaf)} {leaf.dtype}" for leaf in leaves) for leaves in (inputs, outputs)]
    return texts.PICTURE.format(inputs=sides[0], outputs=sides[1])


def picture_html(batch: int, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> str:
    """Return the picture of a batch as stacks of slices, in and out, as HTML; it takes the colour of the text around
    it."""
    largest = max(leaf.bytes for leaf in (*inputs, *outputs))
    arrow = (
        '<div style="display:flex;flex-direction:column;align-items:center;opacity:.85;padding-top:8px">'
        '<code style="font-size:.8rem">fn</code><div style="font-size:1.3rem;line-height:1.1">⟶</div>'
        f'<div style="opacity:.75">{texts.PICTURE_CALLS.format(batch=batch)}</div></div>'
    )
    return (
        f'<div role="img" aria-label="{html.escape(picture_text(batch, inputs, outputs))}" '
        'style="display:flex;align-items:flex-start;justify-content:space-around;gap:.4rem;font-size:.82rem;flex-wrap:wrap">'
        f"{_side(texts.PICTURE_INPUT, batch, inputs, largest)}{arrow}"
        f"{_side(texts.PICTURE_OUTPUT, batch, outputs, largest)}</div>"
    )
