"""The table of what is refused, numbered: `python -m tests.deliver.guard.table` prints it for docs/explanation/ssrf.md.

PORT stands for the port of a server that listens on loopback: a request that got past the guard would reach it.
"""

from __future__ import annotations

from dataclasses import dataclass

TOO_LONG = "https://example.com/" + "a" * 2030


@dataclass(frozen=True)
class Row:
    """One attempt. `answers`: what the name servers say of the host; None asks the real ones."""

    what: str
    url: str
    refusal: str  # a part of the reason
    answers: tuple[str, ...] | None = None

    def shown(self, number: int) -> str:
        url = self.url if len(self.url) < 100 else f"{self.url[:30]}… ({len(self.url)} characters)"
        written = "".join(c if 32 <= ord(c) < 127 or ord(c) > 160 else f"\\x{ord(c):02x}" for c in url)
        resolved = ", ".join(self.answers or ())
        return f"| {number} | {self.what} | `{written.replace('|', '%7C')}` | {resolved} | {self.refusal} |"


CHARACTER, USER, FRAGMENT = "a character that a URL may not have", "a user name or password", "a fragment"
SHAPE, PORT, NUMBER, NAME = "not http:// or https://", "a port outside", "is a number, but no address", "cannot exist"
PUNYCODE, LOOPBACK, PRIVATE, METADATA = (
    "punycode label",
    "a loopback address",
    "a private address",
    "a metadata address",
)
LINK, DOCUMENTS, MULTICAST = "a link-local address", "an address for documentation", "a multicast address"


def _literals(what: str, refusal: str, *addresses: str) -> list[Row]:
    return [Row(what, f"http://[{a}]:PORT/" if ":" in a else f"http://{a}:PORT/", refusal) for a in addresses]


def _names(what: str, refusal: str, *answers: tuple[str, ...]) -> list[Row]:
    return [Row(what, "http://rebind.example:PORT/", refusal, answer) for answer in answers]


ROWS = [
    *_literals("loopback, as it is", LOOPBACK, "127.0.0.1", "127.0.0.53", "127.255.255.254", "::1"),
    Row("loopback, the long way", "http://[0:0:0:0:0:0:0:1]:PORT/", LOOPBACK),
    Row("loopback by name", "http://localhost:PORT/", LOOPBACK),
    Row("loopback by name, upper case", "http://LOCALHOST:PORT/", LOOPBACK),
    Row("loopback by name, with a dot", "http://localhost.:PORT/", NAME),
    *_literals("loopback, parts left out", NUMBER, "127.1", "127.0.1", "0"),
    *_literals("loopback, one number", NUMBER, "2130706433", "0x7f000001", "0X7F000001", "017700000001"),
    *_literals("loopback, parts in other bases", NUMBER, "0x7f.0.0.1", "0177.0.0.1", "127.0.0.0x1", "127.0.0.01"),
    *_literals("loopback, a dot at the end", NUMBER, "127.0.0.1."),
    *_literals("a number out of range", NUMBER, "127.0.0.256", "4294967297", "127.0.0.0.1"),
    *_literals("loopback in full-width digits", CHARACTER, "１２７.0.0.1", "①②⑦.⓪.⓪.①"),
    *_literals("loopback with other dots", CHARACTER, "127。0。0。1", "127．0．0．1"),
    *_literals("loopback, percent-encoded", SHAPE, "%31%32%37.0.0.1", "127.0.0.1%00.example.com", "127%2e0%2e0%2e1"),
    Row("a name in full-width letters", "http://ｌｏｃａｌｈｏｓｔ:PORT/", CHARACTER),
    Row("localhost as punycode", "http://xn--localhost-:PORT/", NAME),
    Row("full-width digits as punycode", "http://xn--8g7ccp.0.0.example:PORT/", PUNYCODE),
    Row("full-width localhost as punycode", "http://xn--mi7cdqncpe6aj:PORT/", PUNYCODE),
    Row("invalid punycode", "http://xn--99999999999:PORT/", PUNYCODE),
    *_literals("the unspecified address", "an address of this host", "0.0.0.0", "0.1.2.3"),
    *_literals("the unspecified address", "the unspecified address", "::"),
    *_literals("private", PRIVATE, "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1"),
    *_literals("behind a carrier's NAT", "a carrier's NAT", "100.64.0.1", "100.127.255.255"),
    *_literals("link-local", LINK, "169.254.1.1", "fe80::1"),
    *_literals("site-local", "a site-local address", "fec0::1"),
    Row("a zone", "http://[fe80::1%25eth0]:PORT/", SHAPE),
    *_literals("credentials of the cloud", METADATA, "169.254.169.254", "169.254.170.2", "100.100.100.200"),
    *_literals("credentials of the cloud", METADATA, "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
    *_literals("multicast", MULTICAST, "224.0.0.1", "239.255.255.250", "ff02::1"),
    *_literals("broadcast and reserved", "address", "255.255.255.255", "240.0.0.1"),
    *_literals("documentation", DOCUMENTS, "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"),
    *_literals("benchmarks", "for benchmarks", "198.18.0.1", "198.19.255.255", "2001:2::1"),
    *_literals("protocols", "kept for protocols", "192.0.0.1", "2001:1::1"),
    *_literals("6to4 relays", "6to4 relays", "192.88.99.1"),
    *_literals("unassigned address", "address", "100::1", "5f00::1", "4000::1", "::ffff:0:127.0.0.1", "200::1"),
    *_literals("mapped into version 6", LOOPBACK, "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:127.0.0.1"),
    *_literals("mapped into version 6", METADATA, "::ffff:169.254.169.254", "::ffff:a9fe:a9fe"),
    *_literals("compatible, as it was once", "no address of the public network", "::127.0.0.1", "::10.0.0.1"),
    *_literals("through NAT64", LOOPBACK, "64:ff9b::127.0.0.1", "64:ff9b::7f00:1"),
    *_literals("through NAT64", METADATA, "64:ff9b::169.254.169.254"),
    *_literals("through a local NAT64", "a local NAT64", "64:ff9b:1::10.0.0.1", "64:ff9b:1:7f00:0:100::"),
    *_literals("through 6to4", LOOPBACK, "2002:7f00:1::", "2002:7f00:1::1"),
    *_literals("through 6to4", PRIVATE, "2002:a00:1::", "2002:c0a8:101::1"),
    *_literals("through Teredo, its server", LOOPBACK, "2001:0:7f00:1::f7f7:f7f7"),
    *_literals("through Teredo, its client", LOOPBACK, "2001:0:808:808:0:ffff:80ff:fffe"),
    *_literals("through ISATAP", PRIVATE, "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.0.1"),
    *_names("a name that says so", LOOPBACK, ("127.0.0.1",), ("::1",), ("::ffff:127.0.0.1",), ("64:ff9b::7f00:1",)),
    *_names("a name that says so", PRIVATE, ("10.1.2.3",), ("fd00::1",), ("2002:a00:1::1",)),
    *_names("a name that says so", METADATA, ("169.254.169.254",), ("fd00:ec2::254",)),
    *_names("good and bad answers", LOOPBACK, ("8.8.8.8", "127.0.0.1"), ("127.0.0.1", "8.8.8.8"), ("8.8.8.8", "::1")),
    *_names("good and bad answers", PRIVATE, ("2606:4700::1111", "8.8.8.8", "8.8.4.4", "10.0.0.1")),
    Row("a user before the host", "http://good.example@127.0.0.1:PORT/", USER),
    Row("a user with a password", "http://good.example:80@127.0.0.1:PORT/", USER),
    Row("an empty user", "http://@127.0.0.1:PORT/", USER),
    Row("two users", "http://a@b@127.0.0.1:PORT/", USER),
    Row("a backslash for an at", "http://127.0.0.1:PORT\\@good.example/", CHARACTER),
    Row("backslashes for slashes", "http:\\\\127.0.0.1:PORT\\", CHARACTER),
    Row("a fragment for a host", "http://good.example#@127.0.0.1:PORT/", FRAGMENT),
    Row("a host for a fragment", "http://127.0.0.1:PORT#@good.example/", FRAGMENT),
    Row("a question for a user", "http://127.0.0.1:PORT?@good.example/", LOOPBACK),
    Row("a percent-encoded user", "http://good.example%40127.0.0.1:PORT/", SHAPE),
    Row("a tab in the host", "http://127.0.0\t.1:PORT/", CHARACTER),
    Row("a tab in the scheme", "ht\ttp://127.0.0.1:PORT/", CHARACTER),
    Row("a line break and a header", "http://127.0.0.1:PORT/\r\nHost: good.example", CHARACTER),
    Row("a line break at the end", "http://127.0.0.1:PORT/\n", CHARACTER),
    Row("a space before", " http://127.0.0.1:PORT/", CHARACTER),
    Row("a space in the host", "http://good.example 127.0.0.1:PORT/", CHARACTER),
    Row("a zero byte", "http://127.0.0.1\0.good.example:PORT/", CHARACTER),
    Row("an invisible character", "http://local\u00adhost:PORT/", CHARACTER),
    Row("an invisible separator", "http://local\u200bhost:PORT/", CHARACTER),
    Row("no scheme", "//127.0.0.1:PORT/", SHAPE),
    Row("one slash", "http:/127.0.0.1:PORT/", SHAPE),
    Row("three slashes", "http:///127.0.0.1:PORT/", SHAPE),
    Row("no host", "http://:PORT/", SHAPE),
    Row("a scheme of its own", "file:///etc/passwd", SHAPE),
    Row("a scheme of its own", "gopher://127.0.0.1:PORT/_x", SHAPE),
    Row("a scheme of its own", "ftp://127.0.0.1:PORT/", SHAPE),
    Row("a scheme of its own", "unix:///var/run/docker.sock", SHAPE),
    Row("a scheme in a scheme", "http+unix://127.0.0.1:PORT/", SHAPE),
    Row("port 0", "http://127.0.0.1:0/", PORT),
    Row("a port too high", "http://127.0.0.1:65536/", PORT),
    Row("a port that wraps around", "http://127.0.0.1:4295007296/", SHAPE),
    Row("a negative port", "http://127.0.0.1:-1/", SHAPE),
    Row("two ports", "http://127.0.0.1:80:PORT/", SHAPE),
    Row("an empty label", "http://good..example:PORT/", NAME),
    Row("a label too long", "http://" + "a" * 64 + ".example:PORT/", NAME),
    Row("a name too long", "http://" + "a." * 127 + "example:PORT/", NAME),
    Row("a label that begins with a dash", "http://-good.example:PORT/", NAME),
    Row("an address of version 4 in brackets", "http://[127.0.0.1]:PORT/", NUMBER),
    Row("no closing bracket", "http://[::1:PORT/", SHAPE),
    Row("an address of version 6 without brackets", "http://::1:PORT/", SHAPE),
    Row("too long", TOO_LONG, "longer than 2048"),
]

HEADING = "| | attempt | URL | the name servers say | the reason says |\n|---|---|---|---|---|"


def printed() -> str:
    return "\n".join([HEADING, *(row.shown(number) for number, row in enumerate(ROWS, 1))])


if __name__ == "__main__":
    print(printed())
