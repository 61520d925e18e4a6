"""The command line as the tests call it."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tilelang.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent


GEMM = """computation matmul(M = 20, N = 24, K = 12, type = float32) {
  input A: type[m: M, k: K]
  input B: type[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}
schedule simt for matmul {
  tile m=8 n=8 -> block
  accumulate in register
  split k=4
  load A in shared
  load B in shared ahead 1
  tile m=2 n=2 -> thread
}
schedule plain for matmul { tile m=8 n=8 -> block }
schedule wrong for matmul {
  tile m=8 n=8 -> block
  split q=2
  vectorize n=4
}
"""


def tilelang(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=input)


def of_json(result: Result) -> dict[str, Any]:
    found = json.loads(result.stdout)
    assert found["schema"] == 1
    return dict(found)


PAIR = "computation f(N = 4) { input X: float32[i: N] output Y[i] = X[i] / 0.0 }\n"


def raising(error: type[BaseException]) -> Any:
    def raised(*arguments: Any, **named: Any) -> None:
        raise error

    return raised
