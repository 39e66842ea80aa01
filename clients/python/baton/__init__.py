"""Exactly one leader in a group of processes, by the agent of this host (`baton agent`)."""
from . import aio
from .client import Client, Election, Leadership, lead
from .core import BatonError, Lost, Value

__all__ = ["BatonError", "Client", "Election", "Leadership", "Lost", "Value", "aio", "lead"]
