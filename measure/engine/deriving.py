"""Having a function of a person's own looked at: a subject that is thrown away executes the code, see `derive`."""

from collections.abc import Mapping

from measure.engine.bench import temporary_folder
from measure.pool.clock import Clock, TimeIsUp
from measure.pool.dialogue import Dialogues, HostLost, SubjectFailed
from measure.pool.launcher import Launcher
from measure.run.request import Request, RequestError
from measure.subject import messages
from measure.subject.derive import LIMIT_S
from measure.subject.messages import Spec
from strategies import own_script
from strategies.own_script import ScriptError
from workloads import functions
from workloads.functions import Given, OwnFunction

# Beside the limit of the code itself: a fork, or an interpreter that imports TensorFlow, and the way back.
_BESIDE_S = 30.0


def check(given: Given) -> None:
    """Raise `RequestError` with a sentence where the code is no Python or lacks a name; nothing is executed."""
    try:
        own_script.check(given)
    except ScriptError as error:
        raise RequestError(str(error)) from None


def derive(
    given: Given, size: Mapping[str, int], seed: int, launcher: Launcher, clock: Clock | None = None
) -> OwnFunction:
    """Execute a function of a person's own, of which a `check` is done, in a subject of its own; it with what was
    derived of it. Sizes that are left out have their defaults; the launcher has to be ready, and the machine nobody
    else's. ``clock``: of a run that begins with it. Raises `RequestError` with a sentence where it cannot be measured.
    """
    dialogues = Dialogues(launcher, clock)
    # What AutoGraph writes for the code that it converts is gone with the folder.
    with temporary_folder() as folder:
        spec = Spec(role="derive", given=given, size=dict(size), seed=seed, case_dir=folder)
        try:
            answer = dialogues.ask(spec, messages.Derived, LIMIT_S + _BESIDE_S)
        except SubjectFailed as failure:
            message = failure.error.message
            if failure.error.type.startswith(("Exit", "SIG")):
                message = f"the code ended its process: it {message.removeprefix('the process ')}"
            raise RequestError(message) from None
        except TimeIsUp:
            raise RequestError(f"the code could not be looked at: {dialogues.clock.over}") from None
        except HostLost:
            raise RequestError("the code could not be looked at: the measuring process ended") from None
        finally:
            dialogues.end()
    return OwnFunction(given=given, facts=answer.facts)


def look(launcher: Launcher, request: Request, clock: Clock) -> None:
    """Make a workload of this process of the function of a person's own that a request asks for, where that was not
    done at its size yet; nothing for any other workload. Raises what `derive` does."""
    own = functions.get(request.workload)
    if own is not None and functions.get(request.workload, request.size) is None:
        functions.add(derive(own.given, request.size, request.seed, launcher, clock))
