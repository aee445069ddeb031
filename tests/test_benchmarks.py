"""The frame of `make bench`, with benchmarks that measure nothing: the table, the JSON, bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import benchmarks.figure
from benchmarks.__main__ import BENCHMARKS, QUICK, main
from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.timing import Took, interleaved, percentile, run
from benchmarks.world import member, world
from generators.performance import TITLES
from generators.performance import run as measured


def figure(name: str, value: float, **more: object) -> Figure:
    return Figure(name=name, unit="ms", value=value, **more)  # type: ignore[arg-type]


FAST = figure("send", 120, floor=100, floor_is="a script", bound=1.5)
SLOW = figure("log", 300, floor=100, floor_is="a script", bound=2.0)


class Fake:
    """A benchmark of the given measurements, which counts how often each is taken."""

    def __init__(self, **measurements: list[list[Figure]]) -> None:
        self.measurements = measurements
        self.taken: list[str] = []

    def __call__(self, _quick: bool) -> Measures:
        for name in self.measurements:
            yield name, lambda name=name: self.take(name)  # type: ignore[misc]

    def take(self, name: str) -> list[Figure]:
        times = self.taken.count(name)
        self.taken.append(name)
        return self.measurements[name][min(times, len(self.measurements[name]) - 1)]


def test_a_run_prints_each_figure_with_its_floor_and_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], {"startup": Fake(send=[[FAST]])}) == 0
    _, title, row = capsys.readouterr().out.splitlines()
    assert title == "startup"
    assert row.split(maxsplit=8) == ["send", "120", "ms", "100", "ms", "1.20", "x", "1.50", "x  ok    (a script)"]


def test_a_figure_over_its_bound_fails_the_run_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], {"startup": Fake(send=[[FAST]], log=[[SLOW]])}) == 1
    told = capsys.readouterr()
    assert "OVER" in told.out.splitlines()[-1]
    assert told.err == "startup/log: 3.00 x, at most 2.00 x\n"


def test_a_figure_over_its_bound_is_measured_once_more_and_the_lower_one_counts() -> None:
    startup = Fake(send=[[FAST]], log=[[SLOW], [figure("log", 130, floor=100, bound=2.0)]])
    assert main([], {"startup": startup}) == 0
    assert startup.taken == ["send", "log", "log"]


@pytest.mark.parametrize(
    ("given", "measured", "ok"),
    [
        (figure("a", 30, floor=10, bound=2.0), 3.0, False),
        (figure("a", 30, floor=10, bound=20, by="difference"), 20.0, True),
        (figure("a", 30, floor=10, bound=20, by="value"), 30.0, False),
        (figure("a", 30, bound=40), 30.0, True),
        (figure("a", 30, floor=10), 3.0, True),
    ],
)
def test_a_bound_is_of_the_ratio_the_difference_or_the_value(given: Figure, measured: float, ok: bool) -> None:
    assert (given.measured, given.ok) == (measured, ok)


@pytest.mark.parametrize(
    ("names", "taken"),
    [(["startup"], ["send", "log"]), (["startup/send"], ["send"]), (["*/l*"], ["log"]), (["group"], [])],
)
def test_only_the_named_measurements_are_taken(names: list[str], taken: list[str]) -> None:
    startup = Fake(send=[[FAST]], log=[[FAST]])
    main(names, {"startup": startup})
    assert startup.taken == taken


def test_a_name_that_no_measurement_has_fails() -> None:
    assert main(["startup/nothing"], {"startup": Fake(send=[[FAST]])}) == 3


def test_the_json_has_the_machine_and_what_each_bound_is_compared_with(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    main(["--json", str(file)], {"startup": Fake(send=[[FAST]], log=[[SLOW]])})
    written = json.loads(file.read_text())
    assert set(written["machine"]) >= {"cpu", "cores", "os", "python"}
    assert [(one["benchmark"], one["name"], one["measured"], one["ok"]) for one in written["figures"]] == [
        ("startup", "send", 1.2, True),
        ("startup", "log", 3.0, False),
    ]


def test_the_json_of_a_part_keeps_the_other_figures_of_the_file(tmp_path: Path) -> None:
    file = ["--json", str(tmp_path / "bench.json")]
    main(file, {"startup": Fake(send=[[FAST]], log=[[SLOW]]), "group": Fake(fifty=[[FAST]])})
    main([*file, "startup/log"], {"startup": Fake(send=[[FAST]], log=[[figure("log", 130, floor=100)]])})
    figures = json.loads((tmp_path / "bench.json").read_text())["figures"]
    assert sorted((one["benchmark"], one["name"], one["measured"]) for one in figures) == [
        ("group", "send", 1.2),
        ("startup", "log", 1.3),
        ("startup", "send", 1.2),
    ]


def test_a_quick_run_measures_what_is_over_its_bound_three_times_more() -> None:
    startup = Fake(log=[[SLOW], [SLOW], [SLOW], [figure("log", 130, floor=100, bound=2.0)]])
    assert main(["--quick"], {"startup": startup}) == 0
    assert startup.taken == ["log"] * 4
    assert main(["--quick"], {"startup": Fake(log=[[SLOW]])}) == 1


def test_a_benchmark_that_cannot_be_run_here_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    def absent(_quick: bool) -> Measures:
        raise Unavailable("npm is not installed")
        yield

    assert main([], {"clis": absent, "startup": Fake(send=[[FAST]])}) == 0
    assert "  left out: npm is not installed\n" in capsys.readouterr().out


def test_a_benchmark_that_breaks_fails_the_run_and_not_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_quick: bool) -> Measures:
        raise RuntimeError("the agent was not found")
        yield

    startup = Fake(send=[[FAST]])
    assert main([], {"broken": broken, "startup": startup}) == 3
    assert startup.taken == ["send"]
    assert capsys.readouterr().err.endswith("broken: failed: the agent was not found\n")


def test_a_measurement_that_breaks_fails_the_run_and_not_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    startup = Fake(send=[], log=[[FAST]])  # a list without figures
    assert main([], {"startup": startup}) == 3
    assert startup.taken == ["send", "log"]
    assert capsys.readouterr().err.endswith("startup/send: failed: list index out of range\n")


def test_ways_take_turns_after_a_round_that_warms_up() -> None:
    order: list[str] = []

    def way(name: str, times: Iterator[int]) -> Took:
        order.append(name)
        return Took(next(times), 2)

    first, second = iter([100, 1, 2, 9]), iter([100, 5, 5, 5])
    medians = interleaved(lambda: way("a", first), lambda: way("b", second), repeats=3)
    assert medians == [Took(2, 2), Took(5, 2)]
    assert "".join(order) == "abbaabba"


def test_percentiles_lie_between_the_smallest_and_the_largest() -> None:
    assert percentile([float(number) for number in range(101)], 99) == pytest.approx(99)


def test_a_run_of_a_program_has_its_time_and_that_of_its_children(tmp_path: Path) -> None:
    spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    took = run(("sh", "-c", f"sh -c '{spin}'; true"), tmp_path, {})
    assert 0 < took.cpu_ms <= 1.5 * took.wall_ms


def test_a_program_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 3: oh"):
        run(("sh", "-c", "echo oh >&2; exit 3"), tmp_path, {})


def test_a_world_runs_teamchat_with_a_trusted_team() -> None:
    with world(member("max", ("sh", "-c", "cat > /dev/null; echo Hello"))) as at:
        assert at.teamchat("send", "--quiet", stdin=b"Hi").wall_ms > 0
        assert list((at.folder.parent / "home" / "state").rglob("*.db"))


def test_every_benchmark_is_in_the_table_of_benchmarks() -> None:
    files = {
        path.stem
        for path in Path(benchmarks.figure.__file__).parent.glob("*.py")
        if "\ndef measures(" in path.read_text()
    }
    assert files == set(BENCHMARKS) >= set(QUICK)


def test_every_benchmark_has_a_title_on_the_page() -> None:
    assert set(TITLES) >= set(BENCHMARKS)


def test_the_page_says_why_each_figure_that_is_over_its_bound_is() -> None:
    page = (Path(benchmarks.figure.__file__).parents[1] / "docs" / "performance.md").read_text(encoding="utf-8")
    reasons = page.partition("## What is over its bound")[2]
    assert [one.name for one in measured().figures if not one.ok and f"`{one.name}`" not in reasons] == []
