"""How the page looks: one sheet, for light and for dark, nothing loaded from anywhere."""

STYLE = """
:root{color-scheme:light dark;--paper:#f6f5f1;--card:#fffefb;--ink:#23272e;--soft:#6b7078;--line:#e4e1d8;
--good:#2c8c74;--bad:#d0484f;--mute:#b9b4a6;--warm:#c26a2d;--blue:#3a5fb0;--band:#3a5fb0;--goal:#a2781a}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1b1f25;--ink:#e6e4de;--soft:#969ca5;--line:#2b3038;
--good:#43b394;--bad:#ec6b6f;--mute:#5c6068;--warm:#e58f4c;--blue:#86a8f0;--band:#6f93e6;--goal:#d8ae4d}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:40px 24px 56px}
header{display:flex;flex-wrap:wrap;align-items:flex-end;justify-content:space-between;gap:8px 32px;margin-bottom:26px}
h1{font-size:30px;line-height:1.15;margin:0;letter-spacing:-.02em;font-weight:650}
header p{margin:0;color:var(--soft);text-align:right}header b{color:var(--ink);font-weight:600}
h2{font-size:17px;margin:0 0 2px;letter-spacing:-.01em;font-weight:620}
.why{color:var(--soft);margin:0 0 14px;font-size:13.5px}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:20px 22px;margin:16px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(142px,1fr));gap:12px}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:14px 15px 12px}
.card span{display:block;color:var(--soft);font-size:13px}.card strong{display:block;font-size:25px;line-height:1.25;
letter-spacing:-.02em;font-weight:640;white-space:nowrap}
.card em{font-style:normal;color:var(--soft);font-size:12.5px}
.card.good strong{color:var(--good)}.card.bad strong{color:var(--bad)}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:16px;margin:16px 0}.pair section{margin:0}
.card em{display:block}.card em.was{opacity:.85}
svg.chart{display:block;width:100%;height:auto;overflow:visible}svg.sparkline{width:150px;height:33px;display:block}
svg text{font-size:11.5px;fill:var(--soft)}svg .label{fill:var(--ink);font-size:13px}
svg .value{fill:var(--ink);font-size:13px}svg .spike{fill:var(--ink);font-weight:600}
.stem{stroke:var(--band);stroke-width:1.4;stroke-opacity:.5}.p50dot{fill:var(--blue)}.sparkdot{fill:var(--good)}
.on-narrow{display:none}.words{border-left:5px solid var(--bad)}.words.well{border-left-color:var(--good)}
.words ul{margin:6px 0 0;padding:0;list-style:none}.words li{margin:9px 0;overflow-wrap:anywhere}
.words p{margin:4px 0 0}.words code,td code.cmd{display:block;margin-top:4px;padding:5px 9px;border-radius:7px;
background:var(--paper);border:1px solid var(--line);overflow-wrap:anywhere;white-space:pre-wrap;
font:12.5px/1.45 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.grid{stroke:var(--line);stroke-width:1}.good{fill:var(--good)}.bad{fill:var(--bad)}.mute{fill:var(--mute)}
.warm{fill:var(--warm)}.slow{fill:var(--blue)}.empty{fill:var(--line);fill-opacity:.45}.rail{fill:var(--line)}
.ring{fill:var(--card);stroke:var(--bad);stroke-width:2}
.band99{fill:var(--band);fill-opacity:.16}.band90{fill:var(--band);fill-opacity:.34}
.p50{fill:none;stroke:var(--blue);stroke-width:2.2;stroke-linejoin:round}
.p99{fill:none;stroke:var(--band);stroke-width:1;stroke-opacity:.6;stroke-linejoin:round}
.goal{stroke:var(--goal);stroke-width:1.3;stroke-dasharray:5 4}svg .goalword{fill:var(--goal);font-weight:600}
.touch{fill:transparent}.touch:hover{fill:var(--ink);fill-opacity:.06}
.spark{fill:none;stroke:var(--good);stroke-width:1.4;stroke-linejoin:round}
.sparkfill{fill:var(--good);fill-opacity:.16}
.sparkbad{stroke:var(--bad);stroke-width:1.6}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}
th{color:var(--soft);font-weight:500;text-align:right;padding:6px 7px;border-bottom:1px solid var(--line);
white-space:nowrap}
td{padding:7px 7px;border-bottom:1px solid var(--line);text-align:right;vertical-align:middle;white-space:nowrap}
tr:last-child td{border-bottom:0}th.left,td.left{text-align:left}
td.name{font-weight:560;white-space:normal;overflow-wrap:anywhere;min-width:130px}
td .meter{display:inline-block;vertical-align:middle;width:48px;height:6px;border-radius:3px;background:var(--line);
margin-left:6px;overflow:hidden}
td .meter i{display:block;height:100%;background:var(--good)}td .meter.low i{background:var(--bad)}
td.cause{white-space:normal;text-align:left;min-width:300px}
td.cause code{font:12.5px/1.45 ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
td.cause small{display:block;color:var(--soft);font:11.5px/1.4 ui-monospace,Menlo,Consolas,monospace;
overflow-wrap:anywhere;margin-top:2px}
.tag{display:inline-block;border:1px solid var(--line);border-radius:5px;padding:0 6px;font-size:11px;
color:var(--soft);margin-right:6px}
.tag.final{color:var(--bad);border-color:var(--bad)}.none{color:var(--soft);margin:6px 0}
.key{color:var(--soft);font-size:12.5px;margin:8px 0 0}
.key i{display:inline-block;width:10px;height:10px;border-radius:3px;margin:0 5px 0 14px}
.key i:first-child{margin-left:0}footer{color:var(--soft);font-size:13px;margin-top:26px;max-width:78ch}
@media (max-width:820px){.pair{grid-template-columns:1fr}main{padding:24px 14px}header p{text-align:left}}
@media (max-width:640px){main{padding:18px 10px}section{padding:15px 13px}h1{font-size:25px}
.on-wide{display:none}.on-narrow{display:block}svg.chart text{font-size:12.5px}.pair svg.chart text{font-size:18px}
.pair svg .label,.pair svg .value{font-size:18px}.cards{grid-template-columns:1fr 1fr}.card strong{font-size:21px}
table,tbody,tr,td{display:block;width:100%}thead{display:none}td,td.left,td.cause{text-align:left;white-space:normal;
border:0;padding:3px 0;min-width:0}tr{border-bottom:1px solid var(--line);padding:9px 0}tr:last-child{border-bottom:0}
td[data-label]{display:flex;justify-content:space-between;gap:14px;text-align:right}
td[data-label]::before{content:attr(data-label);color:var(--soft);text-align:left}}
@media print{body{background:#fff}section,.card{break-inside:avoid}}
"""
