import type { Price } from "./money/price.ts";

export type ModelKind = "chat" | "embedding";

/** How prompts get into the provider's cache, which decides what they may cost. */
export interface PromptCache {
  /** Of requests that mark what to keep, of all, or as the provider likes. */
  readonly filled: "as_asked" | "always" | "by_provider";
  /** Whether marks may ask for an hour. */
  readonly keepsAnHour: boolean;
}

/** An upstream that serves a model, and its own identifier of the model. */
export interface Target {
  /** `<upstream>/<identifier>`: unique, used in the ledger and in metrics. */
  readonly id: string;
  readonly upstream: string;
  readonly model: string;
  /** Lower numbers are tried first. */
  readonly priority: number;
  /** Share of the calls among targets of one priority. */
  readonly weight: number;
  /** Pool whose capacity it uses; undefined: only the upstream limits it. */
  readonly pool?: string | undefined;
  /** Undefined: it has none. */
  readonly promptCache?: PromptCache | undefined;
  /** The operator's own, from which tables of prices are made; calls find theirs in those. */
  readonly price?: Price | undefined;
  /** Tokens of the provider's quota that a token of output takes. Undefined: one. */
  readonly outputQuotaWeight?: number | undefined;
}

/** Timeouts that override those of the upstreams. */
export interface ModelTimeouts {
  readonly firstByteMs?: number | undefined;
  readonly idleMs?: number | undefined;
  readonly totalMs?: number | undefined;
}

export const modelCapabilities = [
  "tools",
  "images",
  "documents",
  "reasoning",
  "json_schema",
] as const;

/** What a chat model can do. What is not there is not known. */
export type ModelCapabilities = Readonly<
  Partial<Record<(typeof modelCapabilities)[number], boolean | undefined>>
>;

/** A model that requests ask for: an alias for its targets. */
export interface Model {
  readonly alias: string;
  readonly kind: ModelKind;
  /** Unix seconds, shown by the model list. */
  readonly created: number;
  /** Limit on input and output tokens together. */
  readonly contextWindow: number;
  /** Limit on output tokens; undefined for embedding models. */
  readonly maxOutputTokens: number | undefined;
  /** Shown by the model list: what each of its targets can. Undefined: nothing is known. */
  readonly capabilities?: ModelCapabilities | undefined;
  /** Limit on parallel upstream requests of one call; 1 for chat models. */
  readonly fanOut: number;
  readonly targets: readonly Target[];
  readonly timeouts?: ModelTimeouts;
  /** Time without a first event after which a call is hedged. */
  readonly hedgeAfterMs?: number | undefined;
  /** Aliases of the models whose targets are tried when its own fail. */
  readonly fallbacks?: readonly string[];
}

/** A deployment stage with its own hosts, models and keys. */
export interface Environment {
  readonly name: string;
  readonly models: ReadonlyMap<string, Model>;
  /** Other names of its models; undefined: none. */
  readonly otherNames?: OtherNames | undefined;
}

/** Names that callers may ask for instead of an alias, such as those that a client has built in. */
export interface OtherNames {
  /** The alias by the whole name. */
  readonly exact: ReadonlyMap<string, string>;
  /** The alias by the beginning of the name; the longest beginnings first. */
  readonly prefixes: readonly { readonly prefix: string; readonly alias: string }[];
}

/** The model of an alias or of another name: whole names win, then the longest beginning. */
export function modelNamed({ models, otherNames }: Environment, name: string): Model | undefined {
  const model = models.get(name);
  if (model !== undefined || otherNames === undefined) return model;
  const { exact, prefixes } = otherNames;
  const alias = exact.get(name) ?? prefixes.find(({ prefix }) => name.startsWith(prefix))?.alias;
  return alias === undefined ? undefined : models.get(alias);
}

/** A target that keeps failing gets no calls for a time. */
export interface TargetOut {
  readonly target: string;
  /** Set when only the calls of this key failed; undefined: out for all. */
  readonly key: string | undefined;
  readonly forMs: number;
  /** Times in a row. */
  readonly times: number;
  /** A text of the gateway, never of a provider. */
  readonly because: string;
}
