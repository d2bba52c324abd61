import { expect, test } from "bun:test";
import { callerOf } from "../../../test/support/pipeline-fixtures.ts";
import { openAi } from "../../dialects/openai-dialect.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { RepeatedRefusals } from "./repeated-refusals.ts";

const usual = callerOf();
const callerNamed = (id: string) => ({ ...usual, key: { ...usual.key, id } });
const limited = new GatewayError("rate_limit_exceeded", { message: "Too many." });

test("a refusal of a key holds for the rest of its second, and for no other key", () => {
  const repeated = new RepeatedRefusals(openAi);
  const caller = callerNamed("a");
  expect(repeated.ofKey("call", caller, 5_100)).toBeUndefined();
  repeated.keepOfKey({ kind: "call", caller }, limited, 5_100);
  expect(repeated.ofKey("call", caller, 5_999)?.error).toBe(limited);
  expect(repeated.ofKey("call", callerNamed("b"), 5_999)).toBeUndefined();
  expect(repeated.ofKey("listing", caller, 5_999)).toBeUndefined();
  const raised = { ...caller, limits: { ...caller.limits } };
  expect(repeated.ofKey("call", raised, 5_999)).toBeUndefined();
  expect(repeated.ofKey("call", caller, 6_000)).toBeUndefined();
});

test("a refusal of a key is not repeated once its `retry-after-ms` is over", () => {
  const repeated = new RepeatedRefusals(openAi);
  const headers = { "retry-after-ms": "300" };
  const soon = new GatewayError("rate_limit_exceeded", { message: "Too many.", headers });
  repeated.keepOfKey({ kind: "call", caller: usual }, soon, 5_100);
  expect(repeated.ofKey("call", usual, 5_399)?.error).toBe(soon);
  expect(repeated.ofKey("call", usual, 5_400)).toBeUndefined();
});

test("an address with many wrong keys in one second gets an answer that names none of them", () => {
  const repeated = new RepeatedRefusals(openAi);
  const answers = Array.from({ length: 30 }, () => repeated.ofAddress("192.0.2.1", 5_000));
  expect(answers.slice(0, 20).every((each) => each === undefined)).toBe(true);
  expect(answers.slice(20).map((each) => each?.reply.status)).toEqual(
    Array.from({ length: 10 }, () => 401),
  );
  expect(repeated.ofAddress("192.0.2.2", 5_000)).toBeUndefined();
  expect(repeated.ofAddress("192.0.2.1", 6_000)).toBeUndefined();
});

test("memory stays bounded however many keys and addresses are refused in one second", () => {
  const repeated = new RepeatedRefusals(openAi);
  for (let index = 0; index < 20_000; index += 1) {
    repeated.keepOfKey({ kind: "call", caller: callerNamed(`${index}`) }, limited, 1_000);
    repeated.ofAddress(`address ${index}`, 1_000);
  }
  expect(repeated.ofKey("call", callerNamed("9999"), 1_000)).toBeDefined();
  expect(repeated.ofKey("call", callerNamed("10000"), 1_000)).toBeUndefined();
  const late = Array.from({ length: 30 }, () => repeated.ofAddress("address 19999", 1_000));
  expect(late.every((each) => each === undefined)).toBe(true);
});
