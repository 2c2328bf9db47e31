"""A few of the files and links of `fuzz`: each is refused or shown."""

from tests.benchmarks import fuzz


def test_files_and_links_that_nobody_would_make_are_refused_or_shown(tmp_path):
    with fuzz.hosted(tmp_path):
        assert [one for one in map(fuzz.attempt, range(40)) if one[2]] == []
