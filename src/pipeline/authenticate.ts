import { timingSafeEqual } from "node:crypto";
import { maskApiKey, readPublicId } from "../domain/api-key.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import type { Caller, Key } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import type { Plan } from "../domain/plan.ts";
import type { StoredSecret } from "../storage/store.ts";

/** HMAC-SHA-256 of an API key text under the pepper. */
export type KeyDigest = (text: string) => Uint8Array;

export function createKeyDigest(pepper: string): KeyDigest {
  const keyed = new Bun.CryptoHasher("sha256", pepper);
  return (text) => keyed.copy().update(text).digest();
}

export interface AuthenticateOptions {
  readonly digest: KeyDigest;
  readonly clock: Clock;
  /** Live secrets by public id: a snapshot, swapped whole when keys change. */
  readonly secrets: () => ReadonlyMap<string, StoredSecret>;
  readonly plans: () => ReadonlyMap<string, Plan>;
  readonly onPlanMissing: (keyId: string, plan: string) => void;
}

export type Authenticate = (authorization: string | null, environment: Environment) => Caller;

/**
 * Finds the caller of a request. Whatever is wrong with the key, the answer is one 401 of one
 * shape; a well-formed key costs the same work whether it is known or not.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  // Compared against when the id is unknown, so that timing tells nothing.
  const nobody = options.digest("");
  return (authorization, environment) => {
    const text = readBearer(authorization);
    const publicId = readPublicId(text);
    if (publicId === undefined) throw refuse(text);
    const stored = options.secrets().get(publicId);
    const expected = stored?.secret.digest ?? nobody;
    const digest = options.digest(text);
    const isMatch = expected.length === digest.length && timingSafeEqual(digest, expected);
    if (!isMatch || stored === undefined) throw refuse(text);
    const { key, secret } = stored;
    if (key.environment !== environment.name || isOver(stored, options.clock)) throw refuse(text);
    const limits = key.limits ?? options.plans().get(key.plan)?.limits;
    if (limits === undefined) throw planMissing(options, key);
    return { key, publicId: secret.publicId, limits };
  };
}

function readBearer(authorization: string | null): string {
  if (authorization === null) return "";
  const separator = authorization.indexOf(" ");
  if (separator !== 6 || authorization.slice(0, 6).toLowerCase() !== "bearer") return "";
  return authorization.slice(7).trim();
}

function isOver({ key, secret }: StoredSecret, clock: Clock): boolean {
  if (key.revokedAt !== undefined) return true;
  return secret.expiresAt !== undefined && secret.expiresAt <= clock.now();
}

/** No limits to hold the key to: it must not pass. But it is good, and a 401 would say otherwise. */
function planMissing({ onPlanMissing }: AuthenticateOptions, key: Key): GatewayError {
  onPlanMissing(key.id, key.plan);
  return new GatewayError("model_unavailable", {
    message: "The usage plan of this API key is not configured. Please tell the operator.",
    headers: { "retry-after": "60", "retry-after-ms": "60000", "x-should-retry": "false" },
  });
}

function refuse(text: string): GatewayError {
  const shown = text === "" ? "none" : maskApiKey(text);
  return new GatewayError("invalid_api_key", {
    message:
      `Incorrect API key provided: ${shown}. Send the key of your application for this ` +
      "environment in the Authorization header (Authorization: Bearer YOUR_KEY).",
    headers: { "www-authenticate": "Bearer" },
  });
}
