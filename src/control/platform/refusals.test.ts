import { afterEach, beforeEach, expect, test } from "bun:test";
import { AdminFixture, requestOf } from "../../../test/support/admin-fixture.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import { explanationSchema } from "../contract/refusals.ts";
import { refusalOperations } from "./refusals.ts";

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

/** Explains a request while the ledger cannot be read. */
async function explain(id: string): Promise<unknown> {
  const { reports } = admin.services;
  const call = () => Promise.reject(new StorageUnavailable("it is away"));
  const services = { ...admin.services, reports: { ...reports, call } };
  const operation = refusalOperations(services).find((each) => each.id === "explainRequest");
  if (operation === undefined) throw new Error("there is no such operation");
  return (await admin.runOperation(operation, requestOf({ id }))).body;
}

test("a refusal is explained while the ledger cannot be read, a call is not", async () => {
  const explanation = { rule: "tokens_per_minute", summary: "It was full." } as const;
  admin.refusals.push({ id: "req_1", at: 0, status: 429, code: null, explanation });
  expect(explanationSchema.parse(await explain("req_1"))).toMatchObject({
    call: null,
    refusal: { rule: "tokens_per_minute" },
    names: { account: null, key: null },
    is_ledger_read: false,
  });
  const failure = await explain("req_2").catch((error: unknown) => error);
  expect(failure).toMatchObject({ status: 503 });
});
