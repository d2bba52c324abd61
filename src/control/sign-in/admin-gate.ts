import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { readTokenId } from "../../domain/keys/api-key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { AdminSettings } from "../../config/config.ts";
import type { AdminGate } from "../../edge/dispatch/dispatch-options.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { ControlTransaction } from "../../store/repositories/control-store.ts";
import type { AdminServices } from "../services.ts";
import { fromStorageError } from "../operation/refusals.ts";
import { readCookie } from "./sessions/cookies.ts";
import { localPrincipal, sessionPrincipal, tokenPrincipal } from "./services.ts";
import { addressGroup, forgetOldest, RateWindow } from "./guard/rate-window.ts";
import { checkOrigin, isUnsafe, requireOrigin } from "./request-origin.ts";
import {
  isSameText,
  csrfToken,
  findSession,
  isSessionOver,
  isSightingDue,
  sessionId,
  sha256,
} from "./sessions/sessions.ts";
import type { User } from "../../store/entities.ts";

interface AdminGateOptions extends Pick<AdminServices, "store" | "clock" | "peppers"> {
  readonly settings: Pick<AdminSettings, "sessionIdleMs" | "requestsPerMinute">;
  readonly isOwnHost: (host: string) => boolean;
  /** Of own hosts: not the public one, unless it is configured as another one too. */
  readonly isInside: (host: string) => boolean;
  /** Without a slash at its end, such as `https://console.example.com`. */
  readonly publicUrl: () => string;
  readonly isLocalToken: (text: string) => boolean;
}

const usersPerAccount = 5;
/** More than refusals, so that new credentials at a refused address can still be read. */
const lookupsPerRefusal = 2;

/** Identifies callers by a session, a management token or the local token. */
export function createAdminGate(options: AdminGateOptions): AdminGate {
  const { requestsPerMinute } = options.settings;
  const requests = new RateWindow(requestsPerMinute, options.clock);
  const accounts = new RateWindow(requestsPerMinute * usersPerAccount, options.clock);
  const lookups = new RateWindow(requestsPerMinute * lookupsPerRefusal, options.clock);
  /** Credentials that were valid, the least recently used one first: they are looked up freely. */
  const known = new Map<string, true>();
  const countAddress = (address: string): void => requests.count(`from ${addressGroup(address)}`);
  return {
    checkHost(host, wanted) {
      const isKnown = wanted === "inside" ? options.isInside : options.isOwnHost;
      if (!isKnown(host)) throw unknownHost(host, wanted);
    },
    async identify(admin) {
      const { request, address } = admin;
      const cookie = readCookie(request, "session", options.publicUrl());
      const credential = sha256(request.headers.get("authorization") ?? cookie ?? "");
      if (!known.has(credential)) lookups.count(addressGroup(address));
      const found = await findPrincipal(admin, options).catch((error: unknown) => {
        known.delete(credential);
        const refusal = fromStorageError(error);
        // Only failures count by address, so that they cannot lock out users who share the address.
        if (refusal instanceof GatewayError && refusal.status < 500) countAddress(address);
        throw refusal;
      });
      known.delete(credential);
      known.set(credential, true);
      forgetOldest(known, () => false);
      requests.count(found.countedAs);
      const { accountId } = found.principal;
      if (accountId !== undefined) accounts.count(accountId);
      return found.principal;
    },
    async isStill({ request }, { userId, role, accountId }) {
      try {
        const { principal } = await findPrincipal({ request, isPassive: true }, options);
        const isSame = principal.role === role && principal.accountId === accountId;
        return isSame && principal.userId === userId;
      } catch (error) {
        const refusal = fromStorageError(error);
        return !(refusal instanceof GatewayError) || refusal.status >= 500;
      }
    },
    checkAnonymous({ request, address }) {
      countAddress(address);
      checkOrigin(request, options.publicUrl());
    },
  };
}

interface FoundPrincipal {
  readonly principal: Principal;
  /** The name in the rate window: one for all sessions and tokens of a user. */
  readonly countedAs: string;
}

interface Asking {
  readonly request: Request;
  readonly isPassive?: boolean | undefined;
}

async function findPrincipal(asking: Asking, options: AdminGateOptions): Promise<FoundPrincipal> {
  const { publicUrl, isLocalToken } = options;
  const { request } = asking;
  checkOrigin(request, publicUrl());
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const text = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
    if (isLocalToken(text)) return { principal: localPrincipal(), countedAs: "local" };
    return findByToken(text, asking, options);
  }
  const secret = readCookie(request, "session", publicUrl());
  if (secret === undefined) {
    throw notSignedIn("nothing", "neither a session nor a token was sent");
  }
  if (isUnsafe(request)) requireOrigin(request, publicUrl());
  return findBySession(secret, asking, options);
}

async function findByToken(
  text: string,
  { isPassive = false }: Asking,
  { store, clock, peppers }: AdminGateOptions,
): Promise<FoundPrincipal> {
  const publicId = readTokenId(text);
  if (publicId === undefined) throw notSignedIn("token", "the text is not a management token");
  const { token, user } = await store.read(async (view) => {
    const token = await view.tokens.findByPublicId(publicId);
    return { token, user: token && (await view.users.get(token.userId)) };
  });
  const pepper = peppers.match(text, token?.digest);
  if (pepper === undefined || token === undefined) throw wrongToken("is unknown");
  const now = clock.now();
  if (token.revokedAt !== undefined) throw wrongToken("was revoked");
  if (now >= token.expiresAt) throw wrongToken("has expired");
  const enabled = requireEnabled("token", user);
  const isOutdated = pepper !== peppers.first;
  const { lastUsedAt } = token;
  const isDue = lastUsedAt === undefined || (!isPassive && now - lastUsedAt >= 60_000);
  if (isOutdated || isDue) {
    await noteUse(store, async ({ tokens }) => {
      await tokens.used(token.id, now);
      if (isOutdated) await tokens.renew(token.id, peppers.digest(text));
    });
  }
  return { principal: tokenPrincipal(enabled, token), countedAs: enabled.id };
}

async function findBySession(
  secret: string,
  { request, isPassive = false }: Asking,
  { store, clock, peppers, settings }: AdminGateOptions,
): Promise<FoundPrincipal> {
  const id = sessionId(secret);
  if (id === undefined) throw notSignedIn("session", "the session is malformed");
  const { session, user } = await store.read((view) => findSession(view, id));
  const now = clock.now();
  if (session === undefined || isSessionOver(session, now, settings.sessionIdleMs)) {
    throw notSignedIn("session", "the session has ended");
  }
  const enabled = requireEnabled("session", user);
  if (isUnsafe(request)) {
    const expected = peppers.all.map((pepper) => csrfToken(secret, pepper));
    requireChangeByPage(request, expected);
  }
  if (!isPassive && isSightingDue(session, now, settings.sessionIdleMs)) {
    await noteUse(store, (transaction) => transaction.sessions.seen(id, now));
  }
  return { principal: sessionPrincipal(enabled), countedAs: enabled.id };
}

/** A read-only database must not lock anybody out: the next request tries again. */
async function noteUse(
  store: AdminGateOptions["store"],
  work: (transaction: ControlTransaction) => Promise<void>,
): Promise<void> {
  try {
    await store.change(work);
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
  }
}

function requireEnabled(sent: keyof typeof advice, user: User | undefined): User {
  if (user === undefined || user.disabledAt !== undefined) {
    throw notSignedIn(sent, "the user is disabled");
  }
  return user;
}

/** HTML forms can send neither this header nor this content type. Throws 403 or 415. */
function requireChangeByPage(request: Request, expected: readonly string[]): void {
  const sent = request.headers.get("x-csrf-token") ?? "";
  if (!expected.some((token) => isSameText(sent, token))) {
    throw new GatewayError("wrong_csrf_token", {
      message:
        "The header x-csrf-token is missing or belongs to another session. Send the " +
        "`csrf_token` of GET /admin/v1/session.",
    });
  }
  const type = request.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== undefined && type !== "application/json") {
    throw new GatewayError("unsupported_content_type", {
      message: "Send the body as application/json.",
    });
  }
}

/**
 * Against DNS rebinding: a page's host name could resolve to this listener, which would let the
 * page read answers.
 */
function unknownHost(host: string, wanted: "inside" | undefined): GatewayError {
  const better = wanted === "inside" ? "another host" : "the address of admin.public_url";
  return new GatewayError("unknown_host", {
    message:
      `The admin listener does not answer this to the host '${host}'. Use ${better}, or add the host ` +
      "to admin.hosts in the configuration.",
  });
}

function wrongToken(how: string): GatewayError {
  return notSignedIn("token", `the management token ${how}`);
}

const advice = {
  nothing:
    "Sign in first: send a session's cookie, or a management token in the header " +
    "Authorization: Bearer.",
  token:
    "The management token is wrong, expired or revoked. Create another one with `sluice " +
    "tokens create`, or sign in.",
  session: "The session has ended. Sign in again.",
} as const;

/** The same answer for every wrong credential; the reason is for `sluice explain`. */
function notSignedIn(sent: keyof typeof advice, reason: string): GatewayError {
  return new GatewayError("not_signed_in", {
    message: advice[sent],
    headers: { "www-authenticate": "Bearer" },
    explanation: { rule: "not_signed_in", summary: `Nobody is signed in: ${reason}.` },
  });
}
