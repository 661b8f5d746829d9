// Words of charts that are drawn lower than 8 pixels, which nobody reads, or higher than 20: a drawing changes with the window, and its words with it.
() =>
  [...document.querySelectorAll("svg text")]
    .filter((one) => one.checkVisibility() && one.textContent.trim())
    .map((one) => [parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().d, one.textContent])
    .filter(([size]) => size < 8 || size > 20)
    .map(([size, words]) => `${words}: ${size.toFixed(1)}`)
    .slice(0, 5)
