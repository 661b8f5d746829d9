// Texts whose contrast with what lies behind them is below 4.5.
() => {
  const parse = (text) => {
    const c = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    c.fillStyle = text;
    c.fillRect(0, 0, 1, 1);
    return [...c.getImageData(0, 0, 1, 1).data];
  };
  const channel = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const over = (top, below) => {
    const a = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(255);
  };
  const behind = (one) => {
    const found = [];
    for (let at = one; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      found.push(colour);
      if (colour[3] === 255) break;
    }
    return found.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 255]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const wrong = [], seen = new Set();
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    const shown = walker.currentNode.data.trim() && one.checkVisibility() && !one.closest("svg, .away, .skip, dialog");
    if (!shown || seen.has(one)) continue;
    seen.add(one);
    const back = behind(one), text = over(parse(getComputedStyle(one).color), back);
    const [high, low] = [light(text), light(back)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) wrong.push([one.className, one.textContent.slice(0, 40), contrast]);
  }
  return wrong.slice(0, 5);
}
