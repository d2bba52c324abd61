import type * as Client from "openid-client";
import type { SsoSettings } from "../../../config/config.ts";
import { randomBase62, type RandomBytes } from "../../../domain/keys/base62.ts";
import type { Clock } from "../../../domain/clock.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { isLoopback } from "../../../domain/network.ts";
import { isSameText, sha256 } from "../sessions/sessions.ts";

/** How long a user may take at the identity provider. */
export const signOnLifetimeMs = 10 * 60 * 1000;
/** Most pending sign-ons; the oldest one is dropped first. */
const pendingLimit = 10_000;
const discoveryLifetimeMs = 60 * 60 * 1000;
const providerTimeoutSeconds = 10;

interface SingleSignOnOptions {
  readonly settings: SsoSettings;
  readonly redirectUrl: () => string;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

export interface SignOnClaims {
  readonly issuer: string;
  readonly subject: string;
  /** The claims of the ID token and the user info. */
  readonly claims: Readonly<Record<string, unknown>>;
}

interface PendingSignOn {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly expiresAt: number;
}

interface Discovery {
  readonly provider: Promise<Client.Configuration>;
  readonly expiresAt: number;
}

/** OpenID Connect: the code flow with PKCE, state and nonce, each bound to one browser. */
export class SingleSignOn {
  readonly #options: SingleSignOnOptions;
  /** By the digest of the cookie's value, oldest first. */
  readonly #pending = new Map<string, PendingSignOn>();
  #discovery: Discovery | undefined;

  constructor(options: SingleSignOnOptions) {
    this.#options = options;
  }

  /** The address to send the browser to, and the value of its cookie. Throws 503. */
  async begin(): Promise<{ readonly url: string; readonly binding: string }> {
    const { settings, redirectUrl, clock, random } = this.#options;
    const client = await import("openid-client");
    const provider = await this.#discover(client);
    const binding = randomBase62(43, random);
    const pending: PendingSignOn = {
      state: randomBase62(43, random),
      nonce: randomBase62(43, random),
      verifier: randomBase62(64, random),
      expiresAt: clock.monotonic() + signOnLifetimeMs,
    };
    this.#remember(sha256(binding), pending);
    const url = client.buildAuthorizationUrl(provider, {
      redirect_uri: redirectUrl(),
      scope: settings.scopes.join(" "),
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: "S256",
    });
    return { url: url.href, binding };
  }

  /**
   * The claims of the returning user. `query` is that of the callback, with its question mark.
   * Undefined when this browser has no such pending sign-on. Throws 401 and 503.
   */
  async finish(query: string, binding: string | undefined): Promise<SignOnClaims | undefined> {
    const pending = this.#take(query, binding);
    if (pending === undefined) return undefined;
    const client = await import("openid-client");
    const provider = await this.#discover(client);
    try {
      const tokens = await client.authorizationCodeGrant(
        provider,
        new URL(this.#options.redirectUrl() + query),
        {
          expectedState: pending.state,
          expectedNonce: pending.nonce,
          pkceCodeVerifier: pending.verifier,
          idTokenExpected: true,
        },
      );
      const claims = tokens.claims();
      if (claims === undefined) throw new TypeError("no ID token");
      const { userinfo_endpoint: userInfo } = provider.serverMetadata();
      const more =
        userInfo === undefined || this.#isEnough(claims)
          ? {}
          : await client.fetchUserInfo(provider, tokens.access_token, claims.sub);
      return { issuer: claims.iss, subject: claims.sub, claims: { ...more, ...claims } };
    } catch (error) {
      throw readFailure(client, error);
    }
  }

  /** Removes the sign-on, so that a code cannot be sent twice. */
  #take(query: string, binding: string | undefined): PendingSignOn | undefined {
    if (binding === undefined) return undefined;
    const id = sha256(binding);
    const pending = this.#pending.get(id);
    const state = new URLSearchParams(query).get("state") ?? "";
    // A link from another site with a made-up state must not end a pending sign-on.
    if (pending === undefined || !isSameText(state, pending.state)) return undefined;
    this.#pending.delete(id);
    return this.#options.clock.monotonic() < pending.expiresAt ? pending : undefined;
  }

  #remember(id: string, pending: PendingSignOn): void {
    const now = this.#options.clock.monotonic();
    for (const [oldId, old] of this.#pending) {
      if (now < old.expiresAt && this.#pending.size < pendingLimit) break;
      this.#pending.delete(oldId);
    }
    this.#pending.set(id, pending);
  }

  /** False when claims may be in the user info only, as some providers do. */
  #isEnough(claims: Client.IDToken): boolean {
    const { roleClaim, accountClaim } = this.#options.settings;
    return ["email", roleClaim, accountClaim].every((name) => claims[name] !== undefined);
  }

  /** After a failure, the next sign-on tries again. */
  #discover(client: typeof Client): Promise<Client.Configuration> {
    const now = this.#options.clock.monotonic();
    if (this.#discovery !== undefined && now < this.#discovery.expiresAt) {
      return this.#discovery.provider;
    }
    const provider = discover(client, this.#options.settings);
    const discovery = { provider, expiresAt: now + discoveryLifetimeMs };
    this.#discovery = discovery;
    provider.catch(() => {
      if (this.#discovery === discovery) this.#discovery = undefined;
    });
    return provider;
  }
}

async function discover(
  client: typeof Client,
  settings: SsoSettings,
): Promise<Client.Configuration> {
  const issuer = new URL(settings.issuer);
  // Plain HTTP is allowed for a provider on the same machine only.
  const isPlain = issuer.protocol === "http:" && isLoopback(issuer.hostname);
  const insecure = isPlain ? [client.allowInsecureRequests] : [];
  try {
    return await client.discovery(
      issuer,
      settings.clientId,
      undefined,
      clientAuthentication(client, settings),
      {
        timeout: providerTimeoutSeconds,
        // Signatures are checked although the ID token comes from the provider itself.
        execute: [...insecure, client.enableNonRepudiationChecks],
      },
    );
  } catch (cause) {
    throw unavailable(
      "The identity provider is unreachable, or its discovery document does not match " +
        "admin.sso.issuer.",
      cause,
    );
  }
}

/** Basic, the default of discovery, unless the provider lists only other methods. */
function clientAuthentication(client: typeof Client, settings: SsoSettings): Client.ClientAuth {
  const secret = settings.clientSecret?.reveal();
  if (secret === undefined) return client.None();
  const basic = client.ClientSecretBasic(secret);
  const post = client.ClientSecretPost(secret);
  return (...request) => {
    const [server] = request;
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const write = methods.includes("client_secret_basic") ? basic : post;
    write(...request);
  };
}

function readFailure(client: typeof Client, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  if (cause instanceof client.AuthorizationResponseError) {
    return refused(`The identity provider refused: ${plain(cause.error)}.`, cause);
  }
  if (cause instanceof client.ResponseBodyError) {
    // The code was used before, too old or issued to another client. Other errors come from the
    // settings.
    if (cause.error === "invalid_grant") return refused("The sign-on has expired.", cause);
    return unavailable(`The identity provider answered '${plain(cause.error)}'.`, cause);
  }
  if (cause instanceof client.ClientError && untrustworthy.has(cause.code ?? "")) {
    return refused("The identity provider's response does not belong to this sign-on.", cause);
  }
  return unavailable("The identity provider's response is invalid.", cause);
}

/** Codes for answers that failed verification. */
const untrustworthy: ReadonlySet<string> = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
  "OAUTH_KEY_SELECTION_FAILED",
]);

/** Repeats only codes in the protocol's own format. */
function plain(code: string): string {
  return /^[\w.:-]{1,100}$/.test(code) ? code : "an error";
}

function refused(what: string, cause: unknown): GatewayError {
  return new GatewayError("wrong_credentials", { message: `${what} Please start again.`, cause });
}

function unavailable(what: string, cause: unknown): GatewayError {
  return new GatewayError("single_sign_on_unavailable", {
    message: `${what} Please try again, or contact the operator.`,
    headers: { "retry-after": "5" },
    cause,
  });
}
