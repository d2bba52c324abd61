import type { HttpSettings } from "../config.ts";
import type { ConfigFile } from "../schema/schema.ts";

export function buildHttp(http: ConfigFile["http"]): HttpSettings {
  const oneBodyBytes = http.body_limit + http.decompressed_limit;
  const bodyMemoryPerKeyBytes = Math.max(http.body_memory_per_key, oneBodyBytes);
  return {
    bodyLimitBytes: http.body_limit,
    decompressedLimitBytes: http.decompressed_limit,
    decompressionRatio: http.decompression_ratio,
    jsonDepth: http.json_depth,
    jsonValues: http.json_values,
    bodyMemoryBytes: Math.max(http.body_memory, bodyMemoryPerKeyBytes),
    bodyMemoryPerKeyBytes,
    bodyMemoryWaitMs: http.body_memory_wait,
    bodyMemoryQueue: http.body_memory_queue,
    maxHeaders: http.max_headers,
    bodyTimeoutMs: http.body_timeout,
    idleTimeoutMs: http.idle_timeout,
    trustedProxies: http.trusted_proxies,
    allowedOrigins: http.allowed_origins,
  };
}
