import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { demoCredentials, type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { demoConfigText } from "../../src/config/demo.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { type ServingProcess, startServing } from "../support/sluice-process.ts";
import { quietPort } from "../support/free-port.ts";
import { testWhere } from "../support/requirement.ts";
import { until } from "../support/until.ts";

const chromiumPath = "/usr/bin/chromium";
export const testInBrowser = testWhere(await Bun.file(chromiumPath).exists(), "no Chromium");

export const operator = { email: "olga@example.com", password: "correct horse battery" };

/** The demo in processes of its own, an operator, and a browser. */
export interface ConsoleWorld extends AsyncDisposable {
  readonly gateway: ServingProcess;
  readonly dataDir: string;
  readonly browser: Browser;
  /** The provider of a gateway that has a configuration. */
  readonly simulator: Simulator | undefined;
  /** The API key that the demo has printed. */
  readonly demoKey: string;
  /** A request of the admin API by the operator of the machine; fails for an error. */
  admin(method: string, path: string, body?: unknown): Promise<AdminAnswer>;
  /** A new browser without cookies. */
  visit(options?: VisitOptions): Promise<Visit>;
  /** The same, signed in with a password, at the keys or at another page. */
  signedIn(user?: typeof operator, options?: VisitOptions): Promise<Visit>;
}

// Tests read what they need of it.
// oxlint-disable-next-line typescript/no-explicit-any
export type AdminAnswer = any;

export interface VisitOptions {
  readonly theme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
  /** Where it begins once it is signed in. */
  readonly path?: string;
  /** Instead of the loopback address, which counts as secure: `http://console.test:PORT`. */
  readonly host?: string;
}

export interface StartOptions {
  /** The section `admin` of a configuration, by the port of the admin listener; else the demo runs. */
  readonly admin?: (port: number) => object;
  /** More models than those of the demo, by alias. */
  readonly models?: object;
  /** Other sections of the configuration. */
  readonly sections?: object;
  /** Nobody is made an operator, so that a configuration has none. */
  readonly isNew?: boolean;
}

export async function startConsole({
  admin: section,
  models,
  sections,
  isNew = false,
}: StartOptions = {}): Promise<ConsoleWorld> {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-console-"));
  const port = quietPort();
  const listen = { listenData: `127.0.0.1:${quietPort()}`, listenAdmin: `127.0.0.1:${port}` };
  const isDemo = section === undefined && models === undefined;
  const simulator = isDemo ? undefined : startSimulator();
  const options = [
    "--data-dir",
    dataDir,
    "--data",
    listen.listenData,
    "--admin",
    listen.listenAdmin,
  ];
  if (simulator !== undefined) {
    const provider = { endpoint: simulator.origin, region: "us-east-1", ...demoCredentials };
    const text = demoConfigText({ simulator: provider, dataDir, ...listen });
    const demo = JSON.parse(text);
    const config = {
      ...demo,
      ...(section !== undefined && { admin: section(port) }),
      models: { ...demo.models, ...models },
      ...sections,
      telemetry: { log_level: "info" },
    };
    const path = join(dataDir, "sluice.yaml");
    await Bun.write(path, JSON.stringify(config));
    options.push("--config", path);
  }
  const gateway = await startServing(options);
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox", "--host-resolver-rules=MAP console.test 127.0.0.1"],
  });
  const admin: ConsoleWorld["admin"] = async (method, path, body) => {
    const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${readLocalAccess(dataDir)?.token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    const answer: AdminAnswer = JSON.parse(text);
    // oxlint-disable-next-line typescript/no-unsafe-return
    return answer;
  };
  const visits: BrowserContext[] = [];
  const visit: ConsoleWorld["visit"] = async (wanted = {}) => {
    const made = await openVisit({ browser, gateway, ...wanted });
    visits.push(made.page.context());
    return made;
  };
  await until(() => !isDemo || /^ {2}API key/m.test(gateway.text()));
  const [, demoKey = ""] = /API key {2}(\S+)/.exec(gateway.text()) ?? [];
  if (!isNew) await admin("POST", "/users", { ...operator, role: "operator" });
  return {
    gateway,
    dataDir,
    browser,
    simulator,
    demoKey,
    admin,
    visit,
    async signedIn(user = operator, wanted) {
      const made = await visit(wanted);
      await made.page.goto(`${made.url}${wanted?.path ?? "/keys"}`);
      await made.signIn(user);
      return made;
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await gateway[Symbol.asyncDispose]();
      await simulator?.[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A customer with its holder, an application, and a key with limits of its own. */
export interface Owner {
  readonly accountId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly key: string;
}

export interface NewOwner {
  readonly name: string;
  readonly application: string;
  readonly user: typeof operator;
  readonly requestsPerMinute: number;
  readonly keyName?: string;
}

export async function createOwner(
  { admin }: Pick<ConsoleWorld, "admin">,
  { name, application, user, requestsPerMinute, keyName }: NewOwner,
): Promise<Owner> {
  const { id: accountId } = await admin("POST", "/accounts", { name });
  await admin("POST", "/users", { ...user, role: "account_holder", account_id: accountId });
  const { id: applicationId } = await admin("POST", "/applications", {
    account_id: accountId,
    environment: "local",
    name: application,
  });
  const { api_key: key, key: view } = await admin("POST", "/keys", {
    application_id: applicationId,
    plan: "enterprise",
    ...(keyName !== undefined && { name: keyName }),
    limits: { requests_per_minute: requestsPerMinute, tokens_per_minute: 10_000_000 },
  });
  return { accountId, applicationId, keyId: view.id, key };
}

/** A browser at the console, and what it has noticed. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Of the console, without a slash at the end. */
  readonly url: string;
  /** Requests for the API since the last call of this. */
  apiRequests(): string[];
  signIn(user: typeof operator): Promise<void>;
  /** Fails for anything that axe finds on the page as it is. */
  expectAccessible(): Promise<void>;
  /** Fails for violations of the policy, for errors, and for secrets where they must not be. */
  expectClean(): Promise<void>;
}

interface VisitParts extends VisitOptions {
  readonly browser: Browser;
  readonly gateway: ServingProcess;
}

async function openVisit({ browser, gateway, ...wanted }: VisitParts): Promise<Visit> {
  const { theme = "light", width = 1440, height = 900, host } = wanted;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  await context.addInitScript(noteViolations);
  const page = await context.newPage();
  const { port } = new URL(gateway.adminUrl);
  const url = host === undefined ? gateway.adminUrl : `http://${host}:${port}`;
  const told: string[] = [];
  const addresses: string[] = [];
  let apiRequests: string[] = [];
  page.on("console", (message) => told.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => told.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    addresses.push(request.url());
    if (!pathname.startsWith("/admin/")) return;
    apiRequests.push(`${request.method()} ${pathname}${search}`);
  });
  page.on("framenavigated", (frame) => addresses.push(frame.url()));
  const expectClean = async (): Promise<void> => {
    expect(await page.evaluate("window.violations ?? []")).toEqual([]);
    const bad = told.filter((line) => /^(error|warning)/.test(line) && !isExpected(line));
    expect(bad).toEqual([]);
    expect(
      addresses.filter((address) => !address.startsWith(url) && !/^(about|blob):/.test(address)),
    ).toEqual([]);
    const kept = await page.evaluate(
      "JSON.stringify([{...localStorage}, {...sessionStorage}, document.title])",
    );
    for (const text of [...told, ...addresses, String(kept)]) {
      expect(text).not.toMatch(/sk-slc_\w{9,}|slc-mgt_\w{20,}/);
    }
  };
  return {
    page,
    url,
    apiRequests() {
      const all = apiRequests;
      apiRequests = [];
      return all;
    },
    async signIn({ email, password }) {
      await page.getByLabel("Email address").fill(email);
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
    },
    expectAccessible: () => expectAccessible(page),
    expectClean,
    async [Symbol.asyncDispose]() {
      await context.close();
    },
  };
}

/** The browser itself writes a line for each answer that is an error, and some on plain HTTP. */
function isExpected(line: string): boolean {
  return (
    line.includes("Failed to load resource: the server responded with a status of 4") ||
    line.includes("The Cross-Origin-Opener-Policy header has been ignored")
  );
}

const noteViolations = `
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(event.effectiveDirective + " " + event.blockedURI + " " + event.sample));
`;

const axeSource = readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const tags = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"];

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate("document.fonts.ready");
  await page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))");
  await page.evaluate(axeSource);
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(tags)} })`,
  )) as AxeResult;
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  );
  expect(found).toEqual([]);
}

/** Texts that would run, or break a page or a table, if they were not shown as text. */
export const canaries: readonly string[] = [
  `<img src=x onerror="window.violations.push('ran')">`,
  "javascript:window.violations.push(1)",
  "{{7*7}}${7*7}",
  `=HYPERLINK("http://evil.example","x")`,
  "@SUM(1)",
  `"><script>window.violations.push(2)</script>`,
];
