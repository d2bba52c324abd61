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
import type { LiveSecret } from "./key-table.ts";

/** What a key must be besides known. */
export interface KeyRules {
  readonly clock: Pick<Clock, "now">;
  readonly secrets: Pick<KeyRing, "ageMs">;
  /** How long known keys stay valid while the store is unavailable. */
  readonly snapshotMaxAgeMs: number;
  readonly plans: () => ReadonlyMap<string, Plan>;
  readonly onPlanMissing: (keyId: string, plan: string) => void;
}

export interface AuthenticateOptions extends KeyRules {
  /** What callers are told a key is sent in. */
  readonly form: CredentialForm;
  readonly peppers: Peppers;
  readonly secrets: Pick<KeyRing, "find" | "findEnded" | "isStale" | "ageMs">;
  readonly onUsed: (publicId: string, at: number) => void;
  /** Called when a secret matched under an older pepper. */
  readonly onOutdated: (secret: RenewedSecret) => void;
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
    const sent: Arrival = { text, form, publicId, environment: environment.name, address };
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
    const caller = callerOf(stored, sent, options);
    onUsed(publicId, clock.now());
    if (pepper !== peppers.first) {
      onOutdated({ publicId, stored: stored.secret.digest, renewed: peppers.digest(text) });
    }
    return caller;
  };
}

interface Arrival extends SentKey {
  readonly address: () => string;
}

/** Throws what callers get whose key does not work here and now. */
function callerOf(
  stored: LiveSecret,
  sent: Arrival,
  { secrets, clock, snapshotMaxAgeMs, plans, onPlanMissing }: KeyRules,
): Caller {
  const { key, secret, accountLimits, budgets, networks } = stored;
  const fault = faultOf(stored, clock.now());
  if (fault !== undefined) throw invalidKey(fault, sent, key);
  if (key.environment !== sent.environment) {
    throw invalidKey({ rule: "other_environment" }, sent, key);
  }
  if (secrets.ageMs > snapshotMaxAgeMs) throw snapshotStale(sent, key);
  if (networks?.has(sent.address()) === false) throw networkNotAllowed(sent, key, sent.address());
  const limits = key.limits ?? plans().get(key.plan)?.limits;
  if (limits === undefined) {
    onPlanMissing(key.id, key.plan);
    throw planMissing(sent, key);
  }
  return { key, publicId: secret.publicId, limits, accountLimits, budgets };
}

export interface TicketOptions extends KeyRules {
  readonly form: CredentialForm;
  readonly secrets: Pick<KeyRing, "longestOf" | "isStale" | "ageMs">;
  /** Whether a text is the ticket, which only the control thread has. */
  readonly isTicket: (text: string) => boolean;
}

/**
 * For the playground: the credential is the ticket, the id of a key and the address of the user, with
 * spaces between. All rules of the key apply but that for its secret.
 */
export function createTicketAuthenticate(options: TicketOptions): Authenticate {
  const { form, secrets, isTicket } = options;
  return (text, environment) => {
    const [ticket = "", keyId = "", from = ""] = text.split(" ");
    const address = (): string => from;
    // No part of the text is told to anybody.
    const sent = { text: "", form, publicId: undefined, environment: environment.name, address };
    const stored = isTicket(ticket) ? secrets.longestOf(keyId) : undefined;
    if (stored === undefined) throw invalidKey({ rule: "key_unknown" }, sent);
    return { ...callerOf(stored, sent, options), via: "playground" };
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
