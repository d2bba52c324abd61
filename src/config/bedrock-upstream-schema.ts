import { z } from "zod";
import { assumedRoleSchema } from "./assumed-role-schema.ts";
import { drain, httpUrl, maxInFlight, timeouts, upstreamKindAbout } from "./upstream-fields.ts";
import { credential, flag, text } from "./values.ts";

/** One region of Amazon Bedrock, and the credential for it. */
export const bedrockUpstreamSchema = z
  .strictObject({
    kind: z.literal("bedrock").describe(upstreamKindAbout),
    region: z
      .string()
      .regex(/^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$/, "must be a region such as us-east-1")
      .meta({ title: "region", description: "Region of the provider." }),
    endpoint: httpUrl(
      "Replaces the address that follows from the region, such as that of a private endpoint.",
    ).optional(),
    fips: flag("Whether the region's FIPS address is used.", false),
    api_key: credential(
      "API key, sent as Bearer. Without it and `access_key_id`, the provider's standard chain is " +
        "asked: environment, profile, web identity, container, instance.",
    ).optional(),
    access_key_id: z
      .string()
      .regex(/^\w+$/, "must be letters, digits and '_'")
      .optional()
      .describe("Access key that requests are signed with."),
    secret_access_key: credential("Secret of `access_key_id`.").optional(),
    session_token: credential("Session token of a temporary `access_key_id`.").optional(),
    profile: text("Profile of the shared configuration files, for the standard chain.").optional(),
    assume_role: assumedRoleSchema,
    count_tokens: flag(
      "Counts an input that seems larger than a key's limit before it is refused. Needs the " +
        "permission bedrock:CountTokens.",
      false,
    ),
    // A whole answer comes with its first byte, and a stream is silent for minutes while a model
    // writes the arguments of a tool: silences of 125 s have been seen.
    timeouts: timeouts({ firstByte: "5m", idle: "5m" }),
    max_in_flight: maxInFlight,
    drain,
  })
  .superRefine((upstream, context) => {
    for (const { key, message } of contradictions(upstream)) {
      context.addIssue({ code: "custom", path: [key], message });
    }
  });

interface Contradiction {
  readonly key: string;
  readonly message: string;
}

interface Credentials {
  readonly api_key?: unknown;
  readonly access_key_id?: unknown;
  readonly secret_access_key?: unknown;
  readonly session_token?: unknown;
  readonly profile?: unknown;
  readonly assume_role?: unknown;
}

function contradictions(
  upstream: Credentials & { readonly endpoint?: unknown; readonly fips: boolean },
): readonly Contradiction[] {
  const found: Contradiction[] = [];
  const without = (key: keyof Credentials, other: keyof Credentials): void => {
    if (upstream[key] === undefined || upstream[other] === undefined) return;
    found.push({ key, message: `must not be set together with ${other}` });
  };
  const needs = (key: keyof Credentials, other: keyof Credentials): void => {
    if (upstream[key] === undefined || upstream[other] !== undefined) return;
    found.push({ key, message: `needs ${other} beside it` });
  };
  for (const key of signingKeys) without(key, "api_key");
  without("profile", "api_key");
  without("assume_role", "api_key");
  without("profile", "access_key_id");
  needs("access_key_id", "secret_access_key");
  needs("secret_access_key", "access_key_id");
  needs("session_token", "access_key_id");
  if (upstream.fips && upstream.endpoint !== undefined) {
    found.push({ key: "fips", message: "must not be set together with endpoint" });
  }
  return found;
}

const signingKeys = ["access_key_id", "secret_access_key", "session_token"] as const;
