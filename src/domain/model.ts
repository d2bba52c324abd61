export type ModelKind = "chat" | "embedding";

/** One place a model can be served: an upstream and the upstream's own identifier of the model. */
export interface Target {
  /** `<upstream>/<identifier>`: unique, used in the ledger and in metrics. */
  readonly id: string;
  readonly upstream: string;
  readonly model: string;
  /** Lower numbers are tried first. */
  readonly priority: number;
  /** Share of the calls among targets of one priority. */
  readonly weight: number;
  /** Name of the pool whose capacity it is; undefined: only its upstream bounds it. */
  readonly pool?: string | undefined;
}

/** Where a model takes another time than its upstreams say. */
export interface ModelTimeouts {
  readonly firstByteMs?: number | undefined;
  readonly idleMs?: number | undefined;
  readonly totalMs?: number | undefined;
}

/** What callers name: a short alias that hides its targets. */
export interface Model {
  readonly alias: string;
  readonly kind: ModelKind;
  /** Unix seconds, shown by the model list. */
  readonly created: number;
  /** Tokens of input and output together. */
  readonly contextWindow: number;
  /** Most tokens one answer may have; undefined for embedding models. */
  readonly maxOutputTokens: number | undefined;
  /** Most simultaneous upstream requests of one call; 1 for chat models. */
  readonly fanOut: number;
  readonly targets: readonly Target[];
  readonly timeouts?: ModelTimeouts;
  /** Without a first event after this time a second target is asked as well. */
  readonly hedgeAfterMs?: number | undefined;
  /** Aliases of models whose targets are tried when none of its own answers. */
  readonly fallbacks?: readonly string[];
}

/** A deployment stage with its own hosts, models and keys. */
export interface Environment {
  readonly name: string;
  readonly models: ReadonlyMap<string, Model>;
}
