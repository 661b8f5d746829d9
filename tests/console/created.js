// What is on this page, or on pages given as {origin, texts}, that none of our templates writes: elements, attributes,
// addresses, scripts that ran.
(given) => {
  const tags = new Set(("a b bdi body br button caption circle code datalist dd defs del details dialog div dl dt figure footer form g h1 h2 h3 " +
    "head header html i input ins kbd label li line link main meta nav ol option output p path pattern polygon polyline pre rect script section select " +
    "span strong style summary svg table tbody td text textarea th thead time title tr ul").split(" "));
  const attributes = new Set(("action autocapitalize autocomplete autofocus charset checked class colspan content cx cy d data-age data-all data-as-of " +
    "data-go data-key data-live data-ms data-name data-root data-still data-theme data-told datetime defer fill for form formaction height hidden " +
    "href id inputmode lang list maxlength method name open pattern patternTransform patternUnits placeholder points preserveAspectRatio r rel " +
    "required role rows rx scope selected size spellcheck src stroke tabindex text-anchor title transform type value viewBox width " +
    "x x1 x2 xmlns y y1 y2").split(" "));
  const found = [];
  if (window.ran) found.push("a script ran");
  const origin = given ? given.origin : location.origin, parser = new DOMParser();
  const all = given ? given.texts.map((text) => parser.parseFromString(text, "text/html")) : [document];
  for (const one of all.flatMap((page) => [...page.querySelectorAll("*")])) {
    const tag = one.localName, say = () => one.outerHTML.slice(0, 160);
    if (!tags.has(tag)) found.push(`element ${tag}: ${say()}`);
    for (const { name, value } of one.attributes) {
      if (!attributes.has(name) && !/^aria-(?:current|hidden|label|labelledby|live|pressed|sort|valuemax|valuemin|valuenow)$/.test(name)) found.push(`attribute ${name}: ${say()}`);
      if (["href", "src", "action", "formaction"].includes(name)) {
        const to = new URL(value, `${origin}/`);
        const outside = to.origin !== origin && !(one.rel === "noreferrer noopener" && to.origin === "https://traces.example");
        if (outside) found.push(`address ${value}: ${say()}`);
      }
      if (name === "id" && !/^[a-z0-9_-]+$/.test(value)) found.push(`id ${value}`);
      if (name === "class" && !/^[a-z0-9 _-]*$/.test(value)) found.push(`class ${value}: ${say()}`);
    }
    if (tag === "script" && !one.getAttribute("src")) found.push(`inline script: ${say()}`);
    if (tag === "meta" && one.httpEquiv) found.push(`meta ${say()}`);
  }
  return found.slice(0, 5);
}
