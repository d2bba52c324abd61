import type { OpenaiUpstreamSettings, UpstreamSettings } from "./config.ts";
import type { ConfigFile } from "./schema.ts";

type UpstreamFile = ConfigFile["upstreams"][string];

/** One case per upstream kind. */
export function buildUpstream(name: string, upstream: UpstreamFile): UpstreamSettings {
  switch (upstream.kind) {
    case "openai":
      return buildOpenaiUpstream(name, upstream);
  }
}

function buildOpenaiUpstream(name: string, upstream: UpstreamFile): OpenaiUpstreamSettings {
  return {
    kind: upstream.kind,
    name,
    baseUrl: upstream.base_url,
    apiKey: upstream.api_key,
    apiKeyHeader: upstream.api_key_header,
    headers: Object.fromEntries(
      Object.entries(upstream.headers).map(([header, value]) => [header.toLowerCase(), value]),
    ),
    query: upstream.query,
    dropFields: upstream.drop_fields,
    maxTokensField: upstream.max_tokens_field,
    instructionRole: upstream.instruction_role,
    flattenTextParts: upstream.flatten_text_parts,
    streamUsage: upstream.stream_usage,
    takesTokenIds: upstream.takes_token_ids,
    embeddingBatchLimit: upstream.embedding_batch_limit,
    embeddingEncoding: upstream.embedding_encoding,
    timeouts: {
      connectMs: upstream.timeouts.connect,
      firstByteMs: upstream.timeouts.first_byte,
      idleMs: upstream.timeouts.idle,
      totalMs: upstream.timeouts.total,
    },
    maxInFlight: upstream.max_in_flight,
  };
}
