"""AWS signatures, held against botocore."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, quote, unquote_to_bytes

import pytest
from botocore import auth as botocore_auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from menzil.deliver.http.sigv4 import SigV4
from tests.deliver.http.receivers import polite
from tests.deliver.http.stage import completed, deliver, in_loop, message

KEY = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
HOST = "abc.execute-api.eu-central-1.amazonaws.com"


def _theirs(
    method: str, url: str, headers: dict[str, str], body: bytes, service: str, token: str | None, at: datetime
) -> dict[str, str]:
    # The parameters are given as their program would give them: parsed. It escapes them by AWS's rule.
    url, _, query = url.partition("?")
    if service == "s3":  # their program escapes the name of the object before it signs
        url = url.removeprefix(f"https://{HOST}")
        url = f"https://{HOST}{quote(unquote_to_bytes(url), safe='/-_.~')}"
    request = AWSRequest(method, url, headers=headers, data=body, params=parse_qsl(query, keep_blank_values=True))
    kind = botocore_auth.S3SigV4Auth if service == "s3" else botocore_auth.SigV4Auth
    # Theirs reads the clock itself.
    with patch.object(botocore_auth, "get_current_datetime", lambda: at.replace(tzinfo=None)):
        kind(Credentials(*KEY, token), service, "eu-central-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@pytest.mark.parametrize("token", [None, "session/token+with=signs"])
@pytest.mark.parametrize("service", ["execute-api", "lambda", "s3"])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
@pytest.mark.parametrize(
    "path",
    ["/", "/prod/hook", "/a//b/./c/../d/", "/a%20b/%C3%BC", "/x;y=1,2/$z@w:(v)", "/p?b=2&a=1&a=0&empty=&flag",
     "/p?q=%2F%20+x&Q=~", "/..", "/trailing/", "/p?at=10:30/a@b,c!*()'$;&%3a=1", "/p?arn=arn%3aaws%3Asqs%3a%2f%7Ex",
     "/p?a+b=c+d&a%2bb=c%2Bd&=x", "/p?z=%c3%bc&y=%C3%BC", "/p?&&b&a=1=2"],
)  # fmt: skip
def test_the_signature_is_the_one_botocore_makes(path: str, method: str, service: str, token: str | None) -> None:
    at = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    body = b"" if method == "GET" else b'{"order": 42}'
    headers = {"host": HOST, "content-type": "application/json", "x-amz-target": "Some.Thing   twice"}
    ours = SigV4(*KEY, "eu-central-1", service, token).headers(method, path, headers, body, at)
    theirs = _theirs(method, f"https://{HOST}{path}", headers, body, service, token, at)
    assert ours == {name: theirs[name] for name in ours}
    assert "Signature=" in ours["authorization"]


@in_loop
async def test_a_signed_request_arrives_with_a_signature_of_what_arrived() -> None:
    auth: dict[str, Any] = {"type": "sigv4", "access_key_id": KEY[0], "secret_access_key": KEY[1],
                            "region": "eu-central-1", "service": "execute-api", "session_token": "st"}  # fmt: skip
    async with polite() as receiver:
        sent = message(headers={"X-Amz-Target": "t", "X-Amz-Date": "forged", "Authorization": "forged"})
        completed(await deliver(receiver.url + "/p?b=1:2+3&a=2/%c3%bc&flag", sent, auth=auth))
        seen = receiver.last
    # Sent as it was signed: whether AWS takes a plus for a space makes no difference.
    assert seen.path == "/p?b=1%3A2%203&a=2%2F%C3%BC&flag"
    at = datetime.strptime(seen.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    signed = {name: seen.headers[name] for name in ("host", "content-type", "x-amz-target")}
    theirs = _theirs("POST", receiver.url + seen.path, signed, seen.body, "execute-api", "st", at)
    assert seen.headers["authorization"] == theirs["authorization"]
    assert seen.headers["x-amz-security-token"] == "st"
