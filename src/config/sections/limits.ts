import { z } from "zod";
import { Secret } from "../../domain/keys/secret.ts";
import {
  escapedSigns,
  nameOfValkey,
  parseValkeyUrl,
  valkeyUrlForms,
} from "../../domain/addresses.ts";
import { duration, text, wholeNumber } from "../../settings/values.ts";
import { pemCertificates } from "./upstream-connections.ts";

const aboutLimitStore =
  "Where limits are counted: `memory` for a single process, or Valkey 7.2, or Redis 7, " +
  "or newer: `valkey://USER:PASSWORD@HOST:PORT/DATABASE`, `valkeys` for TLS, " +
  "`valkey+sentinel://HOST,HOST/SERVICE`, `valkey+cluster://HOST,HOST`; `redis` may " +
  "stand for `valkey`.";

export const limitsSchema = z
  .strictObject({
    store: text(aboutLimitStore)
      .transform((value, context) => {
        if (value === "memory" || parseValkeyUrl(value) !== undefined) return value;
        const isShared = /^(valkey|redis)s?(\+\w+)?:/i.test(value);
        const message = isShared
          ? `must be ${valkeyUrlForms}${escapedSigns}`
          : "must be memory or valkey://...";
        context.issues.push({ code: "custom", message, input: value });
        return z.NEVER;
      })
      .prefault("memory")
      .describe(aboutLimitStore),
    timeout: duration("50ms", ["5ms", "5s"]).describe(
      "Longest wait for a shared store; then `when_limits_unavailable` applies.",
    ),
    ca: pemCertificates(
      "Authorities for its certificate, in PEM format, instead of the usual ones.",
    ).optional(),
    default_output_tokens: wholeNumber(1024, [1, 10_000_000]).describe(
      "Output reserved for a call without a cap until the usual length is known.",
    ),
  })
  .prefault({})
  .describe("Rate limits.")
  .transform((limits) => ({
    store: storeOf(limits.store, limits),
    defaultOutputTokens: limits.default_output_tokens,
  }));

interface SharedStoreFields {
  readonly timeout: number;
  readonly ca?: string | undefined;
}

function storeOf(url: string, { timeout: timeoutMs, ca: authorities }: SharedStoreFields) {
  if (url === "memory") return "memory" as const;
  const name = nameOfValkey(url);
  return { name, url: new Secret(url), timeoutMs, authorities };
}
