import type { AdminSettings, SsoSettings } from "../../src/config/config.ts";
import { Bootstrap } from "../../src/control/sign-in/bootstrap/bootstrap.ts";
import { createAdminGate } from "../../src/control/sign-in/admin-gate.ts";
import { createRunOperation } from "../../src/control/operation/run-operation.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { signInRoutes } from "../../src/control/sign-in/routes.ts";
import type { SignInRefusal } from "../../src/control/sign-in/services.ts";
import { sessionOperations } from "../../src/control/users/sessions.ts";
import { tokenOperations } from "../../src/control/users/tokens.ts";
import { userOperations } from "../../src/control/users/users.ts";
import type { AdminGate } from "../../src/edge/dispatch/dispatch-options.ts";
import { CorsPolicy } from "../../src/edge/cors.ts";
import { createDispatch, type Dispatch } from "../../src/edge/dispatch/dispatch.ts";
import { RouteTable } from "../../src/edge/dispatch/route-table.ts";
import type { Route } from "../../src/edge/dispatch/route.ts";
import { createNetworkList } from "../../src/domain/network.ts";
import { userOf } from "../contracts/control-fixtures.ts";
import { SqliteConnection } from "../../src/store/sqlite/connection/connection.ts";
import { ControlStore } from "../../src/store/repositories/control-store.ts";
import { requestOf, runPermitted, type FixtureRequest } from "./admin-fixture.ts";
import { ManualClock } from "./manual-clock.ts";
import { bodyLimitsOf } from "./body-limits.ts";
import { testPeppers } from "./test-peppers.ts";
import type { User } from "../../src/store/entities.ts";

export const testPassword = "nine purple lamps hum";

/** The settings of a test of signing in; the rest is as in production. */
export interface SignInOptions {
  readonly settings?: Partial<AdminSettings>;
  readonly sso?: SsoSettings;
  readonly publicUrl?: string;
  readonly localToken?: string;
  /** A gateway that has ended: this one is its next start. */
  readonly store?: ControlStore;
  /** In addition to those of signing in. */
  readonly routes?: readonly Route[];
}

/** The control plane's sign-in over the real dispatch, in one process and without a socket. */
export class SignInHarness implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly connection = new SqliteConnection({
    path: ":memory:",
    busyTimeoutMs: 100,
  });
  readonly store: ControlStore;
  readonly passwords = cheapPasswords();
  readonly refusals: SignInRefusal[] = [];
  readonly bootstrapTokens: string[] = [];
  readonly publicUrl: string;
  readonly bootstrap: Bootstrap;
  readonly gate: AdminGate;
  readonly #dispatch: Dispatch;
  readonly #settings: AdminSettings;

  constructor(options: SignInOptions = {}) {
    this.store = options.store ?? new ControlStore(this.connection, testPeppers());
    const { clock, store, passwords } = this;
    this.publicUrl = options.publicUrl ?? "https://console.example.com";
    const settings = { ...defaults, sso: options.sso, ...options.settings };
    this.#settings = settings;
    this.bootstrap = new Bootstrap({
      store,
      clock,
      random: this.random,
      token: settings.bootstrapToken,
      onBootstrapToken: ({ text }) => this.bootstrapTokens.push(text),
    });
    const publicUrl = (): string => this.publicUrl;
    const isLocalToken = (text: string): boolean => text === options.localToken;
    const isOwnHost = (): boolean => true;
    const peppers = testPeppers();
    const parts = { store, clock, peppers, settings };
    this.gate = createAdminGate({
      ...parts,
      publicUrl,
      isOwnHost,
      isInside: isOwnHost,
      isLocalToken,
    });
    const routes = signInRoutes({
      store,
      clock,
      peppers,
      settings,
      publicUrl,
      passwords,
      random: this.random,
      bootstrap: this.bootstrap,
      onKeysChanged: () => Promise.resolve(undefined),
      onSignInRefused: (refusal) => this.refusals.push(refusal),
    });
    this.#dispatch = this.#createDispatch([...routes, ...(options.routes ?? [])]);
  }

  random(this: void, target: Uint8Array): Uint8Array {
    return crypto.getRandomValues(target);
  }

  digest(this: void, text: string): Uint8Array {
    return testPeppers().first.digest(text);
  }

  async addUser(id: string, values: Partial<User> = {}): Promise<User> {
    const passwordHash = await this.passwords.hash(testPassword);
    const user = userOf(id, { passwordHash, ...values });
    await this.store.change(({ users }) => users.insert(user));
    return user;
  }

  /** Runs an operation of users, tokens or sessions; resolves to its answer. */
  async run(operationId: string, request: FixtureRequest = {}): Promise<unknown> {
    const { store, clock, random, passwords } = this;
    const onKeysChanged = (): Promise<undefined> => Promise.resolve(undefined);
    const publicUrl = (): string => this.publicUrl;
    const parts = { store, clock, random, peppers: testPeppers(), passwords, onKeysChanged };
    const services = { ...parts, publicUrl };
    const operations = [
      ...userOperations(services),
      ...tokenOperations(services),
      ...sessionOperations({ ...services, settings: this.#settings }),
    ];
    const operation = operations.find(({ id }) => id === operationId);
    if (operation === undefined) throw new Error(`there is no operation ${operationId}`);
    return (await runPermitted(createRunOperation(services), operation, requestOf(request))).body;
  }

  async send(request: Request, address = "192.0.2.1"): Promise<Response> {
    request.headers.set("host", new URL(this.publicUrl).host);
    const connections = {
      keepAliveHint: "timeout=70",
      pauseIdleTimer() {},
      resumeIdleTimer() {},
      extendIdleTimer() {},
      cutSoon: () => true,
      peerAddress: () => address,
    };
    const segments = new URL(request.url).pathname.slice(1).split("/");
    return this.#dispatch(request, connections, { segments });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.connection.close();
  }

  #createDispatch(routes: readonly Route[]): Dispatch {
    let requests = 0;
    const bodyLimits = bodyLimitsOf();
    const edge = {
      cors: new CorsPolicy([]),
      bodyLimits,
      maxHeaders: 100,
      trustedProxies: createNetworkList([]),
    };
    return createDispatch({
      routes: new RouteTable(routes, "admin"),
      clock: this.clock,
      newRequestId: () => `req_${(requests += 1)}`,
      gate: this.gate,
      edge: () => edge,
      shutdown: { closesConnections: false, isRefusing: false },
      onHandled() {},
    });
  }
}

const defaults: AdminSettings = {
  publicUrl: undefined,
  hosts: [],
  bootstrapToken: undefined,
  sessionIdleMs: 30 * 60_000,
  sessionAbsoluteMs: 12 * 3_600_000,
  requestsPerMinute: 600,
  signInsPerMinute: 5,
  sso: undefined,
};

export interface BrowserRequest {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A browser with the console open: keeps cookies, sends its origin and the CSRF token. */
export class TestBrowser {
  readonly cookies = new Map<string, string>();
  readonly #harness: SignInHarness;
  readonly #address: string;
  csrfToken: string | undefined;

  constructor(harness: SignInHarness, address = "192.0.2.1") {
    this.#harness = harness;
    this.#address = address;
  }

  /** `undefined` as a header's value would be sent as a text: omit such a header. */
  async send(path: string, { method = "GET", body, headers = {} }: BrowserRequest = {}) {
    const { publicUrl } = this.#harness;
    const sent = new Headers({
      ...(this.cookies.size > 0 && { cookie: this.#cookieHeader() }),
      ...(method !== "GET" && { origin: publicUrl, "sec-fetch-site": "same-origin" }),
      ...(this.csrfToken !== undefined && { "x-csrf-token": this.csrfToken }),
      ...(body !== undefined && { "content-type": "application/json" }),
    });
    for (const [name, value] of Object.entries(headers)) {
      if (value === "") sent.delete(name);
      else sent.set(name, value);
    }
    const request = new Request(publicUrl + path, {
      method,
      headers: sent,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const response = await this.#harness.send(request, this.#address);
    for (const cookie of response.headers.getSetCookie()) this.#keep(cookie);
    return response;
  }

  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>) {
    return this.send(path, { method: "POST", body, headers: headers ?? {} });
  }

  async signIn(email: string, password = testPassword): Promise<Response> {
    const response = await this.post("/admin/v1/session", { email, password });
    if (response.ok) await this.#readToken(response);
    return response;
  }

  async #readToken(response: Response): Promise<void> {
    const answer = (await response.clone().json()) as { csrf_token: string };
    this.csrfToken = answer.csrf_token;
  }

  #cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(cookie: string): void {
    const [pair = "", ...attributes] = cookie.split("; ");
    const separator = pair.indexOf("=");
    const name = pair.slice(0, separator);
    if (attributes.includes("Max-Age=0")) this.cookies.delete(name);
    else this.cookies.set(name, pair.slice(separator + 1));
  }
}

export interface SessionAnswer {
  readonly user: { readonly id: string; readonly email: string; readonly role: string };
  readonly csrf_token: string;
  readonly expires_at: string;
}

export async function sessionOf(response: Response): Promise<SessionAnswer> {
  return (await response.json()) as SessionAnswer;
}

/** The status and the error's code. */
export async function refusalOf(response: Response): Promise<readonly [number, string | null]> {
  const { error } = (await response.json()) as { error: { code: string | null } };
  return [response.status, error.code];
}
