import { timingSafeEqual } from "node:crypto";
import { readPublicId } from "../domain/api-key.ts";
import type { Clock } from "../domain/clock.ts";
import type { Caller } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import type { KeyDigest } from "../domain/peppers.ts";
import type { Plan } from "../domain/plan.ts";
import type { StoredSecret } from "../storage/store.ts";
import {
  invalidKey,
  networkNotAllowed,
  planMissing,
  snapshotStale,
  type KeyFault,
  type SentKey,
} from "./key-refusal.ts";
import type { EndedSecret, LiveSecret } from "./key-snapshot.ts";

/** The secrets as they are known here; `KeyRing` follows the store. */
export interface KnownSecrets {
  find(publicId: string): LiveSecret | undefined;
  /** What has ended while this process runs or not long before, for explanations alone. */
  findEnded(publicId: string): EndedSecret | undefined;
  /** True when a key that is unknown here may well be good. */
  readonly isStale: boolean;
  readonly ageMs: number;
}

export interface AuthenticateOptions {
  readonly digest: KeyDigest;
  readonly clock: Pick<Clock, "now">;
  readonly secrets: KnownSecrets;
  /** How long known keys are believed while the store cannot be read. */
  readonly snapshotMaxAgeMs: number;
  readonly plans: () => ReadonlyMap<string, Plan>;
  readonly onUsed: (publicId: string, at: number) => void;
  readonly onPlanMissing: (keyId: string, plan: string) => void;
}

/** The caller's network address is asked for only when the key is bound to networks. */
export type Authenticate = (
  authorization: string | null,
  environment: Environment,
  address: () => string,
) => Caller;

/**
 * Finds the caller of a request. Whatever is wrong with the key, the answer is one 401 of one
 * shape; a well-formed key costs the same work whether it is known or not. What the keys of now
 * cannot be asked about is a 503: a 401 makes applications throw good keys away.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { secrets, clock, onUsed } = options;
  const isDigestOf = createDigestCheck(options.digest);
  return (authorization, environment, address) => {
    const text = readBearer(authorization);
    const publicId = readPublicId(text);
    const sent: SentKey = { text, publicId, environment: environment.name };
    if (publicId === undefined) {
      throw invalidKey({ rule: text === "" ? "key_missing" : "key_malformed" }, sent);
    }
    const stored = secrets.find(publicId);
    const digest = options.digest(text);
    const isRight = isDigestOf(digest, stored);
    if (!isRight || stored === undefined) {
      const ended = secrets.findEnded(publicId);
      const hasEnded = isDigestOf(digest, ended);
      if (ended !== undefined && hasEnded) throw invalidKey(ended, sent, ended.key);
      if (stored === undefined && secrets.isStale) throw snapshotStale(sent);
      throw invalidKey({ rule: stored === undefined ? "key_unknown" : "key_mismatch" }, sent);
    }
    const { key } = stored;
    const now = clock.now();
    const over = whyOver(stored, now);
    if (over !== undefined) throw invalidKey(over, sent, key);
    if (key.environment !== environment.name) {
      throw invalidKey({ rule: "other_environment" }, sent, key);
    }
    if (secrets.ageMs > options.snapshotMaxAgeMs) throw snapshotStale(sent, key);
    if (stored.networks?.has(address()) === false) throw networkNotAllowed(sent, key, address());
    const limits = key.limits ?? options.plans().get(key.plan)?.limits;
    if (limits === undefined) {
      options.onPlanMissing(key.id, key.plan);
      throw planMissing(sent, key);
    }
    onUsed(publicId, now);
    return { key, publicId, limits, accountLimits: stored.accountLimits };
  };
}

/** Compares with nobody's digest where there is no secret, so that timing tells nothing. */
function createDigestCheck(
  digestOf: KeyDigest,
): (digest: Uint8Array, stored: StoredSecret | undefined) => boolean {
  const nobody = digestOf("");
  return (digest, stored) => {
    const expected = stored?.secret.digest ?? nobody;
    return expected.length === digest.length && timingSafeEqual(digest, expected);
  };
}

function readBearer(authorization: string | null): string {
  if (authorization === null) return "";
  const separator = authorization.indexOf(" ");
  if (separator !== 6 || authorization.slice(0, 6).toLowerCase() !== "bearer") return "";
  return authorization.slice(7).trim();
}

function whyOver({ key, secret }: StoredSecret, now: number): KeyFault | undefined {
  if (key.revokedAt !== undefined) return { rule: "key_revoked", at: key.revokedAt };
  if (key.disabledAt !== undefined) return { rule: "key_disabled", at: key.disabledAt };
  const isOver = (at: number | undefined): boolean => at !== undefined && at <= now;
  if (isOver(key.expiresAt)) return { rule: "key_expired", at: key.expiresAt };
  if (isOver(secret.expiresAt)) return { rule: "secret_ended", at: secret.expiresAt };
  return undefined;
}
