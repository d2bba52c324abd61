import root from "otlp-reference/build/src/generated/root.js";
import { z } from "zod";

/** Decodes with the descriptors of OpenTelemetry's own protocol files. */
const { v1: traces } = root.opentelemetry.proto.collector.trace;
const { v1: metrics } = root.opentelemetry.proto.collector.metrics;

const value = z
  .object({
    stringValue: z.string().optional(),
    intValue: z.coerce.number().optional(),
    doubleValue: z.number().optional(),
    boolValue: z.boolean().optional(),
  })
  .transform((sent) => sent.stringValue ?? sent.intValue ?? sent.doubleValue ?? sent.boolValue);
const attributes = z
  .array(z.object({ key: z.string(), value }))
  .default([])
  .transform((list) => Object.fromEntries(list.map((entry) => [entry.key, entry.value])));
const bytes = z.string().transform((text) => Buffer.from(text, "base64").toString("hex"));
const nanoseconds = z.coerce.bigint();

const span = z.object({
  traceId: bytes,
  spanId: bytes,
  parentSpanId: bytes.optional(),
  traceState: z.string().optional(),
  name: z.string(),
  kind: z.string(),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes,
  events: z.array(z.object({ name: z.string(), timeUnixNano: nanoseconds })).default([]),
  status: z.object({ code: z.string().optional() }).optional(),
});
const traceRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(z.object({ schemaUrl: z.string(), spans: z.array(span) })),
    }),
  ),
});

const point = z.object({
  attributes,
  startTimeUnixNano: nanoseconds.optional(),
  timeUnixNano: nanoseconds,
  asDouble: z.number().optional(),
  asInt: z.coerce.number().optional(),
  count: z.coerce.number().optional(),
  sum: z.number().optional(),
  bucketCounts: z.array(z.coerce.number()).optional(),
  explicitBounds: z.array(z.number()).optional(),
});
const points = z.object({
  dataPoints: z.array(point),
  aggregationTemporality: z.string().optional(),
  isMonotonic: z.boolean().optional(),
});
const metric = z.object({
  name: z.string(),
  unit: z.string().optional(),
  description: z.string().optional(),
  gauge: points.optional(),
  sum: points.optional(),
  histogram: points.optional(),
});
const metricsRequest = z.object({
  resourceMetrics: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeMetrics: z.array(z.object({ metrics: z.array(metric) })),
    }),
  ),
});

export type ReceivedSpan = z.output<typeof span>;
export type ReceivedMetric = z.output<typeof metric>;

/** How the receiver answers; `hang` never does. */
export type ReceiverMood = "take" | "throttle" | "reject" | "hang";

/** A collector that decodes what it gets. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly metrics: readonly ReceivedMetric[];
  /** Attributes of the last resource. */
  readonly resource: Readonly<Record<string, unknown>>;
  readonly headers: readonly Headers[];
  mood: ReceiverMood;
}

export function startOtlpReceiver(port = 0): OtlpReceiver {
  const spans: ReceivedSpan[] = [];
  const received: ReceivedMetric[] = [];
  const headers: Headers[] = [];
  let resource: Readonly<Record<string, unknown>> = {};
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      headers.push(request.headers);
      const body = new Uint8Array(await request.arrayBuffer());
      if (receiver.mood === "hang") return new Promise<Response>(() => undefined);
      if (receiver.mood === "throttle") return new Response(null, { status: 429 });
      if (receiver.mood === "reject") return new Response(null, { status: 400 });
      if (request.url.endsWith("/v1/traces")) {
        const decoded = traceRequest.parse(asJson(traces.ExportTraceServiceRequest, body));
        for (const { resource: from, scopeSpans } of decoded.resourceSpans) {
          resource = from.attributes;
          spans.push(...scopeSpans.flatMap((scope) => scope.spans));
        }
      } else {
        const decoded = metricsRequest.parse(asJson(metrics.ExportMetricsServiceRequest, body));
        for (const { resource: from, scopeMetrics } of decoded.resourceMetrics) {
          resource = from.attributes;
          received.push(...scopeMetrics.flatMap((scope) => scope.metrics));
        }
      }
      return new Response(null, { headers: { "content-type": "application/x-protobuf" } });
    },
  });
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    metrics: received,
    headers,
    mood: "take",
    get resource() {
      return resource;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return receiver;
}

interface MessageType {
  decode(bytes: Uint8Array): unknown;
  toObject(message: unknown, options: object): unknown;
}

function asJson(type: MessageType, bytes: Uint8Array): unknown {
  return type.toObject(type.decode(bytes), { longs: String, enums: String, bytes: String });
}
