"""tests/test_readme: what the README shows runs, in the order that it is shown."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_python_of_the_readme_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks) + "\nprint(picture.shape, metrics.entropy.shape)\n")
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ episodes, \d+ found the source", done.stdout)
    assert done.stdout.endswith("(384, 384, 3) (2, 4)\n")


def test_the_two_commands_stand_in_the_readme():
    assert "\npython -m pip install -e . && plumejax train\n" in README
    assert '\npython -m pip install -e ".[test]" && python -m pytest\n' in README
