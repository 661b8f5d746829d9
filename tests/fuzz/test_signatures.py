"""Signatures of any request are those that other people's libraries make."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from menzil.deliver.http.signing import signature, signing_keys
from menzil.deliver.http.sigv4 import SigV4
from tests.deliver.http.test_sigv4 import HOST, KEY, _theirs
from tests.fuzz.pace import examples


@examples(80)
@given(
    st.lists(st.binary(min_size=24, max_size=64), min_size=1, max_size=5),
    st.binary(max_size=200),
    st.integers(1, 2**63 - 1),
    st.integers(0, 4 * 10**9),
)
def test_every_secret_makes_the_signature_of_standard_webhooks(
    keys: list[bytes], body: bytes, number: int, stamp: int
) -> None:
    secrets = ["whsec_" + b64encode(key).decode() for key in keys]
    wire_id = f"msg_{number}_0"
    made = signature(signing_keys({"secrets": secrets}), wire_id, stamp, body)
    at = datetime.fromtimestamp(stamp, UTC)
    # Theirs signs texts: a body of bytes is signed as the bytes it is.
    text = body.decode("latin-1")
    if text.isascii():
        assert made == " ".join(Webhook(secret).sign(wire_id, at, text) for secret in secrets)
    assert len(made.split()) == len(keys)


segment = st.from_regex(r"([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2}){0,8}", fullmatch=True)
# Whatever a query may hold, escaped or not, in either case.
signs = st.sampled_from([*"aZ09-._~!$'()*+,:@/;?", "%2f", "%2F", "%3a", "%20", "%2b", "%3D", "%26", "%c3%bc", "%41"])
word = st.lists(signs, min_size=1, max_size=5).map("".join)
query = st.lists(st.tuples(word, st.just("") | word), max_size=4)


@examples(80)
@given(
    st.lists(segment, max_size=4).map(lambda parts: "/" + "/".join(parts)),
    query.map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)),
    st.sampled_from(["execute-api", "lambda", "s3"]),
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    st.binary(max_size=50),
    st.none() | st.from_regex(r"[A-Za-z0-9/+=]{1,40}", fullmatch=True),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20).map(str.strip),
)
def test_any_request_has_the_signature_that_botocore_makes(
    path: str, query: str, service: str, method: str, body: bytes, token: str | None, value: str
) -> None:
    at = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    whole = f"{path}?{query}" if query else path
    headers = {"host": HOST, "content-type": "application/json", "x-amz-target": value}
    ours = SigV4(*KEY, "eu-central-1", service, token).headers(method, whole, headers, body, at)
    theirs = _theirs(method, f"https://{HOST}{whole}", headers, body, service, token, at)
    assert ours == {name: theirs[name] for name in ours}
