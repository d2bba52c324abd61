import { isObject, isSameValue, type JsonObject } from "../../domain/json-object.ts";
import { Entry } from "./entry.ts";
import { chainOf, type Fallbacks, readFallbacks } from "./fallbacks.ts";
import { Notes } from "./notes.ts";
import { type Rank, rankTargets, togetherOf } from "./rank-targets.ts";
import { type Deployment, type ModelKind, readDeployment } from "./read-deployment.ts";
import { adviceOn } from "./settings.ts";

export interface Converted {
  readonly file: JsonObject;
  /** Sentences about what was not converted, or should be checked. */
  readonly notes: readonly string[];
  readonly hasModels: boolean;
}

interface ConvertedModel {
  /** The name in Sluice's file. */
  readonly alias: string;
  readonly kind: ModelKind;
  readonly deployments: Pick<Deployment, "target" | "preference" | "window" | "output">[];
}

const guessedWindow = { chat: 128_000, embedding: 8_192 } as const;
const mostFallbacks = 8;
const firstCounts = "Of deployments of one target, the first that says a price or options counts";
/** What an environment takes as an other name of a model. */
const otherName = /^[^*\s]{1,128}\*?$/;

/** Converts a parsed configuration of LiteLLM's proxy. Names each setting that has no counterpart. */
export function convertLiteLlm(tree: JsonObject): Converted {
  return new Conversion(new Entry(tree)).convert(JSON.stringify(tree));
}

class Conversion {
  readonly #file: Entry;
  readonly #settings: Entry;
  readonly #router: Entry;
  readonly #upstreams = new Map<string, JsonObject>();
  /** By LiteLLM's name. */
  readonly #models = new Map<string, ConvertedModel>();
  /** Aliases of models, by other names for them. */
  readonly #otherNames = new Map<string, string>();
  /** Why a name of LiteLLM's file has no model. */
  readonly #leftOut = new Map<string, string>();
  /** Of the targets so far, by `idOf`. */
  readonly #prices = new Map<string, JsonObject | undefined>();
  readonly #notes = new Notes();

  constructor(file: Entry) {
    this.#file = file;
    this.#settings = file.map("litellm_settings");
    this.#router = file.map("router_settings");
  }

  convert(text: string): Converted {
    const credentials = this.#readCredentials();
    for (const [index, value] of this.#file.list("model_list").entries()) {
      this.#addDeployment(new Entry(value), `model_list[${index}]`, credentials);
    }
    this.#readOtherNames();
    const fallbacks = {
      usual: this.#readFallbacks("fallbacks"),
      forLong: this.#readFallbacks("context_window_fallbacks"),
    };
    const models = [...this.#models].map(([name, model]) => {
      const following = this.#following(name, model, fallbacks);
      return [model.alias, this.#writeModel(model, following)] as const;
    });
    const usualRetries = this.#settings.number("num_retries");
    const retries = this.#router.number("num_retries") ?? usualRetries;
    const attempts = Math.min(10, Math.max(0, Math.round(retries ?? 0)) + 1);
    if (/\$\{[A-Za-z_]\w*\}/.test(text)) {
      this.#notes.add(
        "${NAME} is taken for a variable, though LiteLLM itself reads none in this form",
      );
    }
    this.#noteUnread(this.#settings, "litellm_settings.");
    this.#noteUnread(this.#router, "router_settings.");
    this.#noteUnread(this.#file.map("general_settings"), "general_settings.");
    this.#noteUnread(this.#file);
    const aliases = Object.fromEntries(this.#otherNames);
    const names = this.#otherNames.size > 0 && { aliases };
    const file = {
      ...(retries !== undefined && { routing: { attempts } }),
      environments: [{ name: "production", hosts: ["*"], models: ["*"], ...names }],
      upstreams: Object.fromEntries(this.#upstreams),
      models: Object.fromEntries(models),
    };
    const notes = this.#notes.sentences();
    const more = "docs/coming-from.md says what Sluice has instead.";
    return { file, notes: notes.length > 0 ? [...notes, more] : [], hasModels: models.length > 0 };
  }

  /** Credentials that deployments name. */
  #readCredentials(): ReadonlyMap<unknown, JsonObject> {
    return new Map(
      this.#file.list("credential_list").map((value) => {
        const credential = new Entry(value);
        const values = credential.value("credential_values");
        return [credential.value("credential_name"), isObject(values) ? values : {}];
      }),
    );
  }

  #addDeployment(entry: Entry, place: string, credentials: ReadonlyMap<unknown, JsonObject>): void {
    const name = entry.text("model_name") ?? "";
    const written = entry.value("litellm_params");
    const own = isObject(written) ? written : {};
    const shared = credentials.get(own["litellm_credential_name"]);
    const params = new Entry({ ...shared, ...own });
    if (shared !== undefined) params.value("litellm_credential_name");
    const info = entry.map("model_info");
    const told: (readonly [sentence: string, about: string])[] = [];
    const tell = (sentence: string, about = ""): void => void told.push([sentence, about]);
    const sections = { settings: this.#settings, router: this.#router };
    const deployment = this.#mayServe(name, readDeployment({ params, info, tell, ...sections }));
    if (typeof deployment === "string") {
      this.#notes.add(`Left out, ${deployment}`, `${place} (${name || "without a name"})`);
      this.#leftOut.set(name, deployment);
      return;
    }
    const model = this.#modelOf(name, deployment.kind);
    for (const [sentence, about] of told) {
      this.#notes.add(sentence, about === "all" ? undefined : `${model.alias} ${about}`.trim());
    }
    const upstream = this.#upstreamOf(deployment);
    const target = { upstream, ...deployment.target };
    model.deployments.push({ ...deployment, target });
    this.#keepPrice(target, deployment, model);
    for (const key of ["id", "db_model"]) info.value(key);
    this.#noteUnread(params, "litellm_params.", model.alias);
    this.#noteUnread(info, "model_info.", model.alias);
    this.#noteUnread(entry, "model_list.", model.alias);
  }

  /** A target has one price in all models. */
  #keepPrice(target: JsonObject, { price }: Deployment, { alias }: ConvertedModel): void {
    const id = idOf(target);
    const known = this.#prices.get(id);
    const isOther = this.#prices.has(id) && !isSameValue(known, price);
    if (isOther) this.#notes.add(firstCounts, alias);
    this.#prices.set(id, known ?? price);
  }

  /** The deployment, or why no name leads to it. */
  #mayServe(name: string, deployment: Deployment | string): Deployment | string {
    if (typeof deployment === "string") return deployment;
    if (name === "") return "it has no model_name";
    if (/^\*$|\*./.test(name)) return "a wildcard; name each model that callers use";
    const before = this.#models.get(name)?.kind ?? deployment.kind;
    if (before === deployment.kind) return deployment;
    return `${name} has deployments of kind ${before} before`;
  }

  #modelOf(name: string, kind: ModelKind): ConvertedModel {
    const known = this.#models.get(name);
    if (known !== undefined) return known;
    const model = { alias: this.#aliasOf(name), kind, deployments: [] };
    const { alias } = model;
    this.#models.set(name, model);
    if (alias === name) return model;
    if (otherName.test(name)) {
      this.#otherNames.set(name, alias);
      this.#notes.add(`${name} is an other name of ${alias}, so callers may go on to use it`);
    } else this.#notes.add(`${name} is ${alias} here, so callers must change the name`);
    return model;
  }

  /** The name itself, or the nearest one that Sluice takes and nothing else in the file has. */
  #aliasOf(name: string): string {
    const allowed = name.replaceAll(/[^A-Za-z0-9._:/-]+/g, "-").slice(0, 120);
    const base = allowed.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "") || "model";
    const list = this.#file.list("model_list").map((value) => new Entry(value).text("model_name"));
    const others = list.filter((each) => each !== undefined && each !== name);
    const aliases = [...this.#models.values()].map(({ alias }) => alias);
    return firstFree(base, new Set<unknown>([...others, ...aliases]));
  }

  #upstreamOf({ place, upstream, isAlone }: Deployment): string {
    if (!isAlone) {
      for (const [name, known] of this.#upstreams) if (isSameValue(known, upstream)) return name;
    }
    const base = place
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "");
    const name = firstFree(base || "server", new Set(this.#upstreams.keys()));
    this.#upstreams.set(name, upstream);
    if ([upstream["api_key"], upstream["secret_access_key"]].some(isPlain)) {
      this.#notes.add("A secret is in the file; better put it in a variable", `upstreams.${name}`);
    }
    return name;
  }

  #readOtherNames(): void {
    const names = this.#router.map("model_group_alias");
    for (const name of names.keys) {
      const written = names.value(name);
      const model = isObject(written) ? written["model"] : written;
      const meant = typeof model === "string" ? this.#models.get(model)?.alias : undefined;
      if (meant !== undefined && otherName.test(name) && !this.#models.has(name)) {
        this.#otherNames.set(name, meant);
        continue;
      }
      const absent = typeof model === "string" ? this.#whyAbsent(model) : "it names several";
      const why = this.#models.has(name) ? "a model has this name" : absent;
      this.#notes.add(`The alias ${name} is left out, since ${why}`);
    }
  }

  #readFallbacks(key: "fallbacks" | "context_window_fallbacks"): Fallbacks {
    const sections = [this.#settings, this.#router];
    if (sections.every((section) => Array.isArray(section.peek(key)))) {
      this.#notes.add(`litellm_settings.${key} are not read, since router_settings has its own`);
    }
    const fallbacks = readFallbacks(sections, key);
    for (const name of fallbacks.keys()) {
      if (name === "*" || this.#models.has(name)) continue;
      this.#notes.add(`The fallbacks of ${name} are left out, since ${this.#whyAbsent(name)}`);
    }
    return fallbacks;
  }

  /** Aliases of the models that follow this one. */
  #following(
    name: string,
    { alias, kind }: ConvertedModel,
    { usual, forLong }: Readonly<Record<"usual" | "forLong", Fallbacks>>,
  ): readonly string[] {
    const nameOf = (other: string): string => this.#nameOf(other);
    const chain = chainOf(name, usual, nameOf);
    const added = chainOf(name, forLong, nameOf).filter((other) => !chain.includes(other));
    if (added.length > 0) {
      this.#notes.add("context_window_fallbacks serve when a model fails, too", alias);
    }
    const following = [...chain, ...added].flatMap((other) => {
      const model = this.#models.get(other);
      const why =
        model === undefined
          ? this.#whyAbsent(other)
          : kind === "embedding" || model.kind === "embedding"
            ? "vectors of two models do not compare, and only chat models have fallbacks"
            : undefined;
      if (why === undefined) return model?.alias ?? [];
      this.#notes.add(`Fallbacks are left out, since ${why}`, `${name} -> ${other}`);
      return [];
    });
    if (following.length > mostFallbacks) {
      this.#notes.add(`Fallbacks after the first ${mostFallbacks} are left out`, alias);
    }
    return following.slice(0, mostFallbacks);
  }

  #whyAbsent(name: string): string {
    const why = this.#leftOut.get(name);
    return why === undefined ? `${name} is no model of this file` : `${name} is left out: ${why}`;
  }

  /** LiteLLM's name of the model that a name leads to. */
  #nameOf(name: string): string {
    const alias = this.#models.has(name) ? undefined : this.#otherNames.get(name);
    return [...this.#models].find(([, model]) => model.alias === alias)?.[0] ?? name;
  }

  #writeModel(
    { alias, kind, deployments }: ConvertedModel,
    fallbacks: readonly string[],
  ): JsonObject {
    const windows = new Set(deployments.flatMap((each) => each.window ?? []));
    const window = windows.size > 0 ? Math.max(...windows) : guessedWindow[kind];
    if (windows.size > 1) {
      const others = "give the others a model of their own if long inputs fail there";
      this.#notes.add(`The largest context_window of several targets is written; ${others}`, alias);
    } else if (windows.size === 0) {
      const guess = "context_window is a guess: the file does not have it, so look it up";
      this.#notes.add(guess, `${alias} (${window})`);
    }
    const outputs = deployments.map(({ output = window }) => Math.min(output, window));
    if (kind === "chat" && deployments.some(({ output }) => output === undefined)) {
      this.#notes.add("max_output_tokens is the context_window, since no limit is known", alias);
    }
    return {
      kind,
      context_window: window,
      ...(kind === "chat" && { max_output_tokens: Math.max(...outputs) }),
      ...(fallbacks.length > 0 && { fallbacks }),
      targets: this.#writeTargets(alias, deployments),
    };
  }

  /** A second deployment of the same target takes as many calls again. */
  #writeTargets(alias: string, deployments: ConvertedModel["deployments"]): readonly JsonObject[] {
    const ranks = rankTargets(deployments.map(({ preference }) => preference));
    const ranked = new Map<string, { readonly target: JsonObject; rank: Rank }>();
    for (const [index, deployment] of deployments.entries()) {
      const rank = ranks[index] ?? { priority: 1, weight: 1 };
      const id = idOf(deployment.target);
      const price = this.#prices.get(id);
      const target = { ...deployment.target, ...(price && { price }) };
      const known = ranked.get(id);
      if (known === undefined) ranked.set(id, { target, rank });
      else {
        this.#notes.add("Deployments that repeat another one add to its share of calls", alias);
        if (!isSameValue(known.target, target)) this.#notes.add(firstCounts, alias);
        known.rank = togetherOf(known.rank, rank);
      }
    }
    return [...ranked.values()].map(({ target, rank: { priority, weight } }) => ({
      ...target,
      ...(priority > 1 && { priority }),
      ...(weight > 1 && { weight }),
    }));
  }

  /** Of a deployment with its alias, else of the file. */
  #noteUnread(entry: Entry, section = "", alias?: string): void {
    for (const key of entry.unread()) {
      const name = section + key;
      const advice = adviceOn(name);
      if (alias === undefined) this.#notes.add(`Not carried over; ${advice}`, name);
      else this.#notes.add(`${name} is not carried over; ${advice}`, alias);
    }
  }
}

function idOf(target: JsonObject): string {
  return `${String(target["upstream"])}/${String(target["model"])}`;
}

function firstFree(base: string, taken: ReadonlySet<unknown>): string {
  let name = base;
  for (let number = 2; taken.has(name); number += 1) name = `${base}-${number}`;
  return name;
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" && !/^\$\{\w+\}$/.test(value);
}
