"""serving/sessions: Sessions, who plays at which place of an engine; nothing of HTTP."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from plumejax.serving.engine import Engine, Outcome
from plumejax.serving.environment import Frozen, State, new_state
from plumejax.serving.refusals import RefusedError, broken, not_there

A = TypeVar("A")
T = TypeVar("T")

Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9._:-]{1,128}$")]

REMEMBERED = 100_000
"""Episode ids, and sessions that are no more: as many of the last are known again."""


class ResetRequest(Frozen):
    """Begin an episode.

    Attributes:
      seed: what is drawn depends on it alone; by default another one each time, which the metadata
        of the first observation tell.
      episode_id: its name, new to this server; by default a UUID.
      request_id: sent again with the same one, the request is answered as before and does nothing.
    """

    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] | None = None
    episode_id: Name | None = None
    request_id: Name | None = None


class StepRequest(Frozen, Generic[A]):
    """One step.

    Attributes:
      action: of the task.
      timeout_s: s, after which it is not begun if it still waits.
      episode_id: if given, the step is made in that episode and in no other.
      request_id: sent again with the same one, the request is answered as before and does nothing.
    """

    action: A
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=3600)] | None = None
    episode_id: Name | None = None
    request_id: Name | None = None


@dataclass(eq=False)
class Session:
    """One player.

    Attributes:
      id: a secret: who knows it may play.
      place: at the engine.
      used: s, when it was last heard of.
      claimed: whether a client has come back with its id, or asked for it by itself.
      state: of its episode.
      turn: held while a request is carried out.
      waiting: requests that are carried out or wait for that.
      answered: kind, id and answer of the last request of the episode that had an id.
      ended: set when it is no more.
    """

    id: str
    place: int
    used: float
    claimed: bool
    state: State
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    answered: tuple[str, str, bytes] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Sessions:
    """The sessions on an engine.

    Attributes:
      engine: that they play on.
      idle: s, after which a session that is not heard of is no more.
      queue: requests of one session that may wait.
      clock: s.
    """

    def __init__(
        self,
        engine: Engine,
        idle: float = 900.0,
        queue: int = 16,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine, self.idle, self.queue, self.clock = engine, idle, queue, clock
        self._there: dict[str, Session] = {}
        self._free = list(range(engine.capacity))[::-1]
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._episodes: OrderedDict[str, None] = OrderedDict()
        self._running: set[asyncio.Task] = set()

    def __len__(self) -> int:
        return len(self._there)

    async def create(self, *, claimed: bool = True, num_envs: int = 1) -> Session:
        """A new session. Raises `RefusedError` if there is no place, or it cannot be made."""
        self.expire()
        if not self._free:
            self._make_room()
        place = self._free.pop()
        try:
            await self.engine.open(place, num_envs)
        except BaseException as error:
            self._free.append(place)
            raise (broken(error) if isinstance(error, Exception) else error) from None
        session = Session(
            secrets.token_urlsafe(16), place, self.clock(), claimed, self.engine.state()
        )
        self._there[session.id] = session
        return session

    def find(self, session_id: str) -> Session:
        """The session of that id. Raises `RefusedError` if there is none, or no more."""
        session = self._there.get(session_id)
        if session is not None and self._is_idle(session):
            self._remove(session)
            session = None
        if session is None:
            raise not_there(session_id in self._gone)
        session.used, session.claimed = self.clock(), True
        return session

    def is_claimed(self, session_id: str) -> bool:
        """Whether there is a session of that id that a client has come back to."""
        session = self._there.get(session_id)
        return session is not None and session.claimed

    def expire(self) -> None:
        """End the sessions that have not been heard of for long."""
        for session in list(self._there.values()):
            if self._is_idle(session):
                self._remove(session)

    def require_new(self, episode_id: str | None) -> None:
        """Raise `RefusedError` if there has been an episode of that id."""
        if episode_id in self._episodes:
            raise RefusedError(409, "EPISODE_ID_USED", "there has been an episode of that id")

    async def end(self, session: Session) -> None:
        """End a session, after what it is doing."""
        async with session.turn:
            self._remove(session)

    async def reset(self, session: Session, request: ResetRequest) -> bytes:
        """Begin an episode; the body of the answer. Raises `RefusedError`."""

        async def begin() -> Outcome:
            self.require_new(request.episode_id)
            state = new_state(request.episode_id)
            self._remember(self._episodes, str(state.episode_id))
            return await self.engine.reset(session.place, request.seed, state)

        return await self._carry_out(session, "reset", request.request_id, begin)

    async def step(self, session: Session, request: StepRequest[Any]) -> bytes:
        """One step; the body of the answer. Raises `RefusedError`."""
        timeout = request.timeout_s
        deadline = float("inf") if timeout is None else self.clock() + timeout

        async def step() -> Outcome:
            if session.state.episode_id is None:
                raise RefusedError(409, "NOT_RESET", "reset first")
            if request.episode_id not in (None, session.state.episode_id):
                raise RefusedError(
                    409, "EPISODE_MISMATCH", "that is not the episode that is played"
                )
            return await self.engine.step(session.place, request.action, session.state, deadline)

        return await self._carry_out(session, "step", request.request_id, step)

    async def look(self, session: Session, see: Callable[[Session], Awaitable[T]]) -> T:
        """What `see` finds in an episode, which stands still meanwhile. Raises `RefusedError`."""
        session.waiting += 1
        try:
            async with session.turn:
                if session.id not in self._there:
                    raise not_there(expired=True)
                if session.state.episode_id is None:
                    raise RefusedError(409, "NOT_RESET", "reset first")
                return await see(session)
        finally:
            session.waiting -= 1

    async def whole(self, work: Coroutine[Any, Any, bytes]) -> bytes:
        """What `work` gives; it is carried out to its end even if nobody waits for it any more."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for the work that is to be carried out whole."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _carry_out(
        self, session: Session, kind: str, name: str | None, work: Callable[[], Awaitable[Outcome]]
    ) -> bytes:
        """Do the work when it is the session's turn."""
        if session.waiting > self.queue:
            raise RefusedError(429, "BUSY", "too many requests of this session wait already")
        session.waiting += 1
        try:
            async with session.turn:
                if session.id not in self._there:
                    raise not_there(expired=True)
                if name is not None and session.answered is not None:
                    *answered, body = session.answered
                    if answered == [kind, name]:
                        return body
                outcome = await work()
                session.state = outcome.state
                if name is not None:
                    session.answered = (kind, name, outcome.body)
                elif kind == "reset":
                    # A client may number the steps of each episode from 1.
                    session.answered = None
                return outcome.body
        except RefusedError:
            raise
        except Exception as error:
            raise broken(error) from None
        finally:
            session.waiting -= 1
            session.used = self.clock()

    def _make_room(self) -> None:
        """End the oldest session that nobody has come back to. Raises `RefusedError` if all have
        been."""
        for session in self._there.values():
            if not session.claimed and not session.waiting:
                self._remove(session)
                return
        raise RefusedError(
            503, "CAPACITY_REACHED", "no more sessions fit on this server", {"Retry-After": "10"}
        )

    def _is_idle(self, session: Session) -> bool:
        return not session.waiting and self.clock() - session.used > self.idle

    def _remove(self, session: Session) -> None:
        if self._there.pop(session.id, None) is None:
            return
        self.engine.release(session.place)
        self._free.append(session.place)
        self._remember(self._gone, session.id)
        session.ended.set()

    @staticmethod
    def _remember(names: OrderedDict[str, None], name: str) -> None:
        names[name] = None
        if len(names) > REMEMBERED:
            names.popitem(last=False)
