"""The last stage of a comparison, and the only one of an explanation: the reasons of what a call takes."""

import shutil
from collections.abc import Callable

from measure.engine.bench import Bench
from measure.engine.dialogue import Cancelled, Dialogue, Part, SubjectFailed
from measure.model import why
from measure.model.why import Why
from measure.subject import messages

# The first call of a why subject is traced, and what it compiles it compiles twice.
_EXPLAINING_TAKES = 3

# Takes the ``why`` of a strategy with its artifacts; False where there is no use in going on.
Keep = Callable[[str, Why, dict[str, bytes]], bool]


def explain(bench: Bench, keep: Keep) -> None:
    """Find out what happens in a call of each strategy, one after another. A failure costs nothing else."""
    slugs = [slug for slug in bench.record.working() if why.known(bench.record[slug].why) is None]

    def dialogue(number: int, slug: str) -> Dialogue:
        bench.record.set_stage([slug], "explaining")
        bench.say(f"explaining {slug}, {number + 1} of {len(slugs)}")
        folder = bench.folder / f"why_{number}"

        def attempt() -> Part[messages.Reasons]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            subject = bench.dialogues.start(bench.spec("why", slug, artifacts=str(folder)))
            timeout_s = _EXPLAINING_TAKES * bench.timeout_s(slug)
            return (yield from bench.dialogues.until(subject, messages.Reasons, timeout_s))

        try:
            explained = (yield from bench.dialogues.undisturbed(attempt)).why
        except SubjectFailed as failure:
            explained = why.Explained(note=failure.error.message[: why.MOST_NOTE])
        bench.record.update(slug, why=explained.beside(bench.record[slug].why))
        kept = keep(slug, bench.record[slug].why, why.artifacts(folder))
        shutil.rmtree(folder)
        bench.record.set_stage([slug], "done")
        bench.say(result=True)
        if not kept:
            raise Cancelled

    bench.dialogues.hold(dialogue(number, slug) for number, slug in enumerate(slugs))
