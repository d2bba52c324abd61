import { type CredentialForm, readPublicId } from "../domain/keys/api-key.ts";
import type { Clock } from "../domain/clock.ts";
import type { Caller } from "../domain/keys/key.ts";
import type { Environment } from "../domain/model.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RenewedSecret, StoredSecret } from "../store/store.ts";
import {
  invalidKey,
  networkNotAllowed,
  planMissing,
  snapshotStale,
  type KeyFault,
  type SentKey,
} from "./key-refusal.ts";
import type { KeyRing } from "./key-ring.ts";

export interface AuthenticateOptions {
  /** What callers are told a key is sent in. */
  readonly form: CredentialForm;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "now">;
  readonly secrets: Pick<KeyRing, "find" | "findEnded" | "isStale" | "ageMs">;
  /** How long known keys stay valid while the store is unavailable. */
  readonly snapshotMaxAgeMs: number;
  readonly plans: () => ReadonlyMap<string, Plan>;
  readonly onUsed: (publicId: string, at: number) => void;
  /** Called when a secret matched under an older pepper. */
  readonly onOutdated: (secret: RenewedSecret) => void;
  readonly onPlanMissing: (keyId: string, plan: string) => void;
}

/** `text` is the credential; reads the network address only when the key is bound to networks. */
export type Authenticate = (
  text: string,
  environment: Environment,
  address: () => string,
) => Caller;

/**
 * Finds the caller of a request. Every wrong key gets the same 401, and a well-formed one costs the
 * same work whether it is known or not. A key that cannot be checked gets a 503: applications throw
 * good keys away on a 401.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { form, secrets, clock, peppers, onUsed, onOutdated } = options;
  return (text, environment, address) => {
    const publicId = readPublicId(text);
    const sent: SentKey = { text, form, publicId, environment: environment.name };
    if (publicId === undefined) {
      throw invalidKey({ rule: text === "" ? "key_missing" : "key_malformed" }, sent);
    }
    const stored = secrets.find(publicId);
    const pepper = peppers.match(text, stored?.secret.digest);
    if (pepper === undefined || stored === undefined) {
      const ended = secrets.findEnded(publicId);
      const hasEnded = peppers.match(text, ended?.secret.digest) !== undefined;
      if (ended !== undefined && hasEnded) throw invalidKey(ended, sent, ended.key);
      if (stored === undefined && secrets.isStale) throw snapshotStale(sent);
      throw invalidKey({ rule: stored === undefined ? "key_unknown" : "key_mismatch" }, sent);
    }
    const { key } = stored;
    const now = clock.now();
    const fault = faultOf(stored, now);
    if (fault !== undefined) throw invalidKey(fault, sent, key);
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
    if (pepper !== peppers.first) {
      onOutdated({ publicId, stored: stored.secret.digest, renewed: peppers.digest(text) });
    }
    return { key, publicId, limits, accountLimits: stored.accountLimits };
  };
}

function faultOf({ key, secret }: StoredSecret, now: number): KeyFault | undefined {
  if (key.revokedAt !== undefined) return { rule: "key_revoked", at: key.revokedAt };
  if (key.disabledAt !== undefined) return { rule: "key_disabled", at: key.disabledAt };
  const isOver = (at: number | undefined): boolean => at !== undefined && at <= now;
  if (isOver(key.expiresAt)) return { rule: "key_expired", at: key.expiresAt };
  if (isOver(secret.expiresAt)) return { rule: "secret_ended", at: secret.expiresAt };
  return undefined;
}
