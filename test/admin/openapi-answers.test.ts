import { afterAll, beforeAll, expect, test } from "bun:test";
import type { z } from "zod";
import { sendAs, type AdminAnswer } from "./admin-caller.ts";
import { readDocument, readerOf, type DocumentedOperation } from "./admin-document.ts";
import { guarded, unguarded } from "./authorization-table.ts";
import { openWorld, password, type World } from "./authorization-world.ts";

let world: World;
let document: readonly DocumentedOperation[];
const readers = new Map<object, z.ZodType>();
beforeAll(async () => {
  world = await openWorld();
  document = await readDocument(world.gateway.adminUrl);
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

/** What is wrong with an answer by the document; undefined when nothing is. */
function problemWith(operation: DocumentedOperation, answer: AdminAnswer): string | undefined {
  const { status, headers, text } = answer;
  const contents = operation.answers.get(status);
  if (contents === undefined) return `does not tell of ${status}`;
  const type = headers.get("content-type")?.split(";")[0] ?? "";
  const found = [...contents].find(([documented]) => documented.split(";")[0] === type);
  if (found === undefined) return `does not tell of ${type}`;
  if (type !== "application/json") return undefined;
  const [, schema] = found;
  const reader = readers.get(schema) ?? readerOf(schema);
  readers.set(schema, reader);
  const result = reader.safeParse(JSON.parse(text));
  return result.success ? undefined : `${status}: ${result.error.message} in ${text}`;
}

/** Fields that an answer has and its schema does not name would be fields that slipped in. */
function unnamedIn(schema: unknown, value: unknown, definitions: unknown): readonly string[] {
  const resolved = resolveIn(schema, definitions);
  if (Array.isArray(value)) {
    return value.flatMap((item) => unnamedIn(resolved["items"], item, definitions));
  }
  const properties = resolved["properties"] as Record<string, unknown> | undefined;
  if (typeof value !== "object" || value === null || properties === undefined) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    name in properties ? unnamedIn(properties[name], part, definitions) : [name],
  );
}

function resolveIn(schema: unknown, definitions: unknown): Record<string, unknown> {
  const part = (schema ?? {}) as Record<string, unknown>;
  const reference = part["$ref"];
  if (typeof reference === "string") {
    const name = reference.replace("#/$defs/", "");
    return resolveIn((definitions as Record<string, unknown>)[name], definitions);
  }
  const options = part["anyOf"] as readonly unknown[] | undefined;
  const first = options?.find((option) => resolveIn(option, definitions)["type"] !== "null");
  return first === undefined ? part : resolveIn(first, definitions);
}

test("what is documented is served, and what is served below /admin/v1 is documented", () => {
  const documented = document.map(({ route }) => route);
  const known = [...guarded.keys(), ...unguarded.keys()];
  const documents = ["GET /admin/v1/openapi.json", "GET /admin/v1/docs"];
  const expected = known.filter((route) => route.includes("/admin/v1/"));
  expect(documented.toSorted()).toEqual(
    expected.filter((route) => !documents.includes(route)).toSorted(),
  );
  const names = document.map(({ operationId }) => operationId);
  expect(new Set(names).size).toBe(names.length);
});

test("answers of real requests, good and bad, are what the document says", async () => {
  const problems: string[] = [];
  let answers = 0;
  for (const operation of document) {
    const row = guarded.get(operation.route) ?? unguarded.get(operation.route);
    for (const principal of world.principals) {
      for (const of of [world.own, world.other]) {
        const request = await row?.prepare({ world, principal, of });
        if (request === undefined) throw new Error(operation.route);
        const credential = request.as ?? principal.good;
        const sent = { method: operation.method, ...request };
        const answer = await sendAs(world.gateway.adminUrl, sent, credential);
        answers += 1;
        const problem = problemWith(operation, answer);
        if (problem !== undefined) problems.push(`${operation.route} ${problem}`);
        if (!answer.headers.get("content-type")?.startsWith("application/json")) continue;
        const schema = operation.answers.get(answer.status)?.get("application/json");
        const value: unknown = JSON.parse(answer.text);
        for (const name of unnamedIn(schema, value, schema?.["$defs"])) {
          problems.push(`${operation.route} ${answer.status} has '${name}', which nothing names`);
        }
      }
    }
  }
  process.stdout.write(`${document.length} operations, ${answers} answers read by the document\n`);
  expect(problems).toEqual([]);
}, 180_000);

test("conflicts and refusals are documented too", async () => {
  const { adminUrl } = world.gateway;
  const [operator] = world.principals;
  if (operator === undefined) throw new Error("there is no operator");
  const { own } = world;
  const p = "/admin/v1";
  const many = { headers: { ...operator.good.headers, "idempotency-key": "once" } };
  const keyed = { ...operator.good, ...many };
  const rename = { revision: 999, name: "later" };
  const requests = [
    ["POST", "/accounts", `${p}/accounts`, { name: own.name }, 409],
    ["PATCH", "/accounts/{id}", `${p}/accounts/${own.account}`, rename, 409],
    ["DELETE", "/accounts/{id}", `${p}/accounts/${own.account}`, undefined, 409],
    ["DELETE", "/applications/{id}", `${p}/applications/${own.application}`, undefined, 409],
    ["PATCH", "/keys/{id}", `${p}/keys/${own.key}`, { revision: 999, note: "n" }, 409],
    ["PATCH", "/users/{id}", `${p}/users/${own.user}`, rename, 409],
    ["POST", "/users", `${p}/users`, { email: own.email, role: "auditor", password }, 409],
    ["POST", "/leaks", `${p}/leaks`, { api_keys: [] }, 400],
    ["POST", "/leaks", `${p}/leaks`, { api_keys: "x".repeat(70_000) }, 413],
    ["POST", "/accounts/{id}/erase", `${p}/accounts/${own.account}/erase`, { confirm: "no" }, 400],
    ["GET", "/keys", `${p}/keys?cursor=nonsense`, undefined, 400],
    ["GET", "/usage/totals", `${p}/usage/totals?since=never`, undefined, 400],
  ] as const;
  for (const [method, template, path, body, status] of requests) {
    const route = `${method} ${p}${template}`;
    const operation = document.find((each) => each.route === route);
    if (operation === undefined) throw new Error(route);
    const answer = await sendAs(adminUrl, { method, path, body }, operator.good);
    expect([route, answer.status]).toEqual([route, status]);
    expect([route, problemWith(operation, answer)]).toEqual([route, undefined]);
  }
  const create = document.find(({ route }) => route === `POST ${p}/accounts`);
  if (create === undefined) throw new Error("accounts cannot be made");
  const statuses: number[] = [];
  for (const name of ["repeated", "repeated", "another"]) {
    const request = { method: "POST", path: `${p}/accounts`, body: { name } };
    const answer = await sendAs(adminUrl, request, keyed);
    statuses.push(answer.status);
    expect(problemWith(create, answer)).toBeUndefined();
  }
  expect(statuses).toEqual([201, 201, 422]);
});
