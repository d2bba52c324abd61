import type { Proxies, Proxy } from "../domain/upstream-settings.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** A variable that names a proxy which cannot be used. The message does not quote it. */
export class ProxyProblem extends Error {
  override readonly name = "ProxyProblem";
}

/**
 * Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in upper or lower case. Throws `ProxyProblem`:
 * a network that needs a proxy must not be tried without it.
 */
export function readProxies(variables: Variables): Proxies {
  const valueOf = (name: string): string | undefined => {
    const value = (variables[name] ?? variables[name.toLowerCase()])?.trim();
    return value === "" ? undefined : value;
  };
  const except = (valueOf("NO_PROXY") ?? "").toLowerCase().split(/[\s,]+/);
  return {
    forHttp: readProxy("HTTP_PROXY", valueOf("HTTP_PROXY")),
    forHttps: readProxy("HTTPS_PROXY", valueOf("HTTPS_PROXY")),
    except: except.filter((entry) => entry !== ""),
  };
}

function readProxy(name: string, value: string | undefined): Proxy | undefined {
  if (value === undefined) return undefined;
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (!URL.canParse(written)) throw new ProxyProblem(`${name}: ${problem}`);
  const { protocol, hostname, port, username, password } = new URL(written);
  if (protocol !== "http:" || hostname === "") throw new ProxyProblem(`${name}: ${problem}`);
  const credential = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? 80 : Number(port),
    authorization:
      credential === ":" ? undefined : `Basic ${Buffer.from(credential).toString("base64")}`,
  };
}

const problem = "must be the address of an HTTP proxy, such as http://proxy.internal:3128";
