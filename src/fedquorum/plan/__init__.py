"""Before anything is trained: how many malicious clients can be tolerated, at what share of the votes, for what price."""

from fedquorum.plan.advice import advice
from fedquorum.plan.table import Answer, Plan, Row, as_json, make_plan, share

__all__ = ["Answer", "Plan", "Row", "advice", "as_json", "make_plan", "share"]
