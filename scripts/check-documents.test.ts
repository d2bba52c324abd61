import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { adminErrors } from "../src/domain/errors/admin-error.ts";
import { gatewayErrors } from "../src/domain/errors/gateway-error.ts";
import type { AnswerSharing } from "../src/idempotency/repeatable-calls.ts";
import { adminRoutes, dataRoutes } from "../src/routes.ts";
import { startGateway } from "../test/support/gateway.ts";
import { plain, readDocument as read, tableRows } from "../test/support/documents.ts";
import { pipelineOf } from "../test/support/pipeline-fixtures.ts";

test("docs/errors.md lists every error with its status, code, type and cause, and no other", () => {
  const documented = tableRows("docs/errors.md")
    .filter(([status]) => /^\d{3}$/.test(status ?? ""))
    .map(([status, code, type, when]) => [status, plain(code), plain(type), when].join(" | "));
  const defined = Object.values(gatewayErrors).map(({ status, code, type, when }) =>
    [status, code ?? "null", type, when].join(" | "),
  );
  expect(documented.toSorted()).toEqual(defined.toSorted());
});

test("docs/admin-api.md lists every error of the control plane, and no other", () => {
  const documented = tableRows("docs/admin-api.md")
    .filter(([status]) => /^\d{3}$/.test(status ?? ""))
    .map(([status, code, type, when]) => [status, plain(code), plain(type), when].join(" | "));
  const defined = Object.values(adminErrors).map(({ status, code, type, when }) =>
    [status, code, type, when].map((cell) => String(cell)).join(" | "),
  );
  expect(documented.map(plain).toSorted()).toEqual(defined.map(plain).toSorted());
});

test("docs/admin-api.md lists every operation with its roles, and every way to sign in", async () => {
  await using gateway = await startGateway();
  const response = await fetch(`${gateway.adminUrl}/admin/v1/openapi.json`);
  const { paths } = (await response.json()) as {
    paths: Record<string, Record<string, { summary: string; description: string }>>;
  };
  const defined = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, description }]) => {
      const roles = /For: ([^.]+)\./.exec(description)?.[1] ?? "anybody";
      return [method.toUpperCase(), path, summary.replace(/\.$/, ""), roles].join(" | ");
    }),
  );
  const documented = tableRows("docs/admin-api.md")
    .filter(([method, , , roles]) => /^[A-Z]+$/.test(method ?? "") && roles !== undefined)
    .map((cells) => cells.map(plain).join(" | "));
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
  const renderMetrics = (): string => "";
  const sharing: AnswerSharing = {
    whole: ({ call }, run) => run(call),
    streamed: ({ call }, run) => run(call),
  };
  const routes = [
    ...dataRoutes({ services, settings: () => settings, sharing, whyNotReady }).map(
      (route) => ["data", route] as const,
    ),
    ...adminRoutes({ renderMetrics, whyNotReady, control: [] }).map(
      (route) => ["admin", route] as const,
    ),
  ];
  const defined = routes.map(([listener, { method, path, access }]) =>
    [listener, method, path.replace("*", "{id}"), access].join(" | "),
  );
  const documented = tableRows("docs/api.md")
    .filter(([listener]) => listener === "data" || listener === "admin")
    .map((cells) => cells.slice(0, 4).map(plain).join(" | "));
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
  const reasons = tableRows("docs/decisions/dependencies.md").map(([name]) => plain(name));
  const wanted = [...Object.keys(dependencies), ...Object.keys(devDependencies)];
  expect(wanted.filter((name) => !reasons.includes(name))).toEqual([]);
  expect(Object.keys(dependencies).length).toBeLessThanOrEqual(15);
});

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

/** As GitHub derives them from headings. */
function anchorsOf(markdown: string): readonly string[] {
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}
