import { availableParallelism } from "node:os";
import { z } from "zod";
import { type SettingProblem, withSuggestion } from "../../settings/values.ts";
import { isObject, isSameValue } from "../../domain/json-object.ts";
import { suggest } from "../../domain/suggest.ts";
import {
  sitesOf,
  type TargetContext,
  type UpstreamKind,
  type WrittenTarget,
} from "../../upstreams/kind.ts";
import { formatPath } from "./problem.ts";

/**
 * Problems of references and of names that must be unique. The tree is read leniently, so wrong
 * names are reported together with all other mistakes.
 */
export function referenceProblems(
  tree: unknown,
  kinds: readonly UpstreamKind[],
): readonly SettingProblem[] {
  const outline = { ...outlineSchema.parse(tree), kinds };
  return [
    ...targetProblems(outline),
    ...poolProblems(outline),
    ...fallbackProblems(outline),
    ...environmentProblems(outline),
    ...processProblems(outline),
    ...endUserProblems(outline),
  ];
}

const textOrNothing = z.string().optional().catch(undefined);
const texts = z.array(textOrNothing).catch([]);

const upstream = z.looseObject({ kind: textOrNothing }).catch({ kind: undefined });
const target = z
  .looseObject({ upstream: textOrNothing, model: textOrNothing, pool: textOrNothing })
  .catch({ upstream: undefined, model: undefined, pool: undefined });
const model = z.object({
  kind: textOrNothing,
  targets: z.array(target).catch([]),
  fallbacks: texts,
});
const environment = z.object({
  name: textOrNothing,
  hosts: texts,
  models: texts,
  aliases: z.record(z.string(), textOrNothing).catch({}),
});

const outlineSchema = z.object({
  upstreams: z.record(z.string(), upstream).optional().catch(undefined),
  models: z
    .record(z.string(), model.catch({ kind: undefined, targets: [], fallbacks: [] }))
    .optional()
    .catch(undefined),
  pools: z.record(z.string(), z.unknown()).catch({}),
  plans: z.record(z.string(), z.unknown()).catch({}),
  // Written without quotes, YAML's `off` may be a flag.
  end_users: z.unknown().optional(),
  processes: z
    .union([z.literal("auto"), z.int()])
    .optional()
    .catch(undefined),
  limits: z.object({ store: textOrNothing }).optional().catch(undefined),
  storage: z.object({ url: textOrNothing }).optional().catch(undefined),
  environments: z
    .array(environment.catch({ name: undefined, hosts: [], models: [], aliases: {} }))
    .catch([]),
});

interface Outline extends z.output<typeof outlineSchema> {
  readonly kinds: readonly UpstreamKind[];
}

/** What is in the memory of one process is unknown to the others. */
function processProblems({ processes, limits, storage }: Outline): readonly SettingProblem[] {
  const count = processes === "auto" ? availableParallelism() : (processes ?? 1);
  const { store = "memory" } = limits ?? {};
  if (count > 1 && storage?.url === "sqlite::memory:") {
    const message = `${count} processes need a database that all of them can open: name a file`;
    return [{ path: ["storage", "url"], message }];
  }
  if (count <= 1 || store !== "memory") return [];
  const message =
    `${count} processes need a server that counts for all of them: set limits.store to one, such ` +
    "as a Valkey on this machine (valkey://127.0.0.1:6379), or set processes to 1";
  return [{ path: ["processes"], message }];
}

function endUserProblems({ end_users, plans }: Outline): readonly SettingProblem[] {
  if (end_users !== "off") return [];
  const keys = ["each_end_user", "end_user_header"];
  return Object.entries(plans).flatMap(([name, plan]) =>
    keys
      .filter((key) => isObject(plan) && plan[key] !== undefined)
      .map((key) => ({
        path: ["plans", name, key],
        message: "needs end users, and end_users is off: set it to pseudonym, or remove this",
      })),
  );
}

type TargetOutline = z.output<typeof target>;

function targetProblems(outline: Outline): readonly SettingProblem[] {
  const { upstreams, models, pools } = outline;
  const problems: SettingProblem[] = [];
  for (const [alias, { kind, targets }] of Object.entries(models ?? {})) {
    const seen = new Map<string, number>();
    for (const [index, each] of targets.entries()) {
      const { upstream: name, pool } = each;
      const path = ["models", alias, "targets", index];
      if (pool !== undefined && !Object.hasOwn(pools, pool)) {
        problems.push(missing([...path, "pool"], pool, Object.keys(pools)));
      }
      if (name === undefined) continue;
      if (upstreams !== undefined && !Object.hasOwn(upstreams, name)) {
        problems.push(missing([...path, "upstream"], name, Object.keys(upstreams)));
      }
      problems.push(...kindProblems(each, { path, modelKind: kind }, outline));
      const ids = targetIds(each, outline);
      const earlier = ids.map((id) => seen.get(id)).find((found) => found !== undefined);
      for (const id of ids) if (!seen.has(id)) seen.set(id, index);
      if (earlier === undefined) continue;
      problems.push({ path, message: `repeats targets[${earlier}]: same upstream and model` });
    }
  }
  return problems;
}

/** Sections of a target for other kinds than its upstream's, and problems that the kind finds. */
function kindProblems(
  target: TargetOutline,
  { path, modelKind }: Pick<TargetContext, "path" | "modelKind">,
  outline: Outline,
): readonly SettingProblem[] {
  const { kind, written } = atKind(target, outline);
  if (kind === undefined || written === undefined) return [];
  const environments = outline.environments.flatMap(({ name }) => name ?? []);
  const others = outline.kinds.filter(
    (each) => each !== kind && each.targetSections !== undefined && target[each.name] !== undefined,
  );
  return [
    ...others.map(({ name }) => {
      const message = `is for targets at upstreams of kind ${name} only`;
      return { path: [...path, name], message };
    }),
    ...(kind.targetProblems?.(written, { path, modelKind, environments }) ?? []),
  ];
}

/** The ids of a target in all environments, one for each site of its upstream. */
function targetIds(target: TargetOutline, outline: Outline): readonly string[] {
  const { kind, written } = atKind(target, outline);
  if (written === undefined) return [];
  return sitesOf(kind, written).flatMap((site) =>
    [site.model, ...new Set(Object.values(site.modelFor))].map(
      (model) => `${site.upstream}/${model}`,
    ),
  );
}

/** The kind of a target's upstream and the target's section for it, as far as they are readable. */
function atKind(
  target: TargetOutline,
  { upstreams, kinds }: Outline,
): { readonly kind: UpstreamKind | undefined; readonly written: WrittenTarget | undefined } {
  const { upstream: name, model } = target;
  if (name === undefined || model === undefined) return { kind: undefined, written: undefined };
  const fields = upstreams?.[name];
  const kind = kinds.find((each) => each.name === fields?.kind);
  const section = kind && target[kind.name];
  return { kind, written: { model, upstream: { name, fields }, section } };
}

interface PooledTarget {
  readonly alias: string;
  readonly path: SettingProblem["path"];
  readonly pool: string | undefined;
  readonly price: unknown;
}

/** The same upstream and model is the same capacity, which two pools would sell twice. */
function poolProblems(outline: Outline): readonly SettingProblem[] {
  const { models = {} } = outline;
  const problems: SettingProblem[] = [];
  const first = new Map<string, PooledTarget>();
  for (const [alias, { targets }] of Object.entries(models)) {
    for (const [index, each] of targets.entries()) {
      const { pool, price } = each;
      const path = ["models", alias, "targets", index];
      const ids = targetIds(each, outline);
      const earlier = ids.map((id) => first.get(id)).find((found) => found !== undefined);
      for (const id of ids) if (!first.has(id)) first.set(id, { alias, path, pool, price });
      // Within one model it is a duplicate, which is reported as such.
      if (earlier === undefined || earlier.alias === alias) continue;
      if (!isSameValue(earlier.price, price)) {
        const same = `has the same upstream and model as ${formatPath(earlier.path)}`;
        problems.push({ path, message: `${same} and another price: let both have the same one` });
      }
      if (earlier.pool === pool) continue;
      const message =
        `has the same upstream and model as ${formatPath(earlier.path)}, which ` +
        `${earlier.pool === undefined ? "names no pool" : "names another pool"}: the same ` +
        "capacity would be sold twice; let both name the same pool";
      problems.push({ path: [...path, ...(pool === undefined ? [] : ["pool"])], message });
    }
  }
  return problems;
}

function fallbackProblems({ models = {} }: Outline): readonly SettingProblem[] {
  const problems: SettingProblem[] = [];
  const chatAliases = Object.keys(models).filter((alias) => models[alias]?.kind === "chat");
  for (const [alias, { fallbacks }] of Object.entries(models)) {
    for (const [index, fallback] of fallbacks.entries()) {
      const path = ["models", alias, "fallbacks", index];
      if (fallback === undefined) continue;
      if (fallback === alias) problems.push({ path, message: "is the model itself" });
      else if (fallbacks.indexOf(fallback) < index) {
        problems.push({ path, message: twice(fallback) });
      } else if (!Object.hasOwn(models, fallback)) {
        const others = chatAliases.filter((each) => each !== alias);
        problems.push(missing(path, fallback, others));
      } else if (models[fallback]?.kind === "embedding") {
        const message = `${named("the model", fallback)} is of kind embedding; use one of kind chat`;
        problems.push({ path, message });
      }
    }
  }
  return problems;
}

function environmentProblems({ environments, models }: Outline): readonly SettingProblem[] {
  const problems: SettingProblem[] = [];
  const names = new Map<string, number>();
  const hosts = new Map<string, number>();
  for (const [index, stage] of environments.entries()) {
    const path = ["environments", index];
    if (stage.name !== undefined) {
      const earlier = names.get(stage.name);
      if (earlier === undefined) names.set(stage.name, index);
      else problems.push({ path: [...path, "name"], message: taken("name", stage.name, earlier) });
    }
    for (const [position, written] of stage.hosts.entries()) {
      const host = written?.toLowerCase();
      const hostPath = [...path, "hosts", position];
      if (host === undefined) continue;
      const earlier = hosts.get(host);
      if (earlier === undefined) hosts.set(host, index);
      else problems.push({ path: hostPath, message: taken("host", host, earlier) });
    }
    problems.push(...offerProblems([...path, "models"], stage.models, models));
    problems.push(...otherNameProblems([...path, "aliases"], stage, models));
  }
  return problems;
}

function offerProblems(
  path: SettingProblem["path"],
  aliases: Outline["environments"][number]["models"],
  models: Outline["models"],
): readonly SettingProblem[] {
  const problems: SettingProblem[] = [];
  const seen = new Set<string>();
  for (const [index, alias] of aliases.entries()) {
    if (alias === undefined) continue;
    const itemPath = [...path, index];
    if (seen.has(alias)) problems.push({ path: itemPath, message: twice(alias) });
    seen.add(alias);
    if (alias === "*") {
      if (aliases.length === 1) continue;
      problems.push({ path: itemPath, message: "'*' means all models and must be the only item" });
    } else if (models !== undefined && !Object.hasOwn(models, alias)) {
      problems.push(missing(itemPath, alias, Object.keys(models)));
    }
  }
  return problems;
}

/** Other names lead to models of the same environment, and are not the name of one. */
function otherNameProblems(
  path: SettingProblem["path"],
  { aliases, models: offered }: Outline["environments"][number],
  models: Outline["models"],
): readonly SettingProblem[] {
  if (models === undefined) return [];
  const known = Object.keys(models).filter(
    (alias) => offered.includes("*") || offered.includes(alias),
  );
  return Object.entries(aliases).flatMap(([name, alias]) => {
    const namePath = [...path, name];
    if (known.includes(name)) {
      return { path: namePath, message: `${named("the name", name)} is that of a model` };
    }
    if (alias === undefined || known.includes(alias)) return [];
    const message = `${named("the model", alias)} is not offered by this environment`;
    return withSuggestion({ path: namePath, message }, suggest(alias, known));
  });
}

function taken(noun: "name" | "host", value: string, index: number): string {
  return `${named(`the ${noun}`, value)} is taken by environments[${index}]`;
}

function twice(alias: string): string {
  return `${named("the model", alias)} is in the list twice`;
}

/** Quotes a name; any other text may be a secret at the wrong place. */
function named(noun: string, name: string): string {
  return /^[a-z0-9*][a-z0-9.*_:-]{0,40}$/i.test(name) && !/^sk-|[a-z0-9]{24}/i.test(name)
    ? `${noun} '${name}'`
    : noun;
}

function missing(
  path: SettingProblem["path"],
  name: string,
  known: readonly string[],
): SettingProblem {
  const message = `${named(`the ${nounFor(path.at(-1))}`, name)} is not configured`;
  return withSuggestion({ path, message }, suggest(name, known));
}

function nounFor(field: string | number | undefined): string {
  return field === "upstream" || field === "pool" ? field : "model";
}
