import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  adminErrors,
  gatewayErrors,
  type GatewayErrorRow,
} from "../src/domain/errors/gateway-error.ts";
import type { Repeats } from "../src/idempotency/repeatable-calls.ts";
import { messagesError } from "../src/dialects/messages/write-error.ts";
import { adminRoutes } from "../src/control/admin-routes.ts";
import { dataRoutes } from "../src/routes.ts";
import { startGateway } from "../test/support/gateway.ts";
import { anchorsOf, readDocument as read } from "../test/support/documents.ts";
import { responseWorld } from "../test/support/response-world.ts";
import { pipelineOf } from "../test/support/pipeline-fixtures.ts";

/** Texts of the items of a list, each in one line. */
function itemsOf(path: string): readonly string[] {
  const items = [...read(path).matchAll(/^- (.*(?:\n {2}.*)*)/gm)];
  return items.map(([, text = ""]) => text.replaceAll(/\s+/g, " "));
}

test("docs/errors.md lists every error with its status, code and cause, and no other", () => {
  const known: readonly GatewayErrorRow[] = Object.values(gatewayErrors);
  const listed = itemsOf("docs/errors.md").flatMap((item) => {
    const [, status = "", codes = "", about = ""] = /^(\d{3}) (`[^:]*`): (.*)$/.exec(item) ?? [];
    const names = [...codes.matchAll(/`(\w+)`/g)].map(([, code = ""]) => code);
    return names.map((code) => ({
      error: `${status} ${code}`,
      about,
      isAlone: names.length === 1,
    }));
  });
  const named = (row: GatewayErrorRow) => `${row.status} ${row.code ?? "null"}`;
  expect(listed.map(({ error }) => error).toSorted()).toEqual(known.map(named).toSorted());
  const begins = (about: string, when: string) =>
    about.startsWith(when.replace(/(?: \(see below\))?\.$/, ""));
  const untold = known.filter(
    (row) =>
      !listed.some(
        ({ error, about, isAlone }) =>
          error === named(row) && (!isAlone || begins(about, row.when)),
      ),
  );
  expect(untold).toEqual([]);
});

test("docs/errors.md says the type of each error by its status", () => {
  const text = read("docs/errors.md").replaceAll(/\s+/g, " ");
  const [, of429 = "", of5xx = "", ofOthers = ""] =
    /: 429 is (.*?); 5xx is (.*?); others are (.*?)\. /.exec(text) ?? [];
  for (const { status, type } of Object.values(gatewayErrors)) {
    const types = status === 429 ? of429 : status < 500 ? ofOthers : of5xx;
    expect(types).toContain(`\`${type}\``);
  }
});

test("docs/admin-api.md says the types of the control plane's errors by status", () => {
  const [, sentence = ""] = /^(`type` is[^.]*)\./m.exec(read("docs/admin-api.md")) ?? [];
  const types = new Map(
    [...sentence.matchAll(/`(\w+)`\swith\s(\w+)/g)].map(([, type, status]) => [status, type]),
  );
  const defined: readonly GatewayErrorRow[] = Object.values(adminErrors);
  for (const { status, type } of defined) {
    expect(types.get(String(status)) ?? types.get(status < 500 ? "others" : "5xx")).toBe(type);
  }
});

test("docs/errors.md says the status and the type of each error in Anthropic's API", () => {
  const text = itemsOf("docs/errors.md").join("\n");
  const byCode = [...text.matchAll(/`(\w+)` is (\d{3}) `(\w+)`[,.]/g)];
  const byStatus = [...text.matchAll(/(\d{3}|other \dxx) is `(\w+)`/g)];
  const ofCode = new Map(byCode.map(([, code, status, type]) => [code, [Number(status), type]]));
  const ofStatus = new Map(byStatus.map(([, status, type]) => [status, type]));
  expect([ofCode.size, ofStatus.size]).toEqual([3, 10]);
  for (const [name, { status, code }] of Object.entries(gatewayErrors)) {
    const type = ofStatus.get(String(status)) ?? ofStatus.get(`other ${String(status)[0]}xx`);
    const own = messagesError(name as keyof typeof gatewayErrors, status);
    expect([name, ...(ofCode.get(code ?? "") ?? [status, type])]).toEqual([
      name,
      own.status,
      own.type,
    ]);
  }
});

test("docs/admin-api.md lists every operation by roles, and every way to sign in", async () => {
  await using gateway = await startGateway();
  const response = await fetch(`${gateway.adminUrl}/admin/v1/openapi.json`);
  const { paths } = (await response.json()) as {
    paths: Record<string, Record<string, { description: string }>>;
  };
  const defined = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { description }]) => {
      const roles = /For: ([^.]+)\./.exec(description)?.[1] ?? "anybody";
      return `${roles} ${method.toUpperCase()} ${path}`;
    }),
  );
  const text = read("docs/admin-api.md").replaceAll(/\n {2}(?=\S)/g, " ");
  const lists = [...text.matchAll(/^- \*\*([a-z, ]+):\*\* (`\/.*)$/gm)];
  const documented = lists.flatMap(([, roles, list = ""]) =>
    [...list.matchAll(/`(\/[^`]+)`(?: \(([A-Z, ]+)\))?/g)].flatMap(([, path, methods = "GET"]) =>
      methods.split(", ").map((method) => `${roles} ${method} /admin/v1${path}`),
    ),
  );
  expect(documented.toSorted()).toEqual(defined.toSorted());
});

test("docs/api.md has every route of the route table, and no other", () => {
  const { services } = pipelineOf();
  const settings = {
    holdHeadersMs: 1,
    keepAlive: "off",
    keepAliveIntervalMs: 1,
    writeTimeoutMs: 1,
    decodedLimitBytes: 1,
  } as const;
  const whyNotReady = (): undefined => undefined;
  const howDegraded = (): undefined => undefined;
  const renderMetrics = (): string => "";
  const repeats: Repeats = {
    whole: (_, run) => run(),
    streamed: async (_, run, write) => write(await run()),
  };
  const routes = [
    ...dataRoutes({
      services,
      settings: () => settings,
      repeats,
      responses: responseWorld().stored,
      readUse: () => Promise.reject(new Error("no request is served here")),
      whyNotReady,
      howDegraded,
    }).map((route) => ["data", route] as const),
    ...adminRoutes({ renderMetrics, whyNotReady, howDegraded, control: [] }).map(
      (route) => ["admin", route] as const,
    ),
  ];
  const defined = routes.map(([listener, { method, path, access }]) =>
    [listener, method, path.replace("*", "{id}"), access].join(" "),
  );
  // What the admin listener has, too, is said in the words before each list.
  const [, key = "", both = "", admin = ""] =
    /\nWith `Auth(.*?)\nWithout a key, also on the admin(.*?)\nOn the admin(.*?)\n## /s.exec(
      read("docs/api.md"),
    ) ?? [];
  const routesIn = (text: string) =>
    [...text.matchAll(/`([A-Z]+ \/\S+)`/g)].map(([, route]) => route);
  const documented = [
    ...routesIn(key).map((route) => `data ${route} key`),
    ...routesIn(both).flatMap((route) => [`data ${route} public`, `admin ${route} public`]),
    ...routesIn(admin).map((route) => `admin ${route} public`),
  ];
  expect(documented.toSorted()).toEqual(defined.toSorted());
  const paths = routes.map(([, { path }]) => path);
  for (const [, route] of routes) {
    if (route.access !== "key") continue;
    for (const named of Object.values(route.dialect.endpoints)) expect(paths).toContain(named);
  }
});

test("every runtime dependency has its reason in docs/decisions/dependencies.md", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const items = read("docs/decisions/dependencies.md").matchAll(/^- ((?:`[^`]+`,?\s+)*`[^`]+`):/gm);
  const reasons = [...items].flatMap(([, names = ""]) => names.match(/[^`,\s]+/g) ?? []);
  const wanted = [...Object.keys(dependencies), ...Object.keys(devDependencies)];
  expect(wanted.filter((name) => !reasons.includes(name))).toEqual([]);
  expect(Object.keys(dependencies).length).toBeLessThanOrEqual(16);
});

test("docs/observability.md names only events that the log has", () => {
  const section = read("docs/observability.md").split("\n### Events\n")[1]?.split("\n## ")[0] ?? "";
  const items = section.replaceAll(/\n {2}/g, " ").split("\n");
  const named = items.flatMap((item) => {
    const [, list = ""] = /^- ((?:,? ?(?:``.*?``|`[^`]+`))+):/.exec(item) ?? [];
    return [...list.matchAll(/(`+)\s?(.*?)\s?\1/g)].map(([, , text = ""]) => text);
  });
  const messages = eventFiles().flatMap(messagesIn);
  const levels = ["error", "warn", "info", "debug"];
  const isDefined = (text: string): boolean => messages.some((message) => message.test(text));
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((text) => !levels.includes(text) && !isDefined(text))).toEqual([]);
});

function eventFiles(): readonly string[] {
  const root = new URL("..", import.meta.url).pathname;
  return [
    ...new Bun.Glob("src/telemetry/events/*-events.ts").scanSync(root),
    "src/telemetry/events/events.ts",
    "src/process/parent/run-parent.ts",
    "src/process/parent/restart-socket.ts",
  ];
}

/** Texts of more than one word, and single words that are logged; some are part of a message. */
function messagesIn(path: string): readonly RegExp[] {
  const code = read(path).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|^import[\s\S]*?;$/gm, "");
  const texts = [...code.matchAll(/"([^"\n]*)"|`([^`]*)`/g)].map(
    ([, plain, filled]) => plain ?? filled,
  );
  const words = [...code.matchAll(/[lL]og\(\s*[^,]+,\s*"(\w+)"/g)].map(([, word]) => word);
  return [...texts.filter((text = "") => text.includes(" ")), ...words].map(
    (text = "") =>
      new RegExp(
        `^${text
          .split(/\$\{\w+\}/)
          .map((part) => RegExp.escape(part))
          .join(".+")}$`,
      ),
  );
}

const documents = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
documents.push(...new Bun.Glob("docs/**/*.md").scanSync(new URL("..", import.meta.url).pathname));

test("every link between the documents has a target, and so has its anchor", () => {
  const broken: string[] = [];
  for (const path of documents) {
    for (const [, link = ""] of read(path).matchAll(/\]\((?!https?:)([^)\s]+)/g)) {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      const isThere =
        existsSync(new URL(`../${target}`, import.meta.url)) &&
        (anchor === undefined || anchorsOf(read(target)).includes(anchor));
      if (!isThere) broken.push(`${path}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});
