import { z } from "zod";
import { isNetwork } from "../../domain/network.ts";
import { duration, size, wholeNumber } from "../../settings/values.ts";

const originProblem = "must be '*' or an origin such as https://app.example.com";

export const httpSchema = z
  .strictObject({
    body_limit: size("10MiB", ["1KiB", "1GiB"]).describe("Largest request body, as sent."),
    decompressed_limit: size("16MiB", ["1KiB", "1GiB"]).describe(
      "Largest body after decompression, and largest text decoded from token ids.",
    ),
    decompression_ratio: wholeNumber(100, [2, 10_000]).describe(
      "Maximum expansion of a compressed body; the first MiB is exempt.",
    ),
    json_depth: wholeNumber(64, [8, 1024]).describe("Maximum nesting depth of a JSON body."),
    json_values: wholeNumber(600_000, [1_000, 10_000_000]).describe(
      "Maximum values of a JSON body: a list or object counts 4, a field 20, an escape 1.",
    ),
    body_memory: size("512MiB", ["1MiB", "1024GiB"]).describe(
      "Memory of each process for bodies and large answers. A body reserves twice its length " +
        "(or `body_limit`), or its possible expansion. Up to 64KiB do not count.",
    ),
    body_memory_per_key: size("128MiB", ["1MiB", "1024GiB"]).describe(
      "Part of `body_memory` that one key may use; an account gets at most half.",
    ),
    body_memory_wait: duration("30s", ["0s", "1m"]).describe(
      "How long a body or an answer waits for memory before the request gets 503.",
    ),
    body_memory_queue: wholeNumber(1_000, [0, 1_000_000]).describe(
      "Maximum bodies that wait for memory.",
    ),
    max_headers: wholeNumber(100, [16, 1000]).describe("Maximum headers of a request."),
    body_timeout: duration("30s", ["1s", "10m"]).describe(
      "How long a request body may take to arrive.",
    ),
    idle_timeout: duration("75s", ["1s", "255s"]).describe(
      "How long an idle connection is kept: longer than the balancer in front keeps it.",
    ),
    trusted_proxies: z
      .array(z.string().refine(isNetwork, "must be a CIDR block such as 10.0.0.0/8 or ::1/128"))
      .max(100)
      .prefault([])
      .describe("CIDR blocks of proxies whose `x-forwarded-for` is trusted."),
    allowed_origins: z
      .array(z.string().refine(isOrigin, originProblem))
      .max(100)
      .prefault(["*"])
      .describe("Origins of browser pages that may call the data plane; `*` is any, `[]` none."),
  })
  .refine((http) => http.decompressed_limit >= http.body_limit, {
    path: ["decompressed_limit"],
    error: "must not be smaller than http.body_limit",
  })
  .prefault({})
  .describe("What the listeners accept.")
  .transform((http) => {
    const oneBodyBytes = 2 * http.decompressed_limit;
    const ownBytes = Math.max(http.body_memory_per_key, oneBodyBytes);
    return {
      bodyLimitBytes: http.body_limit,
      decompressedLimitBytes: http.decompressed_limit,
      decompressionRatio: http.decompression_ratio,
      jsonDepth: http.json_depth,
      jsonValues: http.json_values,
      bodyMemory: {
        allBytes: Math.max(http.body_memory, ownBytes),
        ownBytes,
        waitMs: http.body_memory_wait,
        queue: http.body_memory_queue,
      },
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
