// Buttons, fields and lone links that are lower than 24 pixels; links within texts and cells have lines around them.
() => {
  const targets = "button, .button, input:not([type=hidden]), select, summary, nav a, .quiet";
  const least = (one) => (one.type === "checkbox" ? 18 : 24);
  return [...document.querySelectorAll(targets)]
    .filter((one) => one.checkVisibility() && !one.closest("dialog, .away"))
    .filter((one) => one.getBoundingClientRect().height < least(one))
    .map((one) => one.outerHTML.slice(0, 80))
    .slice(0, 5);
}
