"""What RabbitMQ means by what it says about messages, channels and connections."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pamqp import commands

from menzil.deliver.broker.errors import bad_endpoint, bad_message, busy
from menzil.model.outcome import Fail

#: Codes of a closed channel that blame what was published. The others blame the endpoint.
_MESSAGE_CODES = frozenset({406})
#: Codes of a closed connection that a single message can be the cause of: frames, syntax, commands that are not valid.
SUSPICIOUS = frozenset({501, 502, 503, 504, 505, 506})
_SIZES = re.compile(r"message size \d+ is larger than (?:configured )?max size (\d+)")


def said(close: commands.Channel.Close | commands.Connection.Close | commands.Basic.Return) -> str:
    """Return code and text; the text begins with the name of the code as a rule."""
    return f"{close.reply_code} {close.reply_text}"


def returned(answer: commands.Basic.Return, peer: str, *, dead_letter: bool) -> Fail:
    """Judge a message that came back. The ack that follows says only that the server has dealt with it."""
    where = f"exchange {answer.exchange!r}, routing key {answer.routing_key!r}"
    reason = f"{peer} returned the message: {said(answer)} ({where})"
    return bad_message(reason) if dead_letter else bad_endpoint(reason)


def refused(peer: str) -> Fail:
    """Judge a nack: a queue is full and rejects what is published, or could not store it."""
    return busy(f"{peer} did not take the message (basic.nack): a queue is full, or cannot store it")


def too_large(close: commands.Channel.Close, sizes: Mapping[int, int]) -> list[int]:
    """Return which messages the server will never take, if their sizes are why it closed the channel."""
    match = _SIZES.search(close.reply_text or "")
    return [place for place, size in sizes.items() if size > int(match[1])] if match else []


def guilty(close: commands.Channel.Close, peer: str) -> Fail:
    """Judge the one message that made the server close the channel."""
    reason = f"{peer} closed the channel: {said(close)}"
    return bad_message(reason) if close.reply_code in _MESSAGE_CODES else bad_endpoint(reason)
