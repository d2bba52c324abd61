export type ModelKind = "chat" | "embedding";

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
}

/** Timeouts that override those of the upstreams. */
export interface ModelTimeouts {
  readonly firstByteMs?: number | undefined;
  readonly idleMs?: number | undefined;
  readonly totalMs?: number | undefined;
}

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
}
