"""What an ASGI application answers, called without a server."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


def ask(
    app: Any, address: str, method: str = "GET", headers: Mapping[str, str] | None = None, scheme: str = "http"
) -> Answer:
    """The answer to somebody who sends no body and waits for ever."""
    answer = Answer()

    async def receive() -> dict[str, Any]:
        if method == "GET":
            await asyncio.Future()
        raise AssertionError("nothing is read of what is refused")

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.content += message.get("body", b"")

    path, _, query = address.partition("?")
    scope = {"type": "http", "method": method, "scheme": scheme, "server": ("127.0.0.1", 80), "path": path,
             "query_string": query.encode(), "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
             "asgi": {"version": "3.0", "spec_version": "2.4"}}  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return answer
