"""Counts what a reader of the package holds: `python -m generators.structure`; `--send` also follows a message."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "teamchat"
TRACED = """
import sys, threading
files, deepest = set(), [0]
def told(frame, event, argument):
    name = frame.f_code.co_filename
    if "/teamchat/" in name and frame.f_code.co_name != "<module>":
        files.add(name)
        if name.endswith("runners/child/process.py") and frame.f_code.co_name == "__init__":
            depth = 0
            while frame:
                depth += "/teamchat/" in frame.f_code.co_filename
                frame = frame.f_back
            deepest[0] = max(deepest[0], depth)
sys.setprofile(told)
threading.setprofile(told)
from teamchat.cli.app import run
run(sys.argv[1:])
sys.setprofile(None)
print("files passed by one send:", len(files), file=sys.stderr)
print("frames at the start of the agent:", deepest[0], file=sys.stderr)
"""


def code_lines(tree: ast.Module, text: str) -> int:
    """Lines that are neither blank, comment, docstring nor import."""
    left_out = set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case ast.Expr(value=ast.Constant(value=str())):
                left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in left_out for n, line in lines)


def is_one_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body, without its docstring, is one statement that has no others in it."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return len(body) == 1 and not hasattr(body[0], "body")


def count(modules: Mapping[str, Path]) -> Counter[str]:
    """Lines, classes and functions."""
    totals = Counter[str]()
    for path in modules.values():
        text = path.read_text()
        tree = ast.parse(text)
        nodes = [*ast.walk(tree)]
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        totals["lines"] += text.count("\n")
        totals["lines of code"] += code_lines(tree, text)
        totals["classes"] += sum(isinstance(node, ast.ClassDef) for node in nodes)
        totals["functions"] += len(functions)
        totals["functions of one statement"] += sum(map(is_one_statement, functions))
    return totals


def importers(modules: Mapping[str, Path]) -> Mapping[str, set[str]]:
    """Which modules import a module."""
    found = defaultdict[str, set[str]](set)
    for module, path in modules.items():
        for imported in (name for node in ast.walk(ast.parse(path.read_text())) for name in _imports(node)):
            target = imported if imported in modules else imported.rpartition(".")[0]
            if target in modules and target != module:
                found[target].add(module)
    return found


def names(modules: Mapping[str, Path]) -> Mapping[str, set[str]]:
    """Which modules define a public name."""
    found = defaultdict[str, set[str]](set)
    for module, path in modules.items():
        for node in ast.parse(path.read_text()).body:
            own = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            for name in [node.name] if own else _targets(node):  # type: ignore[attr-defined]
                if name[0] != "_":
                    found[name].add(module)
    return found


def tell() -> None:
    """Print the counts; with `--single` each module with one importer, too."""
    modules = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    print(f"modules: {len(modules)}")
    for what, number in count(modules).items():
        print(f"{what}: {number}")
    by = importers(modules)
    single = sorted(name for name, path in modules.items() if len(by[name]) == 1 and path.stem != "__init__")
    print(f"modules with one importer: {len(single)}")
    print(f"public names in two modules or more: {sum(len(of) > 1 for of in names(modules).values())}")
    if "--single" in sys.argv:
        for name in single:
            print(f"{modules[name].read_text().count(chr(10)):5} {name} <- {next(iter(by[name]))}")


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [f"{module}.{alias.name}" for alias in names]
    return []


def _targets(node: ast.stmt) -> list[str]:
    match node:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def follow_a_send() -> None:
    """Print how many files one `send` passes, and how deep the call is that starts the agent."""
    with tempfile.TemporaryDirectory() as folder:
        agent = 'command = ["sh", "-c", "cat > /dev/null; echo Hello"]'
        team = f'[[members]]\nname = "max"\nagent = "a"\n[agents.a]\n{agent}\n'
        (Path(folder) / "teamchat.toml").write_text(team)
        env = {"PATH": "/usr/bin:/bin", "HOME": folder, "TEAMCHAT_HOME": f"{folder}/state"}
        begin, again = ["send", "--trust", "-q", "Hi"], ["send", "-q", "Hi"]
        for words in (begin, again, again):  # the second one keeps the tables of the team file
            command = [sys.executable, "-c", TRACED, *words]
            ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        print(ran.stderr.strip())


if __name__ == "__main__":
    tell()
    if "--send" in sys.argv:
        follow_a_send()
