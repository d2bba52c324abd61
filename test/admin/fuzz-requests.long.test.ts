import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { ErrorBody } from "../support/bodies.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { isComplete } from "../support/requirement.ts";
import { errorShapeProblem } from "../http/error-shape.ts";
import { sendAs, type AdminAnswer } from "./admin-caller.ts";
import { readDocument, readerOf, type DocumentedOperation, type Part } from "./admin-document.ts";
import { guarded, unguarded, type Prepared } from "./authorization-table.ts";
import { openWorld, type Principal, type World } from "./authorization-world.ts";

/** Texts that a store, a log, a header or a page may stumble over. */
const hostileTexts = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\r\nset-cookie: a=b",
  "' OR 1=1 --",
  "%00",
  "../../etc/passwd",
  "<script>alert(1)</script>",
  "\ud800",
  "\u202e\u2028",
  "{{7*7}}",
  "x".repeat(5_000),
  "9".repeat(400),
  "NaN",
  "-1",
  "1e3",
  "0x10",
  "2026-02-30T00:00:00Z",
  "__proto__",
  "constructor",
];

const hostileValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  [],
  [null],
  [[]],
  ["x", 7],
  {},
  { constructor: 1 },
  { toString: 1, length: 3 },
  ...hostileTexts,
];

interface Fields {
  readonly properties?: Readonly<Record<string, Part>>;
  readonly $ref?: string;
  readonly $defs: Readonly<Record<string, Omit<Fields, "$defs">>>;
}

/**
 * Whether a value may stand in a field. Patterns are read as JSON Schema wants them, in Unicode,
 * and spaces around a text may be taken off before.
 */
function fits(schema: Part, value: unknown): boolean {
  const { pattern, ...rest } = schema;
  const isUnicode = typeof pattern === "string" && /\\[pu]/i.test(pattern);
  if (!isUnicode) return readerOf(schema).safeParse(value).success;
  if (!readerOf(rest).safeParse(value).success) return false;
  return typeof value === "string" && new RegExp(pattern, "u").test(value.trim());
}

/** False for what is refused before any field is read. */
function isText(value: unknown): boolean {
  return typeof value !== "string" || value.isWellFormed();
}

/** The fields of a body, each with a schema of its own. */
function fieldsOf(body: Part): ReadonlyMap<string, Part> {
  const { $ref, $defs, properties } = body as unknown as Fields;
  const named = $ref === undefined ? undefined : $defs[$ref.replace("#/$defs/", "")];
  const found = properties ?? named?.properties ?? {};
  return new Map(Object.entries(found).map(([name, schema]) => [name, { ...schema, $defs }]));
}

const hostileText = fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: "binary" }));
const hostileValue = fc.oneof(
  { arbitrary: fc.constantFrom(...hostileValues), weight: 2 },
  { arbitrary: fc.jsonValue({ maxDepth: 4 }), weight: 1 },
  { arbitrary: hostileText, weight: 1 },
);

interface Fuzzed {
  readonly operation: DocumentedOperation;
  /** In place of those of the path; undefined: of something that is there. */
  readonly ids: readonly string[] | undefined;
  /** Fields to spoil in a body that is right, or what to send instead. */
  readonly spoiled: unknown;
  readonly isInstead: boolean;
  readonly query: Readonly<Record<string, string>>;
  readonly key: string | undefined;
}

function fuzzedRequest(operation: DocumentedOperation): fc.Arbitrary<Fuzzed> {
  const fields = [...fieldsOf(operation.body ?? { $defs: {} }).keys(), "zebra"];
  const queries = [...operation.query.map(({ name }) => name), "zebra"];
  const isInstead = fc.constantFrom(true, false, false, false);
  return isInstead.chain((isWhole) =>
    fc.record({
      operation: fc.constant(operation),
      ids: fc.option(fc.array(hostileText, { minLength: 2, maxLength: 2 }), { nil: undefined }),
      spoiled: isWhole
        ? fc.jsonValue()
        : fc.dictionary(fc.constantFrom(...fields), hostileValue, { maxKeys: 2 }),
      isInstead: fc.constant(isWhole),
      query: fc.dictionary(fc.constantFrom(...queries), hostileText, { maxKeys: 2 }),
      key: fc.option(fc.string({ maxLength: 30 }), { nil: undefined }),
    }),
  );
}

function bodyOf(base: Prepared, { spoiled, isInstead }: Fuzzed): unknown {
  return isInstead ? spoiled : { ...(base.body as object), ...(spoiled as object) };
}

function pathOf(base: Prepared, { operation, ids, query }: Fuzzed): string {
  const places = ids?.map((id) => encodeURIComponent(id.toWellFormed()));
  const [right = ""] = base.path.split("?");
  const path =
    places === undefined ? right : operation.path.replace(/\{\w+\}/g, () => places.pop() ?? "x");
  const pairs = Object.entries(query).map(
    ([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
  );
  return `${path}?${pairs.join("&")}`;
}

/** Defines the suite for a gateway with these sections of its configuration. */
function fuzz(sections: () => Promise<Readonly<Record<string, string>>>): void {
  let world: World;
  let operator: Principal;
  let document: readonly DocumentedOperation[];
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  beforeAll(async () => {
    process.on("unhandledRejection", onUnhandled);
    world = await openWorld(await sections());
    const [first] = world.principals;
    if (first === undefined) throw new Error("there is no operator");
    operator = first;
    document = await readDocument(world.gateway.adminUrl);
  }, 180_000);
  afterAll(async () => {
    process.off("unhandledRejection", onUnhandled);
    await world[Symbol.asyncDispose]();
  });

  function send(
    { method }: DocumentedOperation,
    request: Prepared,
    path = request.path,
  ): Promise<AdminAnswer> {
    const credential = request.as ?? operator.good;
    return sendAs(world.gateway.adminUrl, { method, path, body: request.body }, credential);
  }

  async function prepare({ route }: DocumentedOperation): Promise<Prepared> {
    const row = guarded.get(route) ?? unguarded.get(route);
    const request = await row?.prepare({ world, principal: operator, of: world.own });
    if (request === undefined) throw new Error(route);
    return request;
  }

  function errorIn({ text }: AdminAnswer): ErrorBody["error"] {
    return (JSON.parse(text) as ErrorBody).error;
  }

  test("a wrong value in any field of any body is 400, and the error names the field", async () => {
    const problems: string[] = [];
    let refused = 0;
    for (const operation of document) {
      if (operation.body === undefined) continue;
      for (const [name, schema] of fieldsOf(operation.body)) {
        const wrong = hostileValues.filter((value) => isText(value) && !fits(schema, value));
        if (wrong.length === 0) problems.push(`${operation.route} takes anything as ${name}`);
        const request = await prepare(operation);
        for (const value of wrong) {
          const body = { ...(request.body as object), [name]: value };
          const answer = await send(operation, { ...request, body });
          const what = `${operation.route} with ${name} ${JSON.stringify(value)?.slice(0, 60)}:`;
          if (answer.status !== 400) {
            problems.push(`${what} ${answer.status} ${answer.text.slice(0, 200)}`);
            continue;
          }
          refused += 1;
          const { param } = errorIn(answer);
          const isNamed = param === name || param?.startsWith(`${name}.`) === true;
          const isItem = param?.startsWith(`${name}[`) === true;
          if (!isNamed && !isItem) problems.push(`${what} names ${param}`);
          if (answer.text.length > 1_000) problems.push(`${what} repeats what was sent`);
        }
      }
    }
    process.stdout.write(`${refused} wrong values of bodies were refused by name\n`);
    expect(problems).toEqual([]);
    expect(refused).toBeGreaterThan(500);
  }, 180_000);

  test("a missing field that is needed, and a field that nobody knows, are named", async () => {
    for (const operation of document) {
      if (operation.body === undefined) continue;
      const request = await prepare(operation);
      const isSignIn = operation.route === "POST /admin/v1/session";
      const more = isSignIn ? { password: "x" } : {};
      const sent: Readonly<Record<string, unknown>> = { ...(request.body as object), ...more };
      const extra = await send(operation, { ...request, body: { ...sent, zebra: 1 } });
      const { param, code } = errorIn(extra);
      expect([operation.route, extra.status, param]).toEqual([operation.route, 400, "zebra"]);
      expect(code).toBe("invalid_value");
      const reader = readerOf(operation.body);
      for (const name of Object.keys(sent)) {
        const { [name]: _, ...rest } = sent;
        if (reader.safeParse(rest).success) continue;
        const answer = await send(operation, { ...request, body: rest });
        const error = errorIn(answer);
        expect([operation.route, answer.status, error.param]).toEqual([operation.route, 400, name]);
        expect(error.code).toBe("missing_required_parameter");
      }
    }
  });

  test("a wrong value in any query is 400, and the error names it", async () => {
    const problems: string[] = [];
    let refused = 0;
    for (const operation of document) {
      for (const { name, schema } of operation.query) {
        const request = await prepare(operation);
        const [path = "", prepared = ""] = request.path.split("?");
        const others = new URLSearchParams(prepared);
        others.delete(name);
        const reader = readerOf(schema);
        for (const value of hostileTexts) {
          // Bytes that are no UTF-8 are read as the sign for such, as everywhere on the web.
          const text = value.isWellFormed() ? encodeURIComponent(value) : "%ed%a0%80";
          const answer = await send(
            operation,
            request,
            `${path}?${others.toString()}&${name}=${text}`,
          );
          const what = `${operation.route} with ${name}=${text.slice(0, 60)}:`;
          const isRight = reader.safeParse(value.toWellFormed()).success;
          const isSignOn = operation.route.includes("/sso/");
          if (answer.status >= 500 || (!isRight && !isSignOn && answer.status !== 400)) {
            problems.push(`${what} ${answer.status} ${answer.text.slice(0, 200)}`);
          }
          if (answer.status !== 400) continue;
          refused += 1;
          const { param } = errorIn(answer);
          if (param !== name) problems.push(`${what} names ${param}`);
        }
      }
    }
    process.stdout.write(`${refused} wrong values of queries were refused by name\n`);
    expect(problems).toEqual([]);
    expect(refused).toBeGreaterThan(300);
  }, 180_000);

  const statuses = new Map<number, number>();

  async function problemOf(base: Prepared, fuzzed: Fuzzed): Promise<string | undefined> {
    const { operation, key } = fuzzed;
    const { method, route } = operation;
    const body = method === "GET" ? undefined : JSON.stringify(bodyOf(base, fuzzed));
    // Headers take bytes; what is none of them never leaves the client.
    const idempotent =
      key === undefined ? {} : { "idempotency-key": encodeURI(key.toWellFormed()) };
    const { headers, changeHeaders } = operator.good;
    const answer = await sendAs(
      world.gateway.adminUrl,
      { method, path: pathOf(base, fuzzed), body },
      { headers: { ...headers, ...idempotent }, changeHeaders },
    );
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    if (answer.status >= 500) return `${route} ${answer.status} ${answer.text}`;
    if (answer.status < 400) return undefined;
    const problem = errorShapeProblem(answer.headers, answer.text);
    return problem === undefined ? undefined : `${route} ${answer.status} ${problem}`;
  }

  test("no request, however odd, is a server error", async () => {
    const together = 8;
    const runs = isComplete ? 1_000 : 80;
    // The session must outlive what is sent.
    const all = document.filter(({ route }) => !route.includes("/session"));
    const bases = new Map<string, Prepared>();
    for (const operation of all) bases.set(operation.route, await prepare(operation));
    const request = fc.constantFrom(...all).chain(fuzzedRequest);
    const batches = fc.array(request, { minLength: together, maxLength: together });
    const problemWith = (fuzzed: Fuzzed): Promise<string | undefined> =>
      problemOf(bases.get(fuzzed.operation.route) ?? { path: "/" }, fuzzed);
    await fc.assert(
      fc.asyncProperty(batches, async (batch) => {
        const problems = await Promise.all(batch.map(problemWith));
        expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
      }),
      { numRuns: runs, endOnFailure: true },
    );
    const counts = [...statuses].map(([status, count]) => `${status}: ${count}`).toSorted();
    process.stdout.write(`odd requests by status: ${counts.join(", ")}\n`);
    // A fuzzer whose requests are all refused, or none, would look at half of it.
    expect(statuses.get(400) ?? 0).toBeGreaterThan(runs);
    expect((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0)).toBeGreaterThan(runs / 4);
    expect(statuses.get(401) ?? 0).toBeLessThan(runs);
  }, 300_000);

  test("after all of it nobody is another, the audit is whole and the log has no error", async () => {
    const { gateway } = world;
    const verdict = await gateway.admin("GET", "/admin/v1/audit/verify");
    expect(await verdict.json()).toMatchObject({ is_intact: true });
    expect(unhandled).toEqual([]);
    expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
    expect(Object.keys(Object.prototype)).toEqual([]);
    const accounts = await gateway.admin("GET", `/admin/v1/accounts/${world.own.account}`);
    expect(accounts.status).toBe(200);
  });
}

describe("SQLite", () => fuzz(() => Promise.resolve({})));

describeWithPostgres((databases) =>
  fuzz(async () => {
    const url = await databases.server.createDatabase();
    return { storage: `{ url: ${JSON.stringify(url)} }` };
  }),
);
