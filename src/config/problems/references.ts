import { z } from "zod";
import { bedrockPlaceProblems, type PlacedFacts } from "../bedrock/bedrock-place-problems.ts";
import { placedNames, placesOf, targetIdsOf } from "../bedrock/bedrock-places.ts";
import { bedrockTargetProblems, type BedrockTarget } from "../bedrock/bedrock-target-problems.ts";
import { formatPath } from "./problem.ts";
import type { SchemaProblem } from "./schema-problems.ts";
import { suggest } from "./suggest.ts";

/**
 * What names what, and which names must be unique. It reads the tree leniently, so that a wrong
 * name is told together with every other mistake, not after they are mended.
 */
export function referenceProblems(tree: unknown): readonly SchemaProblem[] {
  const outline = outlineSchema.parse(tree);
  return [
    ...targetProblems(outline),
    ...poolProblems(outline),
    ...fallbackProblems(outline),
    ...environmentProblems(outline),
  ];
}

const textOrNothing = z.string().optional().catch(undefined);
const texts = z.array(textOrNothing).catch([]);

const listOrNothing = z.array(z.string()).optional().catch(undefined);

const upstream = z.object({
  kind: textOrNothing,
  region: textOrNothing,
  regions: listOrNothing,
});
const section = z.object({
  family: textOrNothing,
  identifiers: z.record(z.string(), z.string()).catch({}),
  profiles: z
    .record(
      z.string(),
      z.union([z.string(), z.array(z.string())]).transform((arns) => [arns].flat()),
    )
    .catch({}),
});
const target = z.object({
  upstream: textOrNothing,
  model: textOrNothing,
  pool: textOrNothing,
  bedrock: section.optional().catch({ family: undefined, identifiers: {}, profiles: {} }),
});
const model = z.object({
  kind: textOrNothing,
  targets: z.array(target.catch(target.parse({}))).catch([]),
  fallbacks: texts,
});
const environment = z.object({ name: textOrNothing, hosts: texts, models: texts });

const outlineSchema = z.object({
  upstreams: z
    .record(z.string(), upstream.catch({ kind: undefined, region: undefined, regions: undefined }))
    .optional()
    .catch(undefined),
  models: z
    .record(z.string(), model.catch({ kind: undefined, targets: [], fallbacks: [] }))
    .optional()
    .catch(undefined),
  pools: z.record(z.string(), z.unknown()).catch({}),
  environments: z.array(environment.catch({ name: undefined, hosts: [], models: [] })).catch([]),
});

type Outline = z.output<typeof outlineSchema>;

type TargetOutline = z.output<typeof target>;

function targetProblems(outline: Outline): readonly SchemaProblem[] {
  const { upstreams, models, pools, environments } = outline;
  const stages = environments.flatMap(({ name }) => name ?? []);
  const problems: SchemaProblem[] = [];
  for (const [alias, { kind, targets }] of Object.entries(models ?? {})) {
    const seen = new Map<string, number>();
    for (const [index, each] of targets.entries()) {
      const { upstream: name, model: identifier, pool, bedrock } = each;
      const path = ["models", alias, "targets", index];
      if (pool !== undefined && !Object.hasOwn(pools, pool)) {
        problems.push(missing([...path, "pool"], pool, Object.keys(pools)));
      }
      if (name === undefined) continue;
      if (upstreams !== undefined && !Object.hasOwn(upstreams, name)) {
        problems.push(missing([...path, "upstream"], name, Object.keys(upstreams)));
      }
      if (identifier === undefined) continue;
      const names = placedNames(name, upstreams?.[name] ?? {});
      const facts = { path, kind, model: identifier, section: bedrock };
      const placed = { upstreams: names, environments: stages };
      problems.push(...sectionProblems(upstreams?.[name]?.kind, { ...facts, ...placed }));
      const ids = targetIds(each, outline);
      const earlier = ids.map((id) => seen.get(id)).find((found) => found !== undefined);
      for (const id of ids) if (!seen.has(id)) seen.set(id, index);
      if (earlier === undefined) continue;
      problems.push({ path, message: `repeats targets[${earlier}]: same upstream and model` });
    }
  }
  return problems;
}

/** Under which a target is known, in all regions of its upstream and all environments. */
function targetIds(
  { upstream: name, model: identifier, bedrock }: TargetOutline,
  { upstreams }: Outline,
): readonly string[] {
  if (name === undefined || identifier === undefined) return [];
  const { identifiers = {}, profiles = {} } = bedrock ?? {};
  const names = placedNames(name, upstreams?.[name] ?? {});
  return targetIdsOf(placesOf({ model: identifier, identifiers, profiles }, names));
}

interface PooledTarget {
  readonly alias: string;
  readonly path: SchemaProblem["path"];
  readonly pool: string | undefined;
}

/** The same upstream and model is the same capacity: of two pools, both would sell it. */
function poolProblems(outline: Outline): readonly SchemaProblem[] {
  const { models = {} } = outline;
  const problems: SchemaProblem[] = [];
  const first = new Map<string, PooledTarget>();
  for (const [alias, { targets }] of Object.entries(models)) {
    for (const [index, each] of targets.entries()) {
      const { pool } = each;
      const path = ["models", alias, "targets", index];
      const ids = targetIds(each, outline);
      const earlier = ids.map((id) => first.get(id)).find((found) => found !== undefined);
      for (const id of ids) if (!first.has(id)) first.set(id, { alias, path, pool });
      // Within one model it is a repetition, which is told as such.
      if (earlier === undefined || earlier.alias === alias || earlier.pool === pool) continue;
      const message =
        `has the same upstream and model as ${formatPath(earlier.path)}, which ` +
        `${earlier.pool === undefined ? "names no pool" : "names another pool"}: the same ` +
        "capacity would be sold twice; let both name the same pool";
      problems.push({ path: [...path, ...(pool === undefined ? [] : ["pool"])], message });
    }
  }
  return problems;
}

function fallbackProblems({ models = {} }: Outline): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const chatAliases = Object.keys(models).filter((alias) => models[alias]?.kind === "chat");
  for (const [alias, { fallbacks }] of Object.entries(models)) {
    for (const [index, fallback] of fallbacks.entries()) {
      const path = ["models", alias, "fallbacks", index];
      if (fallback === undefined) continue;
      if (fallback === alias) problems.push({ path, message: "is the model itself" });
      else if (fallbacks.indexOf(fallback) < index) {
        problems.push({ path, message: "stands twice in the list" });
      } else if (!chatAliases.includes(fallback)) {
        problems.push(missing(path, fallback, chatAliases));
      }
    }
  }
  return problems;
}

interface TargetFacts
  extends Omit<BedrockTarget, "family">, Pick<PlacedFacts, "upstreams" | "environments"> {
  /** What the target says to an upstream of kind `bedrock`. */
  readonly section: z.output<typeof section> | undefined;
}

/** Whether a target's section is for its upstream's kind, and says what that needs. */
function sectionProblems(
  upstreamKind: string | undefined,
  { section: written, ...target }: TargetFacts,
): readonly SchemaProblem[] {
  switch (upstreamKind) {
    case "bedrock": {
      const { family, identifiers = {}, profiles = {} } = written ?? {};
      return [
        ...bedrockTargetProblems({ ...target, family }),
        ...bedrockPlaceProblems({ ...target, identifiers, profiles }),
      ];
    }
    case "openai": {
      const message = "is for targets at upstreams of kind bedrock only";
      return written === undefined ? [] : [{ path: [...target.path, "bedrock"], message }];
    }
    default:
      return [];
  }
}

function environmentProblems({ environments, models }: Outline): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const names = new Map<string, number>();
  const hosts = new Map<string, number>();
  for (const [index, stage] of environments.entries()) {
    const path = ["environments", index];
    if (stage.name !== undefined) {
      const earlier = names.get(stage.name);
      if (earlier === undefined) names.set(stage.name, index);
      else problems.push({ path: [...path, "name"], message: usedBy("is the name of", earlier) });
    }
    for (const [position, written] of stage.hosts.entries()) {
      const host = written?.toLowerCase();
      const hostPath = [...path, "hosts", position];
      if (host === undefined) continue;
      const earlier = hosts.get(host);
      if (earlier === undefined) hosts.set(host, index);
      else problems.push({ path: hostPath, message: usedBy("belongs to", earlier) });
    }
    problems.push(...offerProblems([...path, "models"], stage.models, models));
  }
  return problems;
}

function offerProblems(
  path: SchemaProblem["path"],
  aliases: Outline["environments"][number]["models"],
  models: Outline["models"],
): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const seen = new Set<string>();
  for (const [index, alias] of aliases.entries()) {
    if (alias === undefined) continue;
    const itemPath = [...path, index];
    if (seen.has(alias)) problems.push({ path: itemPath, message: "stands twice in the list" });
    seen.add(alias);
    if (alias === "*") {
      if (aliases.length === 1) continue;
      problems.push({ path: itemPath, message: "'*' is all models and stands alone" });
    } else if (models !== undefined && !Object.hasOwn(models, alias)) {
      problems.push(missing(itemPath, alias, Object.keys(models)));
    }
  }
  return problems;
}

function usedBy(relation: string, index: number): string {
  return `${relation} environments[${index}] already`;
}

function missing(
  path: SchemaProblem["path"],
  name: string,
  known: readonly string[],
): SchemaProblem {
  const suggestion = suggest(name, known);
  const message = `names ${nounFor(path.at(-1))} that is not configured`;
  return suggestion === undefined ? { path, message } : { path, message, suggestion };
}

function nounFor(field: string | number | undefined): string {
  if (field === "upstream") return "an upstream";
  return field === "pool" ? "a pool" : "a model";
}
