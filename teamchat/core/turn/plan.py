"""Planning a turn: its prompt, command, environment and receipt are made before its process starts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from teamchat.core.context.build import BuiltPrompt, FindSlash, RequestOf, build_prompt
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.context.vendor_session import NOTHING_BEFORE, AdoptedSession, ContinuedSession, Past
from teamchat.core.engine.state import Route
from teamchat.core.engine.strategies import part_in_words
from teamchat.core.receipt import Setup
from teamchat.core.store.images import ImagesOf, image_files, no_images
from teamchat.core.team.programs import SCRATCH, environment_of, find_program, job_of, may, member_env
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.text.redact import redact_shapes
from teamchat.core.text.secret_words import masked, secrets_in
from teamchat.core.turn.machine import Machine, ReadyTurn, TurnReason
from teamchat.runners.base import Command, Job, Runner, Slash
from teamchat.runners.child.supervisor import NO_CLOCKS, Clocks
from teamchat.runners.environment import HIDDEN, changed_variables
from teamchat.runners.slash_commands import command_name

if TYPE_CHECKING:
    from teamchat.core.turn.hosting import HostPlace

HOST_CLOCKS = Clocks(math.inf, math.inf, math.inf, math.inf)  # the turn's own clocks run on its host
DIGITS = 12  # characters of the digest in place of a value


def plan_reply(
    team: Team,
    route: Route,
    manager: ContextManager,
    machine: Machine,
    *,
    member: Member | None = None,
    past: Past = NOTHING_BEFORE,
    collector: ContextCollector | None = None,
    scratch: Path = SCRATCH,
    budget_usd: float | None = None,
    images: ImagesOf = no_images,
    request_of: RequestOf = lambda _turn: None,
    place: HostPlace | None = None,
    folder: Path = SCRATCH,
) -> ReadyTurn:
    """Plan the turn of `route`. Nothing is started and nothing is written.

    `member` is the target of the route or a fallback of it. `past` is what it had before, `collector` gathers its
    layers, `images` reads those of a message, `request_of` the request of a turn. `budget_usd` is the most that the
    turn may cost. `place` is where it runs, if that is not here, and `folder` gets its output then.

    Raises `PromptTooLarge`, `AgentMissing`, `UsageError` (no such folder) and `NotTrusted` (access that is refused).
    """
    member = member or team.member(route.target)
    if place:
        team, member = place.on(team, member)
    agent = team.agent_of(member)
    job = job_of(member, agent, machine.env, scratch)
    find_slash: FindSlash = partial(machine.slash, member, agent.type.runner, job)

    def exists(one: Member, runner: Runner) -> Callable[[str], bool]:
        return everything_exists if one.host else machine.exists(one, runner, route.part)

    if member.host:  # the host has other files: what its CLI could expand stays text
        find_slash = partial(not_on_hosts, member)
    prompt = build_prompt(
        team, member, route, manager, exists, past, collector, images, scratch, find_slash, request_of
    )
    reason = TurnReason(why(route, member), route.request, route.attempt + 1, past.edits, past.first)
    if place:
        return plan_hosted(member, agent, prompt, reason, place, folder, scratch, budget_usd)
    return plan_turn(member, agent, job, prompt, reason, machine, budget_usd=budget_usd)


def everything_exists(_mention: str) -> bool:
    """Whether a mention names something that exists: always."""
    return True


def not_on_hosts(member: Member, typed: str) -> Slash | None:
    """Refuse the custom command at the beginning of a typed text, which no host gets; None without one."""
    if command_name(typed) is None:
        return None
    return Slash(typed, "", refused=f"{member.name} works on a host, whose custom commands are not known here")


def plan_hosted(
    member: Member,
    agent: AgentSpec,
    prompt: BuiltPrompt,
    reason: TurnReason,
    place: HostPlace,
    folder: Path,
    scratch: Path,
    budget_usd: float | None = None,
) -> ReadyTurn:
    """Plan a turn on a host: it is sent as data, and the host makes a command of it."""
    runner = agent.type.runner
    continued = prompt.vendor_session if isinstance(prompt.vendor_session, ContinuedSession) else None
    command = Command((agent.name,))
    setup = replace(_setup(member, agent, prompt, reason, Command(()), {}, ()), host=place.host.name)
    return ReadyTurn(
        member=member,
        agent=agent,
        runner=runner,
        prompt=prompt,
        command=command,
        program=agent.name,
        env={},
        setup=setup,
        scratch=scratch,
        clocks=HOST_CLOCKS,
        hosted=place.turn(folder, member, prompt, budget_usd, continued.session if continued else None),
    )


def plan_turn(
    member: Member,
    agent: AgentSpec,
    job: Job,
    prompt: BuiltPrompt,
    reason: TurnReason,
    machine: Machine,
    *,
    budget_usd: float | None = None,
) -> ReadyTurn:
    """Plan the turn that gives `member` this prompt; `job` is as `job_of` makes it. Raises what `plan_reply` does."""
    runner, scratch = agent.type.runner, job.scratch
    continued = prompt.vendor_session if isinstance(prompt.vendor_session, ContinuedSession) else None
    images = {path: image.data for path, image in image_files(prompt.images, scratch)}
    job = replace(
        job,
        system_text=prompt.system_text,
        budget_usd=budget_usd,
        resumes=continued.session if continued else None,
        forks=_adopted(prompt),
        images=tuple(images),
        slash=prompt.slash is not None and not prompt.slash.refused,
    )
    command, env = start_of(runner, job, machine.env, keep=member.env_keep, add=member_env(member))
    command = replace(command, files={**command.files, **images})
    changed = told_variables(machine.env, env, given=member.env)
    without: tuple[str, ...] = ()
    if reason.first and machine.live:
        from teamchat.core.doctor.parity import features_without

        without = features_without(agent, job)
    setup = _setup(member, agent, prompt, reason, command, changed, secrets_in((*agent.command, *member.args)))
    return ReadyTurn(
        member=member,
        agent=agent,
        runner=runner,
        prompt=prompt,
        command=command,
        program=find_program(command.argv[0], env) if machine.live else command.argv[0],
        env=env,
        setup=replace(setup, without=without),
        scratch=scratch,
        clocks=Clocks(job.first_byte_s, member.stall_s or runner.stall_s, member.timeout_s)
        if machine.live
        else NO_CLOCKS,
    )


def start_of(
    runner: Runner,
    job: Job,
    inherited: Mapping[str, str],
    *,
    keep: Collection[str] = (),
    add: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Command, dict[str, str]]:
    """Make the command of a job on this machine, and its environment; `keep` and `add` are as in `environment_of`."""
    command = runner.command(job)
    command_env = {**command.env, "PWD": str(job.cwd)}
    env = environment_of(runner, inherited, keep=keep, add=add, command_env=command_env, tmpdir=job.scratch)
    return command, env


def told_variables(
    inherited: Mapping[str, str], env: Mapping[str, str], given: Collection[str] = ()
) -> dict[str, str | None]:
    """Write the changed variables for a receipt. The team file has `given` some of them."""
    changed = changed_variables(inherited, env).items()
    return {name: value and _told(value, given=name in given) for name, value in changed}


def _told(value: str, *, given: bool) -> str:
    """Write a variable's value for a receipt: without keys, and as a digest if the team file has `given` it.

    The digest shows whether the value has changed.
    """
    redacted = redact_shapes(value)[0]
    if not given or value == HIDDEN or not redacted.strip("*"):
        return redacted
    return f"(sha256 {sha256(os.fsencode(value)).hexdigest()[:DIGITS]})"


def _setup(
    member: Member,
    agent: AgentSpec,
    prompt: BuiltPrompt,
    reason: TurnReason,
    command: Command,
    changed: dict[str, str | None],
    secrets: Iterable[str],
) -> Setup:
    """Build the part of the receipt that is known before the turn.

    `changed` holds the changed variables of its environment, `secrets` the parts of its command to hide.
    """
    continued = prompt.vendor_session if isinstance(prompt.vendor_session, ContinuedSession) else None
    return Setup(
        argv=masked(command.argv, secrets),
        env=changed,
        cwd=str(member.cwd),
        access=member.access,
        access_note=may(member, agent),
        why=reason.why,
        answers=prompt.answers.id,
        request=reason.request,
        asked_in=prompt.asked_in,
        attempt=reason.attempt,
        model=member.model,
        stdin_bytes=len(prompt.prepared.stdin),
        system_bytes=len((prompt.system_text or "").encode()),
        inert_mentions=prompt.prepared.inert_mentions,
        redacted=prompt.redacted,
        trimmed=prompt.assembled.trimmed,
        blocks=prompt.assembled.blocks,
        memory=member.memory,
        resumes=continued.session if continued else None,
        fresh_because=prompt.vendor_session if isinstance(prompt.vendor_session, str) else None,
        adopted=_adopted(prompt),
        opened=continued is not None and continued.opened,
        lost=continued.lost if continued else (),
        fresh_bytes=prompt.fresh_bytes,
        shown_from=prompt.shown_from,
        beside=prompt.beside if member.memory != "fresh" else (),
        thread_key=prompt.key,
        edits=reason.edits,
        sources=prompt.sources,
        images=tuple(image.name for image in prompt.images),
        slash=_expansion(prompt.slash) if prompt.slash else None,
        purpose=reason.purpose,
        row=agent.row,
    )


def _adopted(prompt: BuiltPrompt) -> str | None:
    return prompt.vendor_session.session if isinstance(prompt.vendor_session, AdoptedSession) else None


def _expansion(slash: Slash) -> str:
    """Name a custom command for a receipt: the file that it expands to, or why it stays as typed."""
    name = slash.typed.split()[0]
    if slash.refused:
        return ": ".join(filter(None, (f"{name} stays as typed", slash.file, slash.refused)))
    return f"{name} by {slash.file}"


def why(route: Route, member: Member) -> str:
    fallback = "" if member.name == route.target else f"; {member.name} answers as its fallback"
    given = f", and a person gave it to {route.target}" if route.instead_of else ""
    if route.part:
        return f"{part_in_words(route.part)}{given}{fallback}"
    also = "".join(f", {call.by} in {call.parent}" for call in route.also)
    return f"{route.by} asked for {route.instead_of or route.target} in {route.parent}{also}{given}{fallback}"
