/**
 * `session` authenticates; `sign_on` binds a single sign-on to the browser that began it, and is lax
 * because the identity provider sends the browser back from its own site.
 */
const sameSite = { session: "strict", sign_on: "lax" } as const;
type CookieName = keyof typeof sameSite;

/** A value of the header `set-cookie`. `publicUrl` is the console's address for browsers. */
export function writeCookie(
  name: CookieName,
  { publicUrl, value, maxAgeMs }: { publicUrl: string; value: string; maxAgeMs: number },
): string {
  return new Bun.Cookie(fullName(name, publicUrl), value, {
    path: "/",
    maxAge: Math.floor(maxAgeMs / 1000),
    httpOnly: true,
    sameSite: sameSite[name],
    secure: isSecure(publicUrl),
  }).serialize();
}

/** The first cookie of the name, as browsers send the most specific one first. */
export function readCookie(
  { headers }: Request,
  name: CookieName,
  publicUrl: string,
): string | undefined {
  const cookies = new Bun.CookieMap(headers.get("cookie") ?? "");
  return cookies.get(fullName(name, publicUrl)) ?? undefined;
}

/**
 * The prefix makes browsers refuse the cookie from other hosts of the domain and over plain HTTP.
 */
function fullName(name: CookieName, publicUrl: string): string {
  return `${isSecure(publicUrl) ? "__Host-" : ""}sluice_${name}`;
}

function isSecure(publicUrl: string): boolean {
  return publicUrl.startsWith("https:");
}
