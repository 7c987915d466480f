"""Starts moto's server with state machines that really run: python start_moto.py PORT"""

import sys

from moto.core.config import default_user_config
from moto.server import main

default_user_config["stepfunctions"] = {"execute_state_machine": True}

# moto 5.2.1 copies a state machine with all of its executions at every start, and executions hold locks that cannot be
# copied (getmoto/moto#10077, cured in 5.2.5).
from moto.stepfunctions.parser.backend.execution import Execution  # noqa: E402

Execution.__deepcopy__ = lambda self, memo: self

main(["-H", "127.0.0.1", "-p", sys.argv[1]])
