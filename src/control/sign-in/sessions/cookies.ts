/** Names and attributes of the cookies, by the address at which browsers reach the console. */
export interface CookiePolicy {
  readonly session: string;
  /** Tells a browser in which a user signed in before. */
  readonly known: string;
  /** Binds a single sign-on to the browser that began it. */
  readonly signOn: string;
  readonly isSecure: boolean;
}

export function cookiePolicy(publicUrl: string): CookiePolicy {
  const isSecure = publicUrl.startsWith("https:");
  // The prefix makes browsers refuse the cookie from other hosts of the domain and over plain HTTP.
  const prefix = isSecure ? "__Host-" : "";
  return {
    session: `${prefix}sluice_session`,
    known: `${prefix}sluice_known`,
    signOn: `${prefix}sluice_sign_on`,
    isSecure,
  };
}

/** A value of the header `set-cookie`. */
export function sessionCookie(policy: CookiePolicy, value: string, maxAgeMs: number): string {
  return write({ policy, name: policy.session, value, maxAgeMs, sameSite: "Strict" });
}

export function knownCookie(policy: CookiePolicy, value: string, maxAgeMs: number): string {
  return write({ policy, name: policy.known, value, maxAgeMs, sameSite: "Strict" });
}

export function endedSessionCookie(policy: CookiePolicy): string {
  return sessionCookie(policy, "", 0);
}

/** Lax, not Strict: the identity provider sends the browser back from its own site. */
export function signOnCookie(policy: CookiePolicy, value: string, maxAgeMs: number): string {
  return write({ policy, name: policy.signOn, value, maxAgeMs, sameSite: "Lax" });
}

/** The first cookie of the name, as browsers send the most specific one first. */
export function readCookie(request: Request, name: string): string | undefined {
  for (const pair of (request.headers.get("cookie") ?? "").split(";")) {
    const separator = pair.indexOf("=");
    if (separator > 0 && pair.slice(0, separator).trim() === name) {
      return pair.slice(separator + 1).trim();
    }
  }
  return undefined;
}

interface Cookie {
  readonly policy: CookiePolicy;
  readonly name: string;
  readonly value: string;
  readonly maxAgeMs: number;
  readonly sameSite: "Strict" | "Lax";
}

function write({ policy, name, value, maxAgeMs, sameSite }: Cookie): string {
  const attributes = [
    `${name}=${value}`,
    "Path=/",
    `Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    "HttpOnly",
    `SameSite=${sameSite}`,
    ...(policy.isSecure ? ["Secure"] : []),
  ];
  return attributes.join("; ");
}
