/**
 * Checks who imports whom, and the folder rules that a linter does not know. The rules are those of
 * `CONTRIBUTING.md`. Prints one line for each breach.
 */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

interface Rule {
  /** The part of a path that names the folder or file the rule is about. */
  readonly from: RegExp;
  /** What it may import, beside files of its own folder. */
  readonly may: readonly RegExp[];
  /** What it may import as types only. */
  readonly mayAsTypes?: readonly RegExp[];
  /** Files of its own folder are not its own: each is on its own rule. */
  readonly isAlone?: boolean;
}

const domain = /^src\/domain\//;
/** The interfaces of storage; its folders are backends. */
const store = /^src\/storage\/[\w-]+\.ts$/;
const storageErrors = /^src\/storage\/errors\.ts$/;
const adapter = /^src\/upstreams\/adapter\.ts$/;
const schemas = /^src\/api\/schemas\//;

/** The first rule that fits a file holds for it. */
const rules: readonly Rule[] = [
  { from: /^src\/domain\//, may: [] },
  { from: /^src\/limits\//, may: [domain] },
  { from: /^src\/telemetry\//, may: [domain] },
  {
    from: /^src\/config\//,
    may: [domain, /^src\/upstreams\/\w+\/(model-families|settings|(?:facts|regions)\/[\w-]+)\.ts$/],
  },
  {
    from: /^src\/ledger\//,
    may: [domain, storageErrors],
    mayAsTypes: [store, /^src\/pipeline\/ledger\.ts$/],
  },
  { from: /^src\/storage\/[\w-]+\.ts$/, may: [domain, store] },
  { from: /^src\/storage\/contract\//, may: [domain, store, /^test\/support\//] },
  { from: /^src\/storage\/\w+\//, may: [domain, store, /^src\/limits\//] },
  { from: /^src\/upstreams\/adapter\.ts$/, may: [domain], isAlone: true },
  {
    from: /^src\/upstreams\/registry\.ts$/,
    may: [domain, adapter, /^src\/upstreams\/\w+\/(adapter|settings)\.ts$/],
  },
  { from: /^src\/upstreams\/\w+\//, may: [domain, adapter, /^src\/upstreams\/shared\//] },
  { from: /^src\/pipeline\//, may: [domain, /^src\/limits\//], mayAsTypes: [store, adapter] },
  { from: /^src\/http\//, may: [domain, /^src\/pipeline\/snapshot\.ts$/] },
  { from: schemas, may: [domain] },
  { from: /^src\/api\//, may: [domain, schemas, /^src\/(http|pipeline|limits)\//] },
  {
    from: /^src\/admin\//,
    may: [domain, storageErrors, /^src\/http\//],
    mayAsTypes: [store, /^src\/(pipeline|config)\//],
  },
  { from: /^src\/installation\//, may: [domain, store] },
  { from: /^src\/simulator\//, may: [domain] },
  {
    from: /^src\/(app|app-overrides|build-snapshot|build-services|build-routing|report-keys|open-storage|control-plane|restore-windows|start-listener|routes|main)\.ts$/,
    may: [/^src\//, /^package\.json$/],
  },
  { from: /^src\/cli\//, may: [/^src\/(?!http|api|upstreams)/] },
];

/** Imports of packages are allowed where the reason for the package lies. */
const packages: readonly { readonly name: string; readonly in: RegExp }[] = [
  { name: "zod", in: /^src\/(config|admin)\// },
  { name: "openid-client", in: /^src\/admin\/sign-in\// },
  { name: "yaml", in: /^src\/config\// },
  {
    name: "@aws-sdk/credential-providers",
    in: /^src\/upstreams\/bedrock\/credentials\/[\w-]+\.ts$/,
  },
  { name: "gpt-tokenizer", in: /^src\/api\/decode-tokens-thread\.ts$/ },
];

const breaches = [...new Bun.Glob("src/**/*.ts").scanSync(".")]
  .filter((path) => !path.endsWith(".test.ts"))
  .flatMap(checkFile)
  .toSorted();
for (const breach of breaches) console.log(breach);
process.exitCode = breaches.length === 0 ? 0 : 1;

function checkFile(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const rule = rules.find(({ from }) => from.test(path));
  if (rule === undefined) return [`${path}: lies in no folder of the layout`];
  return [...checkImports(path, text, rule), ...checkText(path, text)];
}

function checkImports(path: string, text: string, rule: Rule): string[] {
  const found: string[] = [];
  const pattern =
    /^(?:import|export)\s+(type\s)?(?:[^;"]*?from\s+)?"([^"]+)"|import\("([^"]+)"\)/gm;
  for (const [, typeOnly, fromSource, dynamicSource] of text.matchAll(pattern)) {
    const source = fromSource ?? dynamicSource ?? "";
    if (!source.startsWith(".")) {
      found.push(...checkPackage(path, source));
      continue;
    }
    const target = normalize(join(dirname(path), source));
    if (!isAllowed({ path, target, rule, isType: typeOnly !== undefined })) {
      found.push(`${path}: must not import ${target}`);
    }
  }
  return found;
}

interface ImportEdge {
  readonly path: string;
  readonly target: string;
  readonly rule: Rule;
  readonly isType: boolean;
}

function isAllowed({ path, target, rule, isType }: ImportEdge): boolean {
  const own = rule.from.exec(path)?.[0];
  if (own !== undefined && rule.isAlone !== true && target.startsWith(own)) return true;
  if (rule.may.some((allowed) => allowed.test(target))) return true;
  return isType && (rule.mayAsTypes ?? []).some((allowed) => allowed.test(target));
}

function checkPackage(path: string, source: string): string[] {
  if (source.startsWith("node:") || source.startsWith("bun:") || source === "bun") return [];
  const name = source.split("/", source.startsWith("@") ? 2 : 1).join("/");
  const known = packages.find((entry) => entry.name === name);
  if (known !== undefined && known.in.test(path)) return [];
  return [`${path}: must not import the package ${name}`];
}

/** Things that belong to one place only. */
function checkText(path: string, text: string): string[] {
  const found: string[] = [];
  const only = (pattern: RegExp, allowed: RegExp, what: string): void => {
    if (pattern.test(text) && !allowed.test(path)) found.push(`${path}: ${what}`);
  };
  only(
    /\bprocess\.env\b/,
    /^src\/config\/environment\.ts$/,
    "only config/environment reads process.env",
  );
  only(/\bBun\.serve\(/, /^src\/(http\/listen|simulator\/.*)\.ts$/, "only http/listen serves");
  only(/\bprocess\.exit\(/, /^src\/main\.ts$/, "only main may end the process");
  only(
    /\bkind === "(?:openai|bedrock)"/,
    /^src\/upstreams\//,
    "facts about a kind belong to its folder",
  );
  if (/(^|\/)(utils|helpers|common|misc)(\/|\.ts$)/.test(path)) {
    found.push(`${path}: the name says nothing`);
  }
  return found;
}
