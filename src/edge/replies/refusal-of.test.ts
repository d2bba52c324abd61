import { expect, test } from "bun:test";
import {
  adminErrors,
  GatewayError,
  type GatewayErrorName,
} from "../../domain/errors/gateway-error.ts";
import { refusalOf } from "./refusal-of.ts";

const isAdminError = (name: string): name is keyof typeof adminErrors =>
  Object.hasOwn(adminErrors, name);
const names = Object.keys(adminErrors).filter(isAdminError);

function ruleOf(name: GatewayErrorName, accountId?: string) {
  const error = new GatewayError(name, { message: "Why." });
  return refusalOf({ id: "req_1", at: 5, error, caller: undefined, accountId })?.explanation;
}

test("every 401, 403, 429 and 503 of the control plane has a rule, and nothing else has", () => {
  for (const name of names) {
    const isExplained = [401, 403, 429, 503].includes(adminErrors[name].status);
    expect([name, ruleOf(name)?.rule]).toEqual([name, isExplained ? name : undefined]);
  }
  expect(ruleOf("request_too_large")).toBeUndefined();
  expect(ruleOf("model_unavailable")).toBeUndefined();
});

test("a refusal contains the principal's account, so its holder may see it", () => {
  expect(ruleOf("not_permitted", "acct_a")).toEqual({
    rule: "not_permitted",
    summary: "Why.",
    accountId: "acct_a",
  });
  expect(ruleOf("not_signed_in")).toEqual({ rule: "not_signed_in", summary: "Why." });
});
