/** Aliases of the run; the upstream knows the models by the same names. */
export const benchModels = {
  chat: "bench-chat",
  /** Served by two upstreams, both the same program. */
  twoTargets: "bench-two-targets",
  /** Served by the same upstream over the wire of the kind `bedrock`. */
  bedrock: "bench-bedrock",
  embedding: "bench-embedding",
} as const;

/** The largest embeddings call of OpenAI's API. */
export const embeddingsShape = { model: benchModels.embedding, inputs: 2048, dimensions: 1024 };
