import { expect, test } from "bun:test";
import { describeError, redact } from "./logger.ts";

test("tokens of the control plane are masked, local ones too", () => {
  const local = `slc-local_${"a".repeat(43)}`;
  const token = `slc-mgt_Zk3vQ9aT_${"b".repeat(49)}`;
  expect(redact(`sent ${local}, then ${token}.`)).toBe("sent [token], then [token].");
  const error = new Error("refused", { cause: new Error(`with ${local}`) });
  expect(describeError(error)).not.toContain("slc-local_");
});
