import { expect, test } from "bun:test";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { openApiDocument } from "./openapi.ts";
import { Bootstrap } from "../sign-in/bootstrap/bootstrap.ts";
import { Passwords } from "../sign-in/guard/passwords.ts";
import { signInRoutes } from "../sign-in/routes.ts";
import { signInDescriptions } from "../sign-in/descriptions.ts";
import { referencePage } from "./reference-page.ts";

const operations = [...signInDescriptions, ...new AdminFixture().operations];
const signIns = new Set(signInDescriptions.map(({ id }) => id));
const document = JSON.parse(JSON.stringify(openApiDocument(operations))) as Json;

interface Json {
  readonly [name: string]: Json;
}

interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: Json;
}

function described(): Described[] {
  return Object.entries(document["paths"] ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

/** Every object in the document, with its pointer. */
function* objects(value: unknown, pointer = "#"): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== "object" || value === null) return;
  yield [pointer, value as Record<string, unknown>];
  for (const [name, part] of Object.entries(value)) yield* objects(part, `${pointer}/${name}`);
}

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split("/")
    .reduce<unknown>((value, name) => (value as Record<string, unknown>)?.[name], document);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function readPage() {
  const { body, headers } = referencePage(operations);
  if (typeof body !== "string") throw new Error("the page is no text");
  return { html: body, contentSecurityPolicy: headers["content-security-policy"] };
}

test("the document has its version and title", () => {
  expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1" } });
});

test("every reference resolves in the document", () => {
  let count = 0;
  for (const [pointer, value] of objects(document)) {
    if (typeof value["$ref"] !== "string") continue;
    count += 1;
    expect(value["$ref"], pointer).toStartWith("#/components/");
    expect(resolve(value["$ref"]), `${value["$ref"]} of ${pointer}`).toBeDefined();
  }
  expect(count).toBeGreaterThan(100);
});

test("every operation is listed once, under its own name", () => {
  const names = described().map(({ operation }) => textOf(operation["operationId"]));
  expect(names.toSorted()).toEqual(operations.map(({ id }) => id).toSorted());
  expect(new Set(names).size).toBe(names.length);
});

test("the names in a path are its declared parameters, each required", () => {
  for (const { path, operation } of described()) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const parameters = operation["parameters"] as unknown as Record<string, unknown>[];
    const declared = parameters.filter((parameter) => parameter["in"] === "path");
    expect(declared.map(({ name }) => name) as unknown).toEqual(inPath);
    expect(declared.every(({ required }) => required === true)).toBe(true);
    const names = parameters.map((parameter) => parameter["name"] ?? parameter["$ref"]);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("each answer has a schema, and each error the one shape of errors", () => {
  for (const { operation } of described()) {
    const answers = operation["responses"] as unknown as Record<string, Json>;
    const statuses = Object.keys(answers);
    for (const status of ["400", "401", "403", "429", "500", "503"]) {
      expect(statuses).toContain(status);
    }
    for (const [status, answer] of Object.entries(answers)) {
      expect(typeof answer["description"]).toBe("string");
      const contents = Object.values(answer["content"] ?? {});
      expect(contents.length > 0, status).toBe(status !== "302");
      if (Number(status) < 400) continue;
      expect(contents[0]?.["schema"] as unknown).toEqual({ $ref: "#/components/schemas/Error" });
    }
  }
});

test("errors are listed by the code of the answer, also where it is null", () => {
  const { operation } = described().find(({ operation: each }) => "requestBody" in each) ?? {};
  const answers = operation?.["responses"] as unknown as Record<string, Json>;
  const described400 = textOf(answers["400"]?.["description"]);
  expect(described400).toContain("- `null`: The body is not JSON");
  expect(described400).toContain("- `invalid_value`: ");
  const { html } = readPage();
  expect(html).toContain("<code>400 null</code>");
  expect(described400 + html).not.toContain("invalid_json");
});

test("changes take an idempotency key and list its errors", () => {
  for (const { method, operation } of described()) {
    const isChange = method !== "get" && !signIns.has(textOf(operation["operationId"]));
    const takesKey = JSON.stringify(operation["parameters"]).includes("idempotencyKey");
    expect(takesKey).toBe(isChange);
    expect("422" in (operation["responses"] ?? {})).toBe(isChange);
  }
});

test("every schema is plain JSON Schema with named types", () => {
  const known = ["string", "number", "integer", "boolean", "object", "array", "null"];
  for (const [pointer, value] of objects(document["components"]?.["schemas"], "#/schemas")) {
    const { type } = value;
    if (typeof type === "string") expect(known, pointer).toContain(type);
    expect(value["$schema"], pointer).toBeUndefined();
    expect(value["$defs"], pointer).toBeUndefined();
  }
});

test("bodies refuse unknown fields", () => {
  const bodies = described().filter(({ operation }) => "requestBody" in operation);
  expect(bodies.length).toBeGreaterThan(8);
  for (const { operation } of bodies) {
    const schema = operation["requestBody"]?.["content"]?.["application/json"]?.["schema"];
    const target = "$ref" in (schema ?? {}) ? resolve(textOf(schema?.["$ref"])) : schema;
    expect(target).toMatchObject({ type: "object", additionalProperties: false });
  }
});

test("the reference page shows every operation, without scripts or external resources", () => {
  const { html, contentSecurityPolicy } = readPage();
  for (const { id, summary } of operations) {
    expect(html).toContain(`id="${id}"`);
    expect(html).toContain(Bun.escapeHTML(summary));
  }
  expect(html).not.toMatch(/<script|onclick|javascript:|https?:\/\/|style="/i);
  expect(html).toContain("prefers-color-scheme: dark");
  const [, style = ""] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
  const digest = new Bun.CryptoHasher("sha256").update(style).digest("base64");
  expect(contentSecurityPolicy).toContain(`style-src 'sha256-${digest}'`);
  expect(contentSecurityPolicy).toContain("default-src 'none'");
});

test("elements of the page are properly nested", () => {
  const open: string[] = [];
  for (const [, slash, name = ""] of readPage().html.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
    if (name === "meta" || name === "br") continue;
    if (slash === "") open.push(name);
    else expect(open.pop()).toBe(name);
  }
  expect(open).toEqual([]);
});

test("the documented requests of signing in are the served ones, with their roles", () => {
  const admin = new AdminFixture();
  const { store, clock, random } = admin.services;
  const onBootstrapToken = (): void => undefined;
  const routes = signInRoutes({
    ...admin.services,
    settings: {
      publicUrl: undefined,
      hosts: [],
      bootstrapToken: undefined,
      sessionIdleMs: 1,
      sessionAbsoluteMs: 1,
      requestsPerMinute: 1,
      signInsPerMinute: 1,
      sso: undefined,
    },
    publicUrl: () => "http://127.0.0.1:8081",
    passwords: new Passwords(),
    bootstrap: new Bootstrap({ store, clock, random, token: undefined, onBootstrapToken }),
    onSignInRefused: () => undefined,
  });
  const served = routes.map((route) => {
    const roles = route.access === "principal" ? route.roles : [];
    return `${route.method} ${route.path} for ${roles.join(" ")}`;
  });
  const described = signInDescriptions.map(
    ({ method, path, roles }) => `${method} ${path} for ${roles.join(" ")}`,
  );
  expect(described.toSorted()).toEqual(served.toSorted());
});
