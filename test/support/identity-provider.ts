import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface IdentityProviderOptions {
  readonly redirectUrl: string;
  /** Whether claims are in the ID token; else only in the user info. */
  readonly putsClaimsIntoIdToken?: boolean;
  /** A fixed port, to replace a provider that has stopped. */
  readonly port?: number;
}

/** The provider's claims about the user. */
export interface ProviderUser {
  readonly sub: string;
  readonly [claim: string]: unknown;
}

export const testClient = { id: "sluice", secret: "a secret of the test's client" };

/** A real OpenID provider on loopback, whose sign-in page signs `user` in without asking. */
export class IdentityProvider implements AsyncDisposable {
  readonly issuer: string;
  /** The user of the next sign-in. */
  user: ProviderUser = { sub: "nobody" };
  /** Replaces bodies of answers, for a provider that misbehaves. */
  tamper: ((path: string, body: string) => string) | undefined;
  readonly #server: Server;

  private constructor(server: Server, options: IdentityProviderOptions) {
    const { port } = server.address() as AddressInfo;
    this.#server = server;
    this.issuer = `http://127.0.0.1:${port}`;
    const provider = this.#createProvider(options);
    const answer = provider.callback();
    server.on("request", (request, response) => {
      this.#tamperWith(request, response);
      if (request.url?.startsWith("/interaction/") === true) {
        void this.#signIn(provider, request, response);
      } else {
        void answer(request, response);
      }
    });
  }

  static async start(options: IdentityProviderOptions): Promise<IdentityProvider> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(options.port ?? 0, "127.0.0.1", resolve);
    });
    return new IdentityProvider(server, options);
  }

  /** The requests of a browser from leaving for the provider to its return: the last location. */
  async visit(url: string): Promise<URL> {
    const cookies = new Map<string, string>();
    let next = new URL(url);
    for (let hops = 0; hops < 10 && next.origin === this.issuer; hops += 1) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(next, { redirect: "manual", headers: { cookie } });
      for (const set of response.headers.getSetCookie()) {
        const [name = "", value = ""] = (set.split(";", 1)[0] ?? "").split(/=(.*)/s);
        cookies.set(name, value);
      }
      const location = response.headers.get("location");
      if (location === null) throw new Error(`${response.status}: ${await response.text()}`);
      next = new URL(location, next);
    }
    return next;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #signIn(
    provider: Provider,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const login = { accountId: this.user.sub };
    await provider.interactionFinished(request, response, { login });
  }

  #createProvider(options: IdentityProviderOptions): Provider {
    const names = ["email", "email_verified", "name", "groups", "account"];
    return new Provider(this.issuer, {
      clients: [
        {
          client_id: testClient.id,
          client_secret: testClient.secret,
          redirect_uris: [options.redirectUrl],
          grant_types: ["authorization_code"],
          response_types: ["code"],
        },
      ],
      cookies: { keys: ["a key of the test's provider"] },
      claims: { openid: ["sub"], profile: names },
      conformIdTokenClaims: options.putsClaimsIntoIdToken !== true,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
      pkce: { required: () => true },
      findAccount: (_context, id) => ({
        accountId: id,
        claims: () => ({ ...this.user, sub: id }),
      }),
      async loadExistingGrant(context) {
        const grant = new context.oidc.provider.Grant({
          clientId: context.oidc.client?.clientId ?? "",
          accountId: context.oidc.session?.accountId ?? "",
        });
        grant.addOIDCScope("openid profile email");
        await grant.save();
        return grant;
      },
    });
  }

  #tamperWith(request: IncomingMessage, response: ServerResponse): void {
    const end = response.end.bind(response) as (body?: unknown) => ServerResponse;
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    response.end = ((body?: unknown) => {
      if (this.tamper === undefined) return end(body);
      if (typeof body !== "string" && !Buffer.isBuffer(body)) return end(body);
      const text = this.tamper(path, body.toString());
      response.setHeader("content-length", Buffer.byteLength(text));
      return end(text);
    }) as typeof response.end;
  }
}
