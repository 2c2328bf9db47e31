"""A file of somebody's own as this process knows it: data alone. Another process executes it, and answers for it.

`OwnFile` starts ``python -m workloads.reader`` for a file. That process says what the file offers, and from then on
what its functions give: those of a cost model are asked for many sizes, and cannot be sent. It may hang, exit or abort
in native code, which costs nothing but the file; without questions it ends after a while, and the next one starts it
again. Messages are MessagePack, each after its length in four bytes.
"""

import contextlib
import functools
import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import IO, Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from workloads.places import PROJECT
from workloads.spec import Leaf, type_nest

T = TypeVar("T")

# A file that imports TensorFlow takes some seconds to load; arithmetic on sizes takes none.
LOAD_LIMIT_S = 10.0
ANSWER_LIMIT_S = 5.0
_MOST_ANSWERS = 4_096
_MOST_GIVEN = 120  # characters of what a function was called with, in the sentence that it fails
_MOST_BYTES = 2**24
_NOTHING = msgspec.Raw(msgspec.msgpack.encode(None))
_KINDS = tuple(inspect._ParameterKind)


_ADDRESS = re.compile(r"(?:(?: at)? )?\b0x[0-9a-fA-F]{8,16}\b")


def without_addresses(text: str) -> str:
    """Return a text without addresses in memory, which say nothing to anybody: ``<function f>``."""
    return _ADDRESS.sub("", text)


class DiscoveryError(ValueError):
    """A file does not offer what it should: the message names the file and what was wrong with it."""

    def __init__(self, message: str) -> None:
        super().__init__(without_addresses(message))


class _Failed(Exception):
    """A function of a file gives no answer; the text says why."""


class Described(msgspec.Struct, frozen=True):
    """A function as data; ``parameters`` are name, kind, and whether there is a default."""

    number: int
    name: str
    source: str
    parameters: list[tuple[str, int, bool]]


class Offer(msgspec.Struct, frozen=True):
    """The item that a file offers, encoded with its functions as `Described`; or what is wrong with it."""

    item: msgspec.Raw = _NOTHING
    error: str = ""


class Question(msgspec.Struct, frozen=True):
    """A call of a function of the file, by its number; ``nest``: it gives a nest of `Leaf`."""

    number: int
    arguments: list[Any]
    keywords: dict[str, Any]
    nest: bool


class Answer(msgspec.Struct, frozen=True):
    """The value that the function gave, or the error that it raised."""

    value: msgspec.Raw = _NOTHING
    error: str = ""


class Function:
    """A function of the file: its source and its parameters are known here, and a call is a question."""

    def __init__(self, described: Described, ask: Callable[["Function", "Question"], Any], returns: Any) -> None:
        self.__name__ = described.name
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, _KINDS[kind], default=... if defaults else inspect.Parameter.empty)
                for name, kind, defaults in described.parameters
            ]
        )
        self.source, self.returns = described.source, returns
        self._number, self._ask = described.number, ask

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and (self._number, self._ask) == (other._number, other._ask)

    def __hash__(self) -> int:
        return hash((self._number, self._ask))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._ask(self, Question(self._number, list(arguments), keywords, nest=self.returns is Any))


def describe(function: Callable[..., Any], number: int) -> Described:
    parameters = inspect.signature(function).parameters.values()
    try:
        source = inspect.getsource(function)
    except OSError:  # made by other code; what has to go into a script is checked to be a 'def'
        source = ""
    return Described(
        number,
        function.__name__,
        source,
        [(one.name, _KINDS.index(one.kind), one.default is not one.empty) for one in parameters],
    )


def source_of(function: Callable[..., Any]) -> str:
    """Return the source text of a function, one of this process or one of somebody's own file."""
    return function.source if isinstance(function, Function) else inspect.getsource(function)


def leaves_to_wire(nest: type_nest) -> Any:
    """Return a nest of `Leaf` as plain data in which tuples, lists and dicts can be told apart."""
    if isinstance(nest, Leaf):
        return ["leaf", nest]
    if isinstance(nest, Mapping):
        return ["dict", {key: leaves_to_wire(part) for key, part in nest.items()}]
    if isinstance(nest, tuple | list):
        return ["tuple" if isinstance(nest, tuple) else "list", [leaves_to_wire(part) for part in nest]]
    raise TypeError(f"{nest!r} is neither a Leaf nor a tuple, list or dict of them")


def leaves_from_wire(wire: Any) -> type_nest:
    kind, value = wire
    if kind == "leaf":
        return msgspec.convert(value, Leaf)
    if kind == "dict":
        return {key: leaves_from_wire(part) for key, part in value.items()}
    parts = [leaves_from_wire(part) for part in value]
    return tuple(parts) if kind == "tuple" else parts


def send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(4, "big") + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None where the other side has ended, or sends what is none."""
    head = pipe.read(4)
    length = int.from_bytes(head, "big")
    if len(head) < 4 or length > _MOST_BYTES:
        return None
    data = pipe.read(length)
    return data if len(data) == length else None


class _Ended(Exception):
    """The process of a file has ended in place of an answer; the text says how. ``hung``: it had to be ended."""

    def __init__(self, how: str, hung: bool) -> None:
        super().__init__(how)
        self.hung = hung


class _Process:
    """The process that executes a file; ``offer`` is the first thing that it says."""

    def __init__(self, package: str, path: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")])),
            "PYTHONHASHSEED": "0",  # so that a process started again offers the same, sets in the same order
            "OPENBLAS_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "-1",  # a file that imports TensorFlow takes no GPU's memory
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workloads.reader", package, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=PROJECT,
            env=environment,
            start_new_session=True,
        )
        self.offer = self._receive(LOAD_LIMIT_S)

    def ask(self, question: bytes) -> bytes:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # where it has ended, it will not answer
            send(self._process.stdin, question)
        return self._receive(ANSWER_LIMIT_S)

    def end(self) -> None:
        self._kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what could not be written is lost
                pipe.close()  # type: ignore[union-attr]

    def _kill(self) -> None:
        """Kill it with the processes that it has made, which would hold the pipe open."""
        self._process.kill()
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _receive(self, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        hung = threading.Event()

        def give_up() -> None:
            hung.set()
            self._kill()

        timer = threading.Timer(limit_s, give_up)
        timer.start()
        data = receive(self._process.stdout)
        timer.cancel()
        if data is not None:
            return data
        status = self._process.wait()
        self.end()
        if hung.is_set():
            raise _Ended(f"took longer than {limit_s:g} s", hung=True)
        how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        raise _Ended(f"ended its process {how}", hung=False)


class OwnFile(Generic[T]):
    """One version of a file that offers a ``kind`` to ``package``. Safe to use from several threads.

    ``on_failure`` is told in a sentence where one of the file's functions fails after all.
    """

    def __init__(self, package: str, path: str, kind: type[T], on_failure: Callable[[str], None]) -> None:
        self._package, self._path, self._kind, self._on_failure = package, path, kind, on_failure
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._offer = b""
        self._answer = functools.lru_cache(_MOST_ANSWERS)(self._answer_anew)

    def read(self) -> T:
        """Return what the file offers; `DiscoveryError` with a sentence otherwise."""
        try:
            self._process = _Process(self._package, self._path)
        except _Ended as ended:
            raise DiscoveryError(f"{self._path} cannot be loaded: it {ended}") from None
        self._offer = self._process.offer
        try:
            offer = msgspec.msgpack.decode(self._offer, type=Offer)
            if offer.error:
                raise DiscoveryError(offer.error)
            return self._typed(msgspec.msgpack.decode(offer.item, type=self._kind, dec_hook=self._function))
        except msgspec.DecodeError as error:
            raise DiscoveryError(f"{self._path} offers what is not valid: {error}") from None

    def close(self) -> None:
        """End the file's process."""
        with self._lock:
            if self._process is not None:
                self._process.end()

    def _typed(self, item: T) -> T:
        """The item with the functions of its variants, which stand where anything may."""
        variants = getattr(item, "variants", None)
        if not variants:
            return item
        hints = get_type_hints(self._kind)

        def typed(changes: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: msgspec.convert(value, hints[name], dec_hook=self._function) for name, value in changes.items()
            }

        read = {
            option: {value: typed(changes) for value, changes in by_value.items()}
            for option, by_value in variants.items()
        }
        return replace(item, variants=read)  # type: ignore[type-var]

    def _function(self, kind: Any, described: Any) -> Function:
        return Function(msgspec.convert(described, Described), self._ask, get_args(kind)[-1])

    def _ask(self, function: Function, question: Question) -> Any:
        try:
            value = self._answer(msgspec.msgpack.encode(question))
            if question.nest:
                return leaves_from_wire(msgspec.msgpack.decode(value))
            return msgspec.msgpack.decode(value, type=function.returns)
        except (_Failed, msgspec.MsgspecError, TypeError, ValueError) as error:
            given = ", ".join([*map(repr, question.arguments), *(f"{k}={v!r}" for k, v in question.keywords.items())])
            message = f"{self._path}: {function.__name__}({textwrap.shorten(given, _MOST_GIVEN)}) fails: {error}"
            self._on_failure(message)
            raise DiscoveryError(message) from None

    def _answer_anew(self, question: bytes) -> bytes:
        with self._lock:
            data = self._told(question)
        answer = msgspec.msgpack.decode(data, type=Answer)
        if answer.error:
            raise _Failed(answer.error)
        return bytes(answer.value)

    def _told(self, question: bytes) -> bytes:
        try:
            if self._process is not None:
                return self._process.ask(question)
        except _Ended as ended:
            self._process = None
            if ended.hung:
                raise _Failed(str(ended)) from None
        # It has ended for want of questions, or at this one, which a new process tells.
        try:
            self._process = _Process(self._package, self._path)
            if self._process.offer != self._offer:
                raise _Failed("the file has changed meanwhile")
            return self._process.ask(question)
        except _Ended as ended:
            self._process = None
            raise _Failed(str(ended)) from None
