/** OpenTelemetry's conventions of this version; those of generative AI are not stable yet. */
export const schemaUrl = "https://opentelemetry.io/schemas/1.41.0";

export const names = {
  serviceName: "service.name",
  serviceVersion: "service.version",
  serviceInstanceId: "service.instance.id",
  hostName: "host.name",
  processPid: "process.pid",
  httpMethod: "http.request.method",
  httpRoute: "http.route",
  httpStatus: "http.response.status_code",
  urlPath: "url.path",
  urlScheme: "url.scheme",
  serverAddress: "server.address",
  serverPort: "server.port",
  errorType: "error.type",
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  isStreamed: "gen_ai.request.stream",
  firstChunkSeconds: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
} as const;

/** Metrics of the conventions. */
export const metricNames = {
  requestDuration: "gen_ai.server.request.duration",
  firstToken: "gen_ai.server.time_to_first_token",
} as const;

/** `gen_ai.provider.name` of what callers see: the gateway. */
export const providerName = "sluice";

/** Attributes that only Sluice has. */
export const ownNames = {
  requestId: "sluice.request.id",
  callerRequestId: "sluice.caller_request.id",
  environment: "sluice.environment",
  application: "sluice.application",
  keyId: "sluice.key.id",
  dialect: "sluice.dialect",
  capacityClass: "sluice.capacity_class",
  outcome: "sluice.outcome",
  usageSource: "sluice.usage_source",
  attempts: "sluice.attempts",
  rule: "sluice.refusal.rule",
  target: "sluice.target",
  decision: "sluice.retry.decision",
} as const;

/** Values of `gen_ai.operation.name`, by the kind of the model. */
export const operations = { chat: "chat", embedding: "embeddings" } as const;
