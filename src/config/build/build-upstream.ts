import { buildBedrockUpstream } from "../bedrock/build-bedrock.ts";
import type { Timeouts } from "../../domain/upstream-settings.ts";
import type {
  OpenaiUpstreamSettings,
  SharedUpstreamSettings,
  UpstreamSettings,
} from "../config.ts";
import type { PlacedModels, PlacedUpstream } from "../bedrock/expand-regions.ts";

type UpstreamFile = PlacedUpstream;

/** One case per upstream kind; `models` are those of the whole file. */
export function buildUpstream(
  name: string,
  upstream: UpstreamFile,
  models: PlacedModels,
): UpstreamSettings {
  const shared = {
    name,
    timeouts: buildTimeouts(upstream.timeouts),
    maxInFlight: upstream.max_in_flight,
    drain:
      upstream.drain === undefined
        ? undefined
        : { timeoutMs: upstream.drain.timeout, limit: upstream.drain.limit },
  };
  switch (upstream.kind) {
    case "openai":
      return { ...shared, ...buildOpenaiUpstream(upstream) };
    case "bedrock":
      return { ...shared, ...buildBedrockUpstream(name, upstream, models) };
  }
}

function buildTimeouts(timeouts: UpstreamFile["timeouts"]): Timeouts {
  return {
    connectMs: timeouts.connect,
    firstByteMs: timeouts.first_byte,
    idleMs: timeouts.idle,
    totalMs: timeouts.total,
  };
}

function buildOpenaiUpstream(
  upstream: Extract<UpstreamFile, { kind: "openai" }>,
): Omit<OpenaiUpstreamSettings, keyof SharedUpstreamSettings> {
  return {
    kind: upstream.kind,
    baseUrl: upstream.base_url,
    apiKey: upstream.api_key,
    apiKeyHeader: upstream.api_key_header,
    headers: Object.fromEntries(
      Object.entries(upstream.headers).map(([header, value]) => [header.toLowerCase(), value]),
    ),
    query: upstream.query,
    forwardFields: upstream.forward_fields,
    dropFields: upstream.drop_fields,
    maxTokensField: upstream.max_tokens_field,
    instructionRole: upstream.instruction_role,
    flattenTextParts: upstream.flatten_text_parts,
    streamUsage: upstream.stream_usage,
    takesTokenIds: upstream.takes_token_ids,
    embeddingBatchLimit: upstream.embedding_batch_limit,
    embeddingEncoding: upstream.embedding_encoding,
  };
}
