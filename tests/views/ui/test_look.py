"""Colours under simulated colour blindness, durations, and texts that stay texts."""

import itertools
import tomllib

import numpy as np
import pytest

import strategies
import workloads
from tests.engine import ROOT
from tests.synthetic import HOSTILE
from views.choices import case
from views.result import diff
from views.ui import look
from workloads.spec import Leaf


class TestEscaping:
    def test_markdown_signs_are_shown_as_they_are(self):
        assert look.plain("a*b_c`d[e](f)$g$<b>") == r"a\*b\_c\`d\[e\]\(f\)\$g\$\<b\>"
        assert look.plain("two\nlines \u2028 or\tmore ") == "two lines or more"
        assert look.plain("a\u00a0b") == "a\u00a0b", "no line is to break there"

    def test_icons_and_colours_of_streamlit_are_broken_up(self):
        for text in (":red[x]", ":material/home:", ":smile:", ":streamlit:"):
            assert ":\u2060" in look.plain(text)

    def test_html_is_escaped(self):
        assert "<img" not in look.strategy_html(HOSTILE, HOSTILE, HOSTILE)
        assert "<img" not in diff.side_by_side(HOSTILE, "x", HOSTILE, HOSTILE)
        assert "<img" not in look.legend_html([HOSTILE], [HOSTILE], lines=True)
        assert "<img" not in case.picture_html(1, [Leaf((1,), "float32")], [Leaf((1,), "float32")])

    def test_keys_are_class_names(self):
        assert look.key("detail", "map_fn.graph?chunk=4&x=<b>").replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0.2, "under 1 s"), (6.4, "6 s"), (65, "1 min 5 s"), (7_500, "2 h 5 min")]
)
def test_durations(seconds, text):
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

    @pytest.mark.parametrize("sight", SIGHTS)
    @pytest.mark.parametrize("palette", [look.LIGHT, look.DARK], ids=["light", "dark"])
    def test_any_two_mappers_can_be_told_apart(self, sight, palette):
        """The more, the more often they are seen together."""
        matrix = np.array(self.SIGHTS[sight])
        seen = {
            name: 100 * self.oklab(matrix @ self.linear(colour))
            for name, colour in zip(look.COLOUR_NAMES, palette, strict=True)
        }
        own = {name for name in seen if not name.startswith("further ")}

        def least(*groups: set[str]) -> float:
            pairs = {pair for group in groups for pair in itertools.combinations(sorted(group), 2)}
            return min(float(np.linalg.norm(seen[a] - seen[b])) for a, b in pairs)

        offered = [
            [each for each in strategies.mappers() if each.slug in own and strategies.offered(each, workload)]
            for workload in workloads.all()
        ]
        assert least(*({mapper.slug for mapper in each if mapper.default_modes} for each in offered)) >= 9.2
        assert least(*({mapper.slug for mapper in each} for each in offered)) >= 7.5
        assert least(own) >= 6
        assert least(set(seen)) >= 5.2

    def lightness_chroma_hue(self, colour: str) -> tuple[float, float, float]:
        lightness, a, b = self.oklab(self.linear(colour))
        return lightness, float(np.hypot(a, b)), float(np.degrees(np.arctan2(b, a)) % 360)

    @pytest.mark.parametrize("name", look.COLOUR_NAMES)
    def test_a_mapper_has_one_hue_in_light_and_in_dark(self, name):
        place = look.COLOUR_NAMES.index(name)
        (_, grey, hue), (_, grey_in_dark, hue_in_dark) = map(
            self.lightness_chroma_hue, (look.LIGHT[place], look.DARK[place])
        )
        if min(grey, grey_in_dark) < 0.03:
            assert max(grey, grey_in_dark) < 0.03, "grey in both"
        else:
            assert abs((hue - hue_in_dark + 180) % 360 - 180) <= 12
            assert 0.5 <= grey / grey_in_dark <= 2, "as colourful in both"

    @pytest.mark.parametrize("colour", [*look.LIGHT, *look.DARK])
    def test_no_mapper_looks_like_an_error(self, colour):
        _, chroma, hue = self.lightness_chroma_hue(colour)
        _, _, red = self.lightness_chroma_hue("#ff0000")
        assert chroma < 0.03 or abs((hue - red + 180) % 360 - 180) >= 15

    def test_no_mapper_is_nearly_black_or_white(self):
        assert all(0.35 <= self.lightness_chroma_hue(colour)[0] <= 0.75 for colour in look.LIGHT)
        assert all(0.45 <= self.lightness_chroma_hue(colour)[0] <= 0.95 for colour in look.DARK)

    def test_no_colour_is_left_without_its_mapper(self):
        own = {name for name in look.COLOUR_NAMES if not name.startswith("further ")}
        assert own <= {mapper.slug for mapper in strategies.mappers()}
        rewrites = {rewrite for workload in workloads.all() for rewrite in workload.rewrites}
        assert rewrites <= {mapper.rewrite for mapper in strategies.mappers()}

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

    def test_shape_and_dash_of_every_mode_differ(self):
        assert len(set(look.SHAPES)) == len(set(map(tuple, look.DASHES))) == len(set(look.GLYPHS.values())) == 3

    def test_a_mapper_without_a_colour_has_the_one_that_its_name_decides_in_charts_and_text(self):
        names = [look.colour_name(mapper) for mapper in ("newcomer", "another", "one_at_a_time")]
        assert len(set(names)) == 3
        for mapper, name in zip(("newcomer", "another", "one_at_a_time"), names, strict=True):
            light = look.LIGHT[look.COLOUR_NAMES.index(name)]
            assert name.startswith("further ") and light in look.css_colour(mapper)
