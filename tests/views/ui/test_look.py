"""Colours under simulated colour blindness, durations, and texts that stay texts."""

import itertools
import tomllib

import numpy as np
import pytest

from tests.engine import ROOT
from views.ui import look


def test_texts_of_others_stay_texts():
    assert look.plain("a*b_c`d[e](f)$g$<b>") == r"a\*b\_c\`d\[e\]\(f\)\$g\$\<b\>"
    assert look.plain("two\nlines \u2028 or\tmore ") == "two lines or more"
    assert look.plain("a\u00a0b") == "a\u00a0b", "no line is to break there"
    assert look.key("detail", "map_fn.graph?chunk=4&x=<b>").replace("_", "").replace("-", "").isalnum()


def test_names_in_a_text_are_set_in_code_but_not_where_a_file_has_too_many_of_both_to_be_compared():
    assert look.named("a.b beats c.d", ["a.b", "c.d"]) == "`a.b` beats `c.d`"
    names = [f"{'a ' * 90}{number}" for number in range(1_000)]
    assert "`" not in look.named(" ".join(names), names)


def test_a_sentence_begins_with_a_capital_and_a_name_stays_as_it_is():
    assert look.sentence("no room") == "No room."
    for words in ("map_fn.graph is wrong.", "loop.eager gives 3.", "batch=-3 is not valid."):
        assert look.sentence(words) == words


def test_durations():
    for seconds, text in ((None, "–"), (0.2, "under 1 s"), (6.4, "6 s"), (65, "1 min 5 s"), (7_500, "2 h 5 min")):
        assert look.duration(seconds) == text


class TestColours:
    # Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB.
    SIGHTS = {
        "normal": np.eye(3),
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    }

    @staticmethod
    def linear(colour: str) -> np.ndarray:
        value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)

    @staticmethod
    def oklab(linear: np.ndarray) -> np.ndarray:
        """Ottosson 2020."""
        to_lms = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                  [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
        to_lab = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
                  [0.0259040371, 0.7827717662, -0.808675766]]  # fmt: skip
        return np.array(to_lab) @ np.cbrt(np.array(to_lms) @ np.clip(linear, 0, 1))

    def test_any_two_mappers_can_be_told_apart(self):
        for palette, sight in itertools.product((look.LIGHT, look.DARK), self.SIGHTS.values()):
            seen = [100 * self.oklab(np.array(sight) @ self.linear(colour)) for colour in palette]
            own = [place for place, name in zip(seen, look.COLOUR_NAMES, strict=True) if "further" not in name]
            for places, least in ((own, 6.0), (seen, 5.2)):
                assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) >= least

    @pytest.mark.parametrize("name", ["light", "dark"])
    def test_colours_stand_out_from_the_theme_and_are_the_themes(self, name):
        theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"][name]
        palette = look.LIGHT if name == "light" else look.DARK
        assert tuple(theme["chartCategoricalColors"]) == palette

        def luminance(colour: str) -> float:
            return float(self.linear(colour) @ [0.2126, 0.7152, 0.0722])

        ground = luminance(theme["backgroundColor"])
        for colour in palette:
            light, dark = sorted((luminance(colour), ground), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3
