/** The style of the reference page, for narrow and wide screens, light and dark. */
export const referenceStyle = `
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #f3f5f8; --text: #1c2430;
  --quiet: #59636f; --accent: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --line: #333c48; --soft: #1b222b; --text: #e3e8ee; --quiet: #9aa5b1; --accent: #7db7f5; }
  body { background: #12171d; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; color: var(--text);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { margin: 0 0 .4rem; font-size: 1rem; overflow-wrap: anywhere; }
h4 { margin: .6rem 0 .2rem; font-size: .9rem; }
p { margin: .3rem 0; }
a { color: var(--accent); }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: 6px; padding: .7rem; overflow-x: auto; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; padding: 0; }
article { border: 1px solid var(--line); border-radius: 8px; margin: .9rem 0; padding: .9rem; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 700; color: var(--accent); }
.who { color: var(--quiet); font-size: .9rem; }
details { margin-top: .4rem; }
summary { cursor: pointer; font-weight: 600; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem;
  border-bottom: 1px solid var(--line); }
`;
