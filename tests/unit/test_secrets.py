"""Encrypted secrets, without a database: who can open them, and what nobody can do with them."""

from __future__ import annotations

import base64
import copy
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil import InvalidValueError, Menzil, SecretError, UsageError
from menzil.model.secrets import SecretKeys, decrypt_config, encrypt_config, is_encrypted, secret_keys

KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
KEYS = SecretKeys(KEY)
PEM = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CONFIG: dict[str, Any] = {
    "url": "https://example.com/hook",
    "headers": {"X-Api-Key": "canary-header", "X-Tenant": "a"},
    "auth": {"type": "basic", "username": "ann", "password": "canary-password"},
    "signing": {"secrets": [SIGNING, SIGNING]},
    "tls": {"cert": "PEM", "key": PEM},
    "proxy": {"url": "http://proxy", "username": "u", "password": ""},
}


def test_what_was_encrypted_comes_back_and_nothing_else_changes() -> None:
    before = copy.deepcopy(CONFIG)
    encrypted = encrypt_config(CONFIG, "billing", KEYS)
    assert before == CONFIG
    assert decrypt_config(encrypted, "billing", KEYS) == CONFIG
    text = repr(encrypted)
    assert not any(secret in text for secret in ("canary", SIGNING, "PRIVATE"))
    assert encrypted["url"] == CONFIG["url"]
    assert encrypted["headers"]["X-Tenant"] == "a"
    assert encrypted["auth"]["username"] == "ann"
    assert is_encrypted(encrypted["proxy"]["password"])


def test_the_same_secret_never_looks_the_same_twice() -> None:
    encrypted = encrypt_config(CONFIG, "billing", KEYS)
    assert encrypted["signing"]["secrets"][0] != encrypted["signing"]["secrets"][1]
    assert encrypted != encrypt_config(CONFIG, "billing", KEYS)


def test_marks_and_secrets_that_are_encrypted_already_stay() -> None:
    once = encrypt_config(CONFIG, "billing", KEYS)
    assert encrypt_config(once, "billing", KEYS) == once
    marked = {"auth": {"token": {"$secret": True}}, "signing": {"secrets": [{"$secret": True}]}}
    assert encrypt_config(marked, "billing", KEYS) == marked
    assert decrypt_config(marked, "billing", KEYS) == marked


def test_without_a_key_nothing_is_encrypted() -> None:
    assert encrypt_config(CONFIG, "billing", SecretKeys("")) == CONFIG
    assert decrypt_config(CONFIG, "billing", SecretKeys("")) == CONFIG


def test_an_old_key_still_opens_and_the_first_one_encrypts() -> None:
    old = encrypt_config(CONFIG, "billing", KEYS)
    rotated = SecretKeys(f" {OTHER} , {KEY} ")
    assert decrypt_config(old, "billing", rotated) == CONFIG
    new = encrypt_config(CONFIG, "billing", rotated)
    assert decrypt_config(new, "billing", SecretKeys(OTHER)) == CONFIG


@pytest.mark.parametrize(
    ("keys", "says"), [("", "has no key"), (OTHER, "has only"), (f"{OTHER},{OTHER}", "is encrypted with key")]
)
def test_the_wrong_key_opens_nothing_and_the_error_names_the_place(keys: str, says: str) -> None:
    encrypted = encrypt_config({"auth": {"token": "canary"}}, "billing", KEYS)
    with pytest.raises(SecretError, match=r"The secret auth.token of endpoint 'billing'") as refusal:
        decrypt_config(encrypted, "billing", SecretKeys(keys))
    assert says in str(refusal.value)
    assert "canary" not in str(refusal.value)


def test_a_secret_that_was_moved_does_not_open() -> None:
    encrypted = encrypt_config({"auth": {"token": "t", "password": "p"}}, "billing", KEYS)["auth"]
    for moved, endpoint in [
        ({"auth": {"token": encrypted["password"]}}, "billing"),
        ({"headers": {"X-Token": encrypted["token"]}}, "billing"),
        ({"auth": {"token": encrypted["token"]}}, "evil"),
    ]:
        with pytest.raises(SecretError, match="belongs to another place"):
            decrypt_config(moved, endpoint, KEYS)


def test_a_signing_secret_may_move_within_signing_which_is_how_it_is_rotated() -> None:
    single = encrypt_config({"signing": {"secret": SIGNING}}, "billing", KEYS)["signing"]["secret"]
    listed = {"signing": {"secrets": [SIGNING, single]}}
    assert decrypt_config(listed, "billing", KEYS) == {"signing": {"secrets": [SIGNING, SIGNING]}}


@given(st.integers(0, 500), st.integers(1, 255))
def test_a_secret_that_was_changed_does_not_open(place: int, change: int) -> None:
    text = encrypt_config({"auth": {"token": "t" * 30}}, "e", KEYS)["auth"]["token"]["$encrypted"]
    head, _, sealed = text.rpartition(":")
    raw = bytearray(base64.b64decode(sealed))
    raw[place % len(raw)] ^= change
    changed = {"auth": {"token": {"$encrypted": f"{head}:{base64.b64encode(raw).decode()}"}}}
    with pytest.raises(SecretError):
        decrypt_config(changed, "e", KEYS)


@pytest.mark.parametrize("text", ["", "v1", "v2:00000000:AAAA", "v1::", 5, None, {"v": 1}])
def test_what_is_no_encrypted_secret_is_a_secret_error(text: object) -> None:
    with pytest.raises(SecretError):
        decrypt_config({"auth": {"token": {"$encrypted": text}}}, "billing", KEYS)


def test_a_short_ciphertext_is_a_secret_error() -> None:
    text = encrypt_config({"auth": {"token": "t"}}, "e", KEYS)["auth"]["token"]["$encrypted"]
    for cut in (text[:12], text[:14], text[:20], text + "=", text + "é"):
        with pytest.raises(SecretError):
            decrypt_config({"auth": {"token": {"$encrypted": cut}}}, "e", KEYS)


@pytest.mark.parametrize("key", ["hunter2", KEY[:-4], KEY + "AAAA", "é" * 44, KEY + "," + "x" * 43, "=" * 44])
def test_a_bad_key_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(UsageError, match="32 bytes in base64") as refusal:
        Menzil("dbname=x", secret_key=key)
    assert key not in str(refusal.value)


def test_keys_come_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_SECRET_KEY", KEY)
    sealed = encrypt_config(CONFIG, "billing", secret_keys(None))
    assert decrypt_config(sealed, "billing", secret_keys(KEY)) == CONFIG
    assert not secret_keys("")
    assert KEY not in repr(secret_keys(None))
    monkeypatch.delenv("MENZIL_SECRET_KEY")
    assert not secret_keys(None)
    assert decrypt_config(sealed, "billing", SecretKeys(base64.urlsafe_b64encode(b"\x01" * 32).decode())) == CONFIG


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"auth": {"token": ""}}, "auth.token"),
        ({"auth": {"token": "canary\n"}}, "auth.token"),
        ({"auth": {"token": "\ud800"}}, "auth.token"),
        ({"auth": {"secret_access_key": "canary" * 50}}, "auth.secret_access_key"),
        ({"signing": {"secret": "canary"}}, "signing.secret"),
        ({"signing": {"secrets": [SIGNING, "whsec_" + "A" * 33]}}, "signing.secrets.1"),
        ({"signing": {"secrets": [SIGNING, "whsec_" + "A" * 88]}}, "signing.secrets.1"),
        ({"signing": {"secret": SIGNING + "="}}, "signing.secret"),
        ({"tls": {"key": "canary"}}, "tls.key"),
        ({"tls": {"key": "\x1f" + PEM}}, "tls.key"),
        ({"headers": {"Cookie": "canary\r\nX: y"}}, "headers.Cookie"),
        ({"headers": {"Cookie": " canary"}}, "headers.Cookie"),
        ({"headers": {"Cookie": "c" * 8193}}, "headers.Cookie"),
    ],
)
def test_what_the_database_would_refuse_is_refused_before_it_is_encrypted(config: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValueError, match=f"In the endpoint config {path} must be") as refusal:
        encrypt_config(config, "billing", KEYS)
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize("config", [{"auth": 5}, {"auth": []}, {"headers": "x"}, {"signing": {"secrets": "x"}}, {}])
def test_configs_of_the_wrong_shape_are_left_to_the_database(config: dict[str, Any]) -> None:
    assert encrypt_config(config, "billing", KEYS) == config
    assert decrypt_config(config, "billing", KEYS) == config


def test_without_the_library_the_error_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from menzil import Menzil, UsageError\n"
        f"client = Menzil('dbname=x', secret_key={KEY!r})\n"
        "try: client.create_endpoint('e', 'http', {'auth': {'token': 't'}})\n"
        "except UsageError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'menzil[secrets]'" in said.stdout
