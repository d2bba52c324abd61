import { z } from "zod";
import { isNetwork } from "../../domain/network.ts";
import { duration, size, wholeNumber } from "../../settings/values.ts";

const originProblem = "must be '*' or an origin such as https://app.example.com";

export const httpSchema = z
  .strictObject({
    body_limit: size({
      about: "Largest request body, as sent.",
      min: "1KiB",
      max: "1GiB",
      initial: "10MiB",
    }),
    decompressed_limit: size({
      about:
        "Largest request body after decompression; also most text that the token ids of an " +
        "embeddings call are turned into.",
      min: "1KiB",
      max: "1GiB",
      initial: "16MiB",
    }),
    decompression_ratio: wholeNumber({
      about: "Most bytes that one byte of a compressed body expands to; the first MiB is free.",
      min: 2,
      max: 10_000,
      initial: 100,
    }),
    json_depth: wholeNumber({
      about: "Deepest nesting of a JSON body.",
      min: 8,
      max: 1024,
      initial: 64,
    }),
    json_values: wholeNumber({
      about:
        "Most values of a JSON body. A list or an object counts as 4, a field as 20, and an " +
        "escape in a text as one: what they cost to parse. The default takes up to about 50 ms.",
      min: 1_000,
      max: 10_000_000,
      initial: 600_000,
    }),
    body_memory: size({
      about:
        "Most memory of the bodies whose requests have no answer yet, in each worker. A body reserves what it may " +
        "need before it is read: its length, or `body_limit`, and what it may expand to. Bodies up " +
        "to 64KiB do not count and never wait.",
      min: "1MiB",
      max: "1024GiB",
      initial: "512MiB",
    }),
    body_memory_per_key: size({
      about:
        "Most of it for the bodies of one key; at least `body_limit` and `decompressed_limit` " +
        "together, so that the largest body fits into it. The same holds for `body_memory`.",
      min: "1MiB",
      max: "1024GiB",
      initial: "128MiB",
    }),
    body_memory_wait: duration({
      about: "How long a body waits, unread, for memory that others hold; then 503.",
      min: "0s",
      max: "1m",
      initial: "30s",
    }),
    body_memory_queue: wholeNumber({
      about: "Most bodies that wait for memory at once; more get 503.",
      min: 0,
      max: 1_000_000,
      initial: 1_000,
    }),
    max_headers: wholeNumber({
      about: "Most headers of a request.",
      min: 16,
      max: 1000,
      initial: 100,
    }),
    body_timeout: duration({
      about: "How long a request body may take to arrive.",
      min: "1s",
      max: "10m",
      initial: "30s",
    }),
    idle_timeout: duration({
      about:
        "How long a connection is kept for its next request, in whole seconds; longer than that of " +
        "the balancer in front.",
      min: "1s",
      max: "255s",
      initial: "75s",
    }),
    trusted_proxies: z
      .array(z.string().refine(isNetwork, "must be a CIDR block such as 10.0.0.0/8 or ::1/128"))
      .max(100)
      .prefault([])
      .describe(
        "Proxies in front, as CIDR blocks: what they say in `x-forwarded-for` is believed. Keys and " +
          "the audit see the caller's address through them.",
      ),
    allowed_origins: z
      .array(z.string().refine(isOrigin, originProblem))
      .max(100)
      .prefault(["*"])
      .describe("Origins whose browser pages may call the data plane; `*` is any, none is `[]`."),
  })
  .refine((http) => http.decompressed_limit >= http.body_limit, {
    path: ["decompressed_limit"],
    error: "must not be smaller than http.body_limit",
  })
  .prefault({})
  .describe("What the listeners accept.")
  .transform((http) => {
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
  });

function isOrigin(value: string): boolean {
  return value === "*" || (URL.canParse(value) && new URL(value).origin === value);
}
