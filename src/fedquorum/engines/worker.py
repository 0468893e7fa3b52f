"""A worker of the local engine: `python -m fedquorum.engines.worker JOB`.

It reads tasks from standard input and writes what it did to standard output, a line of JSON each. It stops when
its input ends or nobody listens, so it outlives the process that started it by the model in hand at most.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from fedquorum.errors import InputError, MachineError


def main() -> None:
    """Do tasks until there are no more."""
    # What a user's code prints must not get between our lines: it goes to standard error, which is the log.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    parent, folder = os.getppid(), Path(sys.argv[1])

    def say(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    try:
        from fedquorum.engines.job import load_job, prepare
        from fedquorum.runs import Task

        do = prepare(load_job(folder))
        for line in sys.stdin:
            request = json.loads(line)
            task = Task(request["shard"], tuple(request["models"]))
            failed = do(task, lambda model: say(learnt=model))
            say(shard=task.shard, failed=failed)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    except (InputError, MachineError) as error:
        say(error=str(error), kind=type(error).__name__)
    except Exception as error:
        traceback.print_exc()
        if _out_of_memory(error):  # as if the system had ended this process: another may find more, so try again
            sys.stderr.flush()
            os._exit(1)
        say(error=f"{type(error).__name__}: {error}".splitlines()[0], kind="MachineError")
    finally:
        if os.getppid() != parent:  # it was killed and could not tidy up
            shutil.rmtree(folder, ignore_errors=True)


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


if __name__ == "__main__":
    main()
