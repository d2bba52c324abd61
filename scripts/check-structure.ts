/**
 * Checks the structure of `src/`, `simulator/` and `console/`: who imports whom, that neither files nor rooms
 * import each other in circles, how deep folders lie. Prints one line for each breach.
 */
import { readFileSync } from "node:fs";
import { findCircles } from "./structure/find-circles.ts";
import { importsOf, type Import } from "./structure/imports-of.ts";
import { onlyHere, packages, rules, type Rule } from "./structure/rules.ts";

/** Folders below `src/`, one in the other. */
const mostFolders = 4;

const paths = [...new Bun.Glob("{src,simulator,console}/**/*.{ts,tsx}").scanSync(".")]
  .filter((path) => !/\.(?:test|d)\.ts$/.test(path))
  .toSorted();
const sources = paths.map((path) => ({ path, text: readFileSync(path, "utf8") }));
const imports = sources.flatMap(({ path, text }) => importsOf(path, text));

const breaches = [
  ...sources.flatMap(checkFile),
  ...imports.flatMap(checkImport),
  ...circlesBetween("files", (path) => path),
  ...circlesBetween("rooms", roomOf),
];
for (const breach of breaches) console.log(breach);
process.exitCode = breaches.length === 0 ? 0 : 1;

function checkFile({ path, text }: { readonly path: string; readonly text: string }): string[] {
  const found = onlyHere
    .filter((rule) => rule.pattern.test(text) && !rule.in.test(path))
    .map(({ rule }) => `${path}: ${rule}`);
  if (ruleOf(path) === undefined) found.push(`${path}: lies in no room of the layout`);
  if (path.split("/").length - 2 > mostFolders) {
    found.push(`${path}: lies deeper than ${mostFolders} folders below src`);
  }
  if (/(^|\/)(utils|helpers|common|misc)(\/|\.ts$)/.test(path)) {
    found.push(`${path}: the name says nothing`);
  }
  return found;
}

function ruleOf(path: string): Rule | undefined {
  return rules.find(({ from }) => from.test(path));
}

function checkImport(found: Import): string[] {
  if (found.isModule) return checkPackage(found);
  const rule = ruleOf(found.path);
  if (rule === undefined || isAllowed(found, rule)) return [];
  return [`${found.path}: must not import ${found.target}`];
}

function isAllowed({ path, target, isType }: Import, rule: Rule): boolean {
  const own = rule.from.exec(path)?.[0];
  if (own !== undefined && rule.isAlone !== true && target.startsWith(own)) return true;
  if (rule.may.some((allowed) => allowed.test(target))) return true;
  return isType && (rule.mayAsTypes ?? []).some((allowed) => allowed.test(target));
}

function checkPackage({ path, target }: Import): string[] {
  if (target.startsWith("node:") || target.startsWith("bun:") || target === "bun") return [];
  const name = target.split("/", target.startsWith("@") ? 2 : 1).join("/");
  const known = packages.find((entry) => entry.name === name);
  if (known !== undefined && known.in.test(path)) return [];
  return [`${path}: must not import the package ${name}`];
}

/** Types count as well: files that import each other are one unit in different folders. */
function circlesBetween(what: string, nodeOf: (path: string) => string): string[] {
  const edges = new Map<string, Set<string>>();
  for (const { path, target, isModule } of imports) {
    const [from, to] = [nodeOf(path), nodeOf(target)];
    if (isModule || from === to) continue;
    const next = edges.get(from) ?? new Set();
    edges.set(from, next.add(to));
  }
  return findCircles(edges).map((circle) => `${what} import each other: ${circle.join(", ")}`);
}

/** The first folder below `src/`, or the package; a file beside these is a room of its own. */
function roomOf(path: string): string {
  return /^(?:src\/[^/]+|simulator|console)/.exec(path)?.[0] ?? path;
}
