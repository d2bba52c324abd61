import { z } from "zod";
import { duration, wholeNumber } from "./values.ts";

/** What upstreams of every kind have. */

export const upstreamKindAbout =
  "Protocol of the upstream: `openai` is any server that speaks OpenAI's, `bedrock` is Amazon " +
  "Bedrock.";

/** How long the answers of a kind may take to begin, and be silent; the rest is the same for all. */
export function timeouts({ firstByte, idle }: { firstByte: string; idle: string }) {
  return z
    .strictObject({
      connect: duration({
        about:
          "From the start of an attempt until the host must have taken a connection. " +
          "Behind an egress proxy, set it as high as first_byte.",
        min: "10ms",
        max: "1h",
        initial: "3s",
      }),
      first_byte: duration({
        about: "From the request to the first byte of the answer.",
        min: "10ms",
        max: "1h",
        initial: firstByte,
      }),
      idle: duration({
        about: "Longest time without a byte within an answer.",
        min: "10ms",
        max: "1h",
        initial: idle,
      }),
      total: duration({
        about: "From the request to the end of the answer.",
        min: "10ms",
        max: "24h",
        initial: "10m",
      }),
    })
    .prefault({})
    .describe("How long one attempt may take.");
}

export const maxInFlight = wholeNumber({
  about: "Most simultaneous requests to this upstream.",
  min: 1,
  max: 65_336,
  initial: 4096,
});

export const drain = z
  .strictObject({
    timeout: duration({
      about: "How long an answer is read on.",
      min: "100ms",
      max: "5s",
      initial: "5s",
    }),
    limit: wholeNumber({
      about: "Most answers read on at once; more are aborted.",
      min: 1,
      max: 64,
      initial: 64,
    }),
  })
  .optional()
  .describe(
    "Reads a stream on when its caller has left, to get the upstream's own count. For upstreams " +
      "that bill the whole answer anyway; without it an answer that is not finished is aborted at " +
      "once.",
  );

const urlProblem = "must be an http:// or https:// URL without user, query or fragment";

/** An address that paths are put behind; it loses its slashes at the end. */
export function httpUrl(about: string) {
  return z
    .string()
    .regex(/^https?:\/\/[^\s?#@\\]+$/i, urlProblem)
    .transform((value, context) => {
      if (URL.canParse(value)) return value.replace(/\/+$/, "");
      context.issues.push({ code: "custom", message: urlProblem, input: value });
      return z.NEVER;
    })
    .meta({ title: "url", description: about });
}
